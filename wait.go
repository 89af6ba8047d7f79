// Package wait waits precisely: never early, and as little late as the caller
// is willing to pay for.
//
// A wait has three honest costs. It is late, it burns CPU, or it takes a
// processor away from others. Nobody can have none of the three; each
// function here gives up one:
//
//   - [Sleep] is late by about the floor of the host, and costs next to no
//     CPU, for any number of goroutines.
//   - [SleepRange] ends anywhere in a window, so that sleepers share wake-ups.
//   - [Hybrid] sleeps, then spins for about the floor; it is late by about
//     one reading of the clock, mostly.
//   - [Spin] burns a CPU and is late by about one reading of the clock.
//   - [For] picks the cheapest of them that is at most a quarter late.
//
// The floor is how late a sleep of a given length ends on this host. The
// package learns it from [Sleep] and [Hybrid]; [Calibrate] measures it on purpose,
// [CurrentFloor] tells it.
//
// [ReadPollTimeout] and its relatives poll a register or any other condition
// until it holds or a time is over, with the rules of the kernel's
// include/linux/iopoll.h.
//
// [RecvTimeout], [EventTimeout] and [Event] wait for something to happen, with a
// limit; a [Pacer] has a loop run at a fixed rate.
//
// # Contract
//
// No wait returns early: on return the monotonic clock is at or past the
// deadline, whatever signals, preemption or timers do. The deadline is
// computed once, at the call; one too far away to compute is the latest that
// can be, 292 years on. A wait of zero or less, or until a time in the past,
// returns at once.
//
// A [time.Time] without a monotonic reading is turned into a duration once,
// at the call, so that a later step of the wall clock changes nothing.
//
// Waits allocate nothing in the steady state and may be called from any
// number of goroutines. Nothing runs at import. The first waits open at most
// nine file descriptors (timerfds, on Linux), which are kept; where the
// kernel refuses them, the runtime's timers do the work alone, and
// [ReadStats] says so.
//
// In a testing/synctest bubble every wait uses the bubble's fake time. A
// context given to it there must come from the bubble too: fake time stands
// still as long as a goroutine waits for a channel from outside.
package wait

import (
	"context"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
)

// Sleep pauses the calling goroutine for at least d. It is late by about the
// floor of the host and holds no thread while it waits. It asks to be woken a
// little early, by what the quickest wake-ups take, and spins for what is left
// then, at most 50 us. A d of zero or less returns at once.
//
// It takes the place of [time.Sleep], which in an idle program is up to a
// millisecond late.
func Sleep(d time.Duration) { within(d, sleep) }

// SleepUntil is [Sleep] until t. A t in the past returns at once.
func SleepUntil(t time.Time) { until(t, sleep) }

// SleepContext is [Sleep], but returns ctx.Err() as soon as ctx is done. It
// returns nil if it slept for d, and ctx.Err() at once, whatever d is, if ctx
// was done before. A nil ctx panics.
func SleepContext(ctx context.Context, d time.Duration) error {
	return withinContext(ctx, d, func(now, deadline int64, done <-chan struct{}) (int64, bool) {
		counts.sleep.Add(1)
		return park.UntilDone(now, deadline, done)
	})
}

// SleepRange pauses the calling goroutine for at least min and ends at a time
// between min and max at which the program wakes up anyway, or else at max,
// so that others may join it. As for the kernel's usleep_range, min is the
// soft and max the hard expiry: it ends at max in the worst case, plus about
// the floor. A wider range costs less; one narrower than about 50 us
// shares nothing or little. A max below min counts as min. A min of zero or less returns at
// once.
func SleepRange(min, max time.Duration) {
	within(min, func(now, soft int64) int64 {
		counts.sleepRange.Add(1)
		last, _ := park.Range(now, soft, clock.After(now, max), nil)
		return last
	})
}

// For waits for d by the cheapest way that ends at most a quarter of d late,
// by the floor known so far: [Sleep] where d is well above the floor,
// [Hybrid] where it is somewhat above, [Spin] where it is below. A d of zero
// or less returns at once.
func For(d time.Duration) { within(d, cheapest) }

// Until is [For] until t. A t in the past returns at once.
func Until(t time.Time) { until(t, cheapest) }

// A way waits until a deadline, or until so shortly before it that the rest is
// to be spun without a pause, and returns its last reading of the clock.
type way func(now, deadline int64) int64

func sleep(now, deadline int64) int64 {
	counts.sleep.Add(1)
	class := classes.of(deadline - now)
	class.settle(now)
	last := park.Until(now, deadline)
	class.note(last - deadline)
	return last
}

func cheapest(now, deadline int64) int64 {
	switch classes.of(deadline - now).advise(deadline - now) {
	case MethodSpin:
		return spin(now, deadline)
	case MethodHybrid:
		return hybrid(now, deadline)
	default:
		return sleep(now, deadline)
	}
}

// within waits for d by the given way, in a synctest bubble by time.Sleep.
func within(d time.Duration, by way) {
	if d <= 0 {
		return
	}
	now := clock.Now()
	deadline := clock.After(now, d)
	if clock.Fake() {
		time.Sleep(d)
		return
	}
	spinOut(by(now, deadline), deadline)
}

// until waits until t by the given way, in a synctest bubble by time.Sleep.
func until(t time.Time, by way) {
	now := clock.Now()
	if clock.Fake() {
		time.Sleep(time.Until(t))
		return
	}
	if deadline := clock.At(t); deadline > now {
		spinOut(by(now, deadline), deadline)
	}
}

// spinOut spins until the deadline without a pause. It is the last thing that
// a wait does: what else there is to run would run from a cold cache, and after
// the deadline.
func spinOut(now, deadline int64) {
	for now < deadline {
		now = clock.Now()
	}
}

// withinContext waits for d by the given way, which besides what a way returns
// reports whether it got there before done was closed.
func withinContext(ctx context.Context, d time.Duration, by func(now, deadline int64, done <-chan struct{}) (int64, bool)) error {
	mustHave(ctx != nil, "Context")
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	now := clock.Now()
	if clock.Fake() {
		return fakeSleep(ctx, d)
	}
	deadline := clock.After(now, d)
	last, reached := by(now, deadline, ctx.Done())
	if !reached {
		return ctx.Err()
	}
	spinOut(last, deadline)
	return nil
}

// fakeSleep is SleepContext in a synctest bubble. Its timer is made and left
// in the bubble: a channel from one may not be used outside of it.
func fakeSleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
