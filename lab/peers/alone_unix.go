//go:build unix

package peers

import (
	"os/exec"
	"syscall"
)

// alone has a command run in a process group of its own. A Ctrl-C in the
// terminal then reaches this process only, so that none of the others ends as
// if it had failed; and with the command ends what it has started, as a
// compiler does.
func alone(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
