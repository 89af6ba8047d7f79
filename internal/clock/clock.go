// Package clock is the one clock that every wait is measured on: monotonic
// nanoseconds since the program started.
//
// A deadline is a reading of this clock. It is computed once, saturates
// instead of wrapping, and is compared, never counted down.
package clock

import (
	"math"
	"time"
)

// Never is the latest deadline there is. Sums that would pass it stop at it.
const Never = math.MaxInt64

var epoch = time.Now()

// Now returns the nanoseconds since the program started. On Linux it is
// CLOCK_MONOTONIC less a constant. It never goes back.
//
// In a testing/synctest bubble, see [Fake], it is the distance to the bubble's
// fake time instead.
func Now() int64 { return int64(time.Since(epoch)) }

// Both returns a reading of the clock, the [time.Time] of the same instant, and
// what [Fake] says.
func Both() (now int64, t time.Time, fake bool) {
	t = time.Now()
	return int64(t.Sub(epoch)), t, !hasMonotonic(t)
}

// Fake reports whether the caller is in a testing/synctest bubble, whose time
// stands still until every goroutine in it waits by a call that the runtime
// knows. It takes longer than a reading of the clock, so a wait asks when it
// knows its deadline.
func Fake() bool { return !hasMonotonic(time.Now()) }

// hasMonotonic reports whether t carries a monotonic reading, which Round
// strips. Times of a bubble do not.
func hasMonotonic(t time.Time) bool { return t != t.Round(0) }

// After returns the deadline d after now, at most [Never]. A negative d
// counts as zero.
func After(now int64, d time.Duration) int64 {
	if d <= 0 {
		return now
	}
	if sum := now + int64(d); sum > now {
		return sum
	}
	return Never
}

// At returns the deadline that t stands for. Where t carries a monotonic
// reading, that is exact; where it carries none, the distance to t on the
// wall clock is taken now, once, and later steps of the wall clock change
// nothing. A t in the past gives a deadline in the past.
func At(t time.Time) int64 {
	if hasMonotonic(t) {
		return int64(t.Sub(epoch))
	}
	d := time.Until(t) // before Now: in the other order it would be early
	if d < 0 {
		return 0 // when the program started
	}
	return After(Now(), d)
}

// Time returns the deadline as a [time.Time]. It carries a monotonic reading
// unless it is a century away.
func Time(deadline int64) time.Time { return epoch.Add(time.Duration(deadline)) }
