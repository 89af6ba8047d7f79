package clock

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// bracketTries is how many pairs of readings [kernelOffset] is told from:
// enough that one of them meets no interrupt.
const bracketTries = 8

// kernelOffset is what is to be added to a reading of [Now] to get the
// kernel's CLOCK_MONOTONIC. It is told when the program starts, which takes some
// microseconds: each Thread's sleep needs it just when the caches are cold.
var kernelOffset = bracket()

// bracket returns the kernel's clock less ours.
//
// Our reading is taken before the kernel's, so the difference is never less
// than the true offset, and more by at most the time from the one to the
// other; the least of many such differences is the closest, and errs on the
// side that makes a timer late by some ten nanoseconds, not early.
func bracket() int64 {
	best := int64(Never)
	for range bracketTries {
		var ts unix.Timespec
		before := Now()
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			continue
		}
		best = min(best, ts.Nano()-before)
	}
	return best
}

// latestKernel is the last time that a Timespec of a 32-bit system holds, 68
// years after boot.
const latestKernel = math.MaxInt32 * int64(time.Second)

// Kernel returns deadline as an absolute time on the kernel's
// CLOCK_MONOTONIC, for timerfd_settime(2) and clock_nanosleep(2), at most 68
// years after boot. It must not be called in a testing/synctest bubble.
func Kernel(deadline int64) unix.Timespec {
	return unix.NsecToTimespec(min(After(kernelOffset, time.Duration(deadline)), latestKernel))
}
