package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the program in place of the tests where it was started by a
// test, as driver or as device.
func TestMain(m *testing.M) {
	if isDevice() || os.Getenv(roleVar) == "driver" {
		main()
		os.Exit(0)
	}
	// The race detector has every process sleep a second before it exits.
	_ = os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// newRegisters returns mapped registers and their file.
func newRegisters(t *testing.T) (*registers, *os.File) {
	f, err := createRegisters()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	r, unmap, err := mapRegisters(f)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unmap()) })
	return r, f
}

// program returns the whole program as a command. Its temporary files go into
// a directory of their own.
func program(t *testing.T) (cmd *exec.Cmd, dir string) {
	newRegisters(t) // or skip
	self, err := os.Executable()
	require.NoError(t, err)
	dir = t.TempDir()
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVar+"=driver", "TMPDIR="+dir)
	return cmd, dir
}

func TestProgramTellsTheCasesApart(t *testing.T) {
	for _, procs := range []string{"1", "2"} {
		t.Run("GOMAXPROCS="+procs, func(t *testing.T) {
			cmd, dir := program(t)
			cmd.Env = append(cmd.Env, "GOMAXPROCS="+procs)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, "%s", &stderr)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.Len(t, lines, len(cases))
			for i, line := range []string{
				"success:  12 squared is 144",
				"time-out: device still busy after 20ms",
				"fault:    70000 squared: device says overflow",
				"fault:    80000 squared: device says overflow",
				"success:  65535 squared is 4294836225",
				"success:  21 squared is 441",
				"fault:    90000 squared: device says overflow",
			} {
				assert.Contains(t, lines[i], line)
			}
			assert.Empty(t, stderr.String())
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, left, "files left behind")
		})
	}
}

func TestProgramFailsWithoutAFile(t *testing.T) {
	cmd, dir := program(t)
	cmd.Env = append(cmd.Env, "TMPDIR="+dir+"/none")
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
}

func TestDeviceEndsWithItsDriver(t *testing.T) {
	for _, c := range []struct {
		name    string
		command uint32
	}{{"idle", commandSquare}, {"busy", commandSlowSquare}} {
		t.Run(c.name, func(t *testing.T) {
			r, f := newRegisters(t)
			stop, err := startDevice(f)
			require.NoError(t, err)
			d := driver{r, 10 * time.Second}
			assert.NoError(t, d.probe())
			assert.NoError(t, d.give(c.command, 3))
			assert.NoError(t, stop())
		})
	}
}

func TestDeviceEndsIfItsDriverIsKilled(t *testing.T) {
	// On a busy machine the program may be through before it is killed.
	for !killedInTheMiddle(t) {
	}
}

func killedInTheMiddle(t *testing.T) bool {
	cmd, _ := program(t)
	held, stderr, err := os.Pipe()
	require.NoError(t, err)
	defer held.Close()
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, stderr.Close())

	_, err = stdout.Read(make([]byte, 1)) // the first case is done
	require.NoError(t, err)
	_ = cmd.Process.Kill()
	killed := cmd.Wait() != nil
	// The end of stderr is that of the last process that has it.
	require.NoError(t, held.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = io.ReadAll(held)
	require.NoError(t, err, "the device is still there")
	return killed
}
