package park

import (
	"time"

	"github.com/precisewait/wait/internal/clock"
)

// An End is what ended a wait for a channel.
type End int

const (
	Delivered End = iota // a value came
	Closed               // the channel was closed
	Done                 // done was closed
	Due                  // the deadline was reached
)

// near is how long before its deadline a wait for a channel is marked for the
// bell. Most of these waits end by what they wait for, long before; marks are
// never taken back, and each would have cost a spare ring. Up to then the wait
// goes by its runtime timer, which may end more than a millisecond late.
const near = int64(2 * time.Millisecond)

// Recv parks the calling goroutine until ch delivers or is closed, until done
// is closed, or until the deadline, which may be [clock.Never]. A value that is
// there at the end is taken, whatever ended the wait. now is the caller's own
// last reading of the clock.
func Recv[T any](now, deadline int64, ch <-chan T, done <-chan struct{}) (v T, end End) {
	if deadline == clock.Never {
		return RecvFor(0, ch, done)
	}
	for now < deadline {
		rest, marked := deadline-now, false
		if rest > near {
			rest -= near
		} else {
			mark(now, deadline)
			rest = deadline - clock.Now() // for the reason that inCrowd has
			marked = true
		}
		v, end = RecvFor(max(1, time.Duration(rest)), ch, done)
		if marked {
			unmark()
		}
		if end != Due {
			return v, end
		}
		now = clock.Now()
	}
	return lastLook(ch, Due)
}

// RecvFor is Recv for about d, which may end a millisecond late. A d of 0 is
// for ever.
func RecvFor[T any](d time.Duration, ch <-chan T, done <-chan struct{}) (v T, end End) {
	var expiry <-chan time.Time
	switch {
	case d > 0:
		t := timers.Get().(*time.Timer)
		defer timers.Put(t)
		t.Reset(d)
		defer halt(t)
		expiry = t.C
	case done == nil:
		v, ok := <-ch
		return v, endOf(ok)
	}
	select {
	case v, ok := <-ch:
		return v, endOf(ok)
	case <-done:
		return lastLook(ch, Done)
	case <-expiry:
		return v, Due // Recv looks, if this was the last time
	}
}

// lastLook takes the value that came together with the end.
func lastLook[T any](ch <-chan T, end End) (v T, _ End) {
	select {
	case v, ok := <-ch:
		return v, endOf(ok)
	default:
		return v, end
	}
}

func endOf(ok bool) End {
	if ok {
		return Delivered
	}
	return Closed
}
