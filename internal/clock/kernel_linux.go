package clock

import (
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// bracketTries is how many pairs of readings [bracket] takes: enough that one
// of them meets no interrupt.
const bracketTries = 32

// kernelOffset is what is to be added to a reading of [Now] to get the
// kernel's CLOCK_MONOTONIC, or 0 until somebody has asked. Each sleep of a
// Thread needs it just when the caches are cold, where a sync.Once takes longer.
var kernelOffset atomic.Int64

// offset returns the kernelOffset, the same to everybody.
func offset() int64 {
	if kernelOffset.Load() == 0 {
		kernelOffset.CompareAndSwap(0, bracket())
	}
	return kernelOffset.Load()
}

// bracket measures the kernel's clock less ours.
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
	return unix.NsecToTimespec(min(After(offset(), time.Duration(deadline)), latestKernel))
}
