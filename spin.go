package wait

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
	"github.com/precisewait/wait/internal/pause"
)

const (
	// exactly is the rest of a spin in which the clock is read without a
	// pause in between. It is longer than the longest pause, and than what a
	// wait does at the end of its spin takes with a cold cache.
	exactly = int64(2 * time.Microsecond)

	// turn is how long a spin keeps the only P from other goroutines.
	turn = int64(20 * time.Microsecond)
)

// Spin keeps the calling goroutine busy for at least d, reading the clock all
// the time. It is late by about one reading of the clock, tens of
// nanoseconds, unless the kernel or the runtime takes the processor away, and
// burns a CPU meanwhile. With a single P (GOMAXPROCS is 1) it lets other
// goroutines run every 20 us or so, which may make it late by as long as
// they run. A d of zero or less returns at once.
func Spin(d time.Duration) { within(d, spin) }

// SpinUntil is [Spin] until t. A t in the past returns at once.
func SpinUntil(t time.Time) { until(t, spin) }

func spin(now, deadline int64) int64 {
	counts.spin.Add(1)
	last, _ := spinUntil(now, deadline, nil)
	return last
}

// spinUntil spins until shortly before the deadline, or until done is closed.
// It returns its last reading of the clock and whether it got there; the caller
// spins out the rest.
func spinUntil(now, deadline int64, done <-chan struct{}) (last int64, reached bool) {
	start := now
	y := newYielder(now, deadline-now)
	for deadline-now > exactly {
		if isDone(done) {
			counts.spun.Add(now - start)
			return now, false
		}
		y.yield(now)
		pause.Core()
		now = clock.Now()
	}
	counts.spun.Add(max(now, deadline) - start)
	return now, true
}

func isDone(done <-chan struct{}) bool {
	if done == nil {
		return false
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// A yielder lets other goroutines run now and then during a spin on the only
// P, which they could otherwise have only once in 10 ms, by preemption.
type yielder struct{ next int64 }

// lookAgain is how often a spin asks how many Ps there are now.
const lookAgain = int64(time.Millisecond)

// newYielder returns a yielder for a spin that takes about the given time.
func newYielder(now, length int64) yielder {
	if length <= turn {
		return yielder{clock.Never}
	}
	var y yielder
	y.plan(now)
	return y
}

func (y *yielder) plan(now int64) (alone bool) {
	alone = runtime.GOMAXPROCS(0) == 1
	if alone {
		y.next = now + turn
	} else {
		y.next = now + lookAgain
	}
	return alone
}

func (y *yielder) yield(now int64) {
	if now >= y.next && y.plan(now) {
		runtime.Gosched()
	}
}

// spinBudget bounds what Hybrid may spin: half the Ps at once, at least one.
var spinBudget struct {
	spinning  atomic.Int64
	refused   atomic.Bool  // since the last spin ended
	refusedAt atomic.Int64 // the last time that one was, or 0
	closed    atomic.Int64 // no spin begins before this time
}

const (
	// crowd is how many goroutines asleep make one.
	crowd = 16

	// pauseLimit is the longest that the budget stays closed.
	pauseLimit = int64(10 * time.Millisecond)

	// crowdMemory is for how long a crowd in which one was refused sleeps.
	crowdMemory = int64(500 * time.Millisecond)
)

// crowded reports whether a wait that begins now had better sleep all the way,
// because its spin is likely to be refused: to end a sleep early for nothing
// makes two of it.
func crowded(now int64) bool {
	at := spinBudget.refusedAt.Load()
	return at > 0 && now-at < crowdMemory && park.Parked() > crowd
}

// mostSpinning is how many may spin at once.
func mostSpinning() int64 { return max(1, int64(runtime.GOMAXPROCS(0)/2)) }

// takeSpin asks for a share of the budget. If the answer is true, the caller
// gives it back with giveSpin.
func takeSpin(now int64) bool {
	b := &spinBudget
	if n := b.spinning.Add(1); n > mostSpinning() || now < b.closed.Load() {
		b.spinning.Add(-1)
		b.refused.Store(true)
		b.refusedAt.Store(now)
		counts.overBudget.Add(1)
		return false
	}
	return true
}

// giveSpin gives back a share that was taken at start. If others were
// refused meanwhile, the budget stays closed for as long as the spin took, so
// that a crowd spins half of the time at most and the rest of the program
// gets its turn. No spin takes longer than pauseLimit unless the host stopped
// it.
func giveSpin(start, now int64) {
	b := &spinBudget
	if b.refused.Load() && b.refused.Swap(false) {
		b.closed.Store(now + min(now-start, pauseLimit))
	}
	b.spinning.Add(-1)
}
