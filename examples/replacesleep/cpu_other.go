//go:build !unix

package main

import "time"

// processCPU reports that the CPU of the process is not known.
func processCPU() (cpu time.Duration, ok bool) { return 0, false }
