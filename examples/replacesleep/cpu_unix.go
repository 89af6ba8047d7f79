//go:build unix

package main

import (
	"syscall"
	"time"
)

// processCPU returns the CPU that the process has used, user and system.
func processCPU() (cpu time.Duration, ok bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, false
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), true
}
