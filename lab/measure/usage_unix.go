//go:build unix

package measure

import (
	"syscall"
	"time"
)

// A usage is what the process has used so far.
type usage struct {
	cpu      time.Duration // user and system
	switches int64         // voluntary context switches
}

func readUsage() (usage, bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, false
	}
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(r.Nvcsw)}, true
}
