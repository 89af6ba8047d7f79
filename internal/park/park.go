// Package park puts goroutines to sleep until a deadline on [clock], without
// holding a thread, and wakes them within the floor of the host.
//
// The runtime's own timers do the parking and the waking. What they lack is
// an end to an idle program's epoll_wait(2) that is finer than a millisecond;
// on Linux a timerfd on the runtime's poller supplies it, in two forms: an
// alarm serves one sleeper, the bell serves a crowd. Where no timerfd can be
// had, the runtime's timers do the work alone.
//
// No function here may be called in a testing/synctest bubble.
package park

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait/internal/clock"
)

const (
	// horizon is how far ahead a deadline may lie for a kernel timer to be set
	// to it. A sleeper with a later deadline goes by a runtime timer until it
	// is half of that away.
	horizon = int64(400 * time.Millisecond)

	// tooShort is a rest not worth parking for: less than that costs. The
	// sleeper only lets others run.
	tooShort = int64(time.Microsecond)
)

// Until parks the calling goroutine until deadline and returns the reading of
// the clock that showed it to be past. now is the caller's own last reading.
func Until(now, deadline int64) int64 {
	last, _ := until(now, deadline, deadline)
	return last
}

// Ahead is [UntilDone] for a caller that spins from then on until end. In an
// idle program an alarm's runtime timer is set to the end, where it does not
// interrupt the spin. overslept reports that it was that one which ended the
// sleep; then the sleep's lateness says nothing about the next one's, whose
// runtime timer is set to its deadline.
func Ahead(now, deadline, end int64, done <-chan struct{}) (last int64, reached, overslept bool) {
	if done == nil {
		last, overslept = until(now, deadline, end)
		return last, true, overslept
	}
	last, reached = inCrowd(now, deadline, done)
	return last, reached, false
}

func until(now, deadline, end int64) (last int64, overslept bool) {
	if now >= deadline {
		return now, false
	}
	counters.begun.Add(1)
	defer counters.ended.Add(1)
	for now < deadline {
		rest := deadline - now
		switch {
		case rest > horizon:
			time.Sleep(time.Duration(rest - horizon/2))
		case rest < tooShort:
			runtime.Gosched()
		default:
			overslept = wake(now, deadline, end)
		}
		now = clock.Now()
	}
	return now, overslept
}

// UntilDone is [Until], but returns early once done is closed. It returns its
// last reading of the clock and whether the deadline was reached.
func UntilDone(now, deadline int64, done <-chan struct{}) (last int64, reached bool) {
	if done == nil {
		return Until(now, deadline), true
	}
	return inCrowd(now, deadline, done)
}

// Range parks the calling goroutine until some time in [soft, hard], the one
// that costs the program the fewest wake-ups, or until done is closed. It
// returns its last reading of the clock and whether it was not done that
// ended it; then it is not before soft.
func Range(now, soft, hard int64, done <-chan struct{}) (last int64, reached bool) {
	if soft-now > horizon {
		if now, reached = inCrowd(now, soft-horizon/2, done); !reached {
			return now, false
		}
	}
	target, shared := share(now, soft, min(hard, now+horizon))
	if !shared {
		return UntilDone(now, soft, done)
	}
	return inCrowd(now, target, done)
}

// inCrowd parks the calling goroutine on a runtime timer, beside the marks of
// the others, until the deadline or until done, unless it is nil, is closed.
func inCrowd(now, deadline int64, done <-chan struct{}) (last int64, reached bool) {
	counters.begun.Add(1)
	defer counters.ended.Add(1)
	for now < deadline {
		rest, marked := deadline-now, false
		if rest > horizon {
			rest -= horizon / 2
		} else {
			mark(now, deadline)
			// That took some microseconds, at first use even more. A runtime
			// timer that were late by so much would miss the ring.
			rest = deadline - clock.Now()
			marked = true
		}
		reached = true
		if done == nil {
			time.Sleep(time.Duration(rest))
		} else {
			reached = sleepOrDone(time.Duration(rest), done)
		}
		if marked {
			unmark()
		}
		if now = clock.Now(); !reached {
			return now, false
		}
	}
	return now, true
}

// sleepOrDone sleeps for d and reports whether it did so to the end.
func sleepOrDone(d time.Duration, done <-chan struct{}) bool {
	t := timers.Get().(*time.Timer)
	defer timers.Put(t)
	t.Reset(d)
	select {
	case <-t.C:
		return true
	case <-done:
		halt(t)
		return false
	}
}

// halt stops a timer of the pool and leaves nothing in its channel.
func halt(t *time.Timer) {
	if !t.Stop() {
		select { // with GODEBUG=asynctimerchan=1 a value may be left
		case <-t.C:
		default:
		}
	}
}

var timers = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// roundest returns the time in [soft, hard] that is a multiple of the highest
// power of two: sleepers who cannot see each other still agree on it. It is
// false if the two are not in order.
func roundest(soft, hard int64) (int64, bool) {
	if soft >= hard {
		return soft, soft == hard
	}
	differ := bits.Len64(uint64(soft-1) ^ uint64(hard))
	return hard &^ (1<<(differ-1) - 1), true
}

// Counts is what the engine has done since the program started.
type Counts struct {
	Parked       int64  // goroutines asleep now
	Alarms       int64  // alarms open
	Served       uint64 // sleeps that ended
	AlarmRings   uint64 // wake-ups by an alarm's kernel timer
	BellRings    uint64 // wake-ups by the bell's kernel timer
	Shared       uint64 // SleepRange waits that joined a wake-up already set
	Failures     uint64 // timers that the kernel refused to make or to set
	RuntimeTimer bool   // whether runtime timers do the work alone
}

var counters struct {
	begun      atomic.Uint64 // sleeps
	ended      atomic.Uint64
	alarms     atomic.Int64
	alarmRings atomic.Uint64
	bellRings  atomic.Uint64
	shared     atomic.Uint64
	failures   atomic.Uint64
}

// Parked returns how many goroutines are asleep.
func Parked() int64 {
	ended := counters.ended.Load() // before begun, or there could be more of them
	return int64(counters.begun.Load() - ended)
}

// ReadCounts returns the counts so far.
func ReadCounts() Counts {
	ended := counters.ended.Load()
	return Counts{
		Parked:       Parked(),
		Alarms:       counters.alarms.Load(),
		Served:       ended,
		AlarmRings:   counters.alarmRings.Load(),
		BellRings:    counters.bellRings.Load(),
		Shared:       counters.shared.Load(),
		Failures:     counters.failures.Load(),
		RuntimeTimer: runtimeTimerAlone(),
	}
}
