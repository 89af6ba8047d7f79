package wait

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
	"github.com/precisewait/wait/internal/pause"
)

// ErrClosed is the error of a receive from a channel that is closed and empty,
// and of an [EventTimeout] that nobody will wake any more.
var ErrClosed = errors.New("wait: channel closed")

// RecvTimeout receives from ch: it tries ch for up to spin, which burns a CPU,
// then parks until a value comes, ch is closed or timeout has passed since the
// call. The errors of the latter two are [ErrClosed] and a [TimeoutError]; a
// value that is there at the end of the timeout is received. A timeout of 0 is
// none: it waits for ever. A negative spin or timeout is [os.ErrInvalid], before
// anything is received. From a nil channel nothing ever comes.
//
// A value that comes within the spin is received some hundred nanoseconds after
// it was sent; a parked goroutine has to be woken first, which takes
// microseconds. The spin counts from the call, is part of the timeout, and
// shares the budget of [Hybrid]: a goroutine that finds no room in it parks at
// once, and one that has spun for 10 ms asks again. With a single P (GOMAXPROCS
// is 1) nobody could send meanwhile, and there is no spin. A sender on a
// channel without a buffer parks before the spin can take its value; a buffer
// of one spares it that.
//
// It allocates nothing but the error, and may be called from any number of
// goroutines.
func RecvTimeout[T any](ch <-chan T, spin, timeout time.Duration) (T, error) {
	if err := checkWait("receive", spin, timeout); err != nil {
		var none T
		return none, err
	}
	v, end := tryRecv(ch)
	if end != park.Due {
		return v, errorOf(end)
	}
	start := clock.Now()
	if v, end = recv(ch, spin, start, deadlineOf(start, timeout), nil); end == park.Due {
		return v, &timedOut{TimeoutError{Timeout: timeout, Elapsed: time.Duration(clock.Now() - start)}}
	}
	return v, errorOf(end)
}

// RecvContext is [RecvTimeout] without a timeout, but returns ctx.Err() as soon
// as ctx is done. A value that is there is received all the same, even if ctx
// was done before. A nil ctx panics.
func RecvContext[T any](ctx context.Context, ch <-chan T, spin time.Duration) (T, error) {
	mustHave(ctx != nil, "Context")
	if err := checkWait("receive", spin, 0); err != nil {
		var none T
		return none, err
	}
	v, end := tryRecv(ch)
	if end == park.Due {
		v, end = recv(ch, spin, clock.Now(), clock.Never, ctx.Done())
	}
	if end == park.Done {
		return v, ctx.Err()
	}
	return v, errorOf(end)
}

func checkWait(what string, spin, timeout time.Duration) error {
	switch {
	case spin < 0:
		return fmt.Errorf("wait: %s with a spin of %v: %w", what, spin, os.ErrInvalid)
	case timeout < 0:
		return fmt.Errorf("wait: %s with a timeout of %v: %w", what, timeout, os.ErrInvalid)
	}
	return nil
}

// errorOf returns the error of a receive that neither a timeout nor a context
// ended.
func errorOf(end park.End) error {
	if end == park.Closed {
		return ErrClosed
	}
	return nil
}

// deadlineOf returns the deadline of a timeout, of which 0 is none.
func deadlineOf(now int64, timeout time.Duration) int64 {
	if timeout == 0 {
		return clock.Never
	}
	return clock.After(now, timeout)
}

// tryRecv takes what ch has now. The end is park.Due if that is nothing.
func tryRecv[T any](ch <-chan T) (v T, end park.End) {
	select {
	case v, ok := <-ch:
		if !ok {
			return v, park.Closed
		}
		return v, park.Delivered
	default:
		return v, park.Due
	}
}

// recv spins, then parks.
func recv[T any](ch <-chan T, spin time.Duration, now, deadline int64, done <-chan struct{}) (v T, end park.End) {
	if clock.Fake() {
		return recvFake(now, deadline, ch, done)
	}
	if spin > 0 && ch != nil {
		v, end, now = spinRecv(ch, now, min(clock.After(now, spin), deadline), done)
		if end != park.Due {
			return v, end
		}
	}
	return park.Recv(now, deadline, ch, done)
}

// await is recv without a spin for one who knows whether the time is fake.
func await(fake bool, now, deadline int64, ch, done <-chan struct{}) park.End {
	if fake {
		_, end := recvFake(now, deadline, ch, done)
		return end
	}
	_, end := park.Recv(now, deadline, ch, done)
	return end
}

// recvFake is park.Recv in a synctest bubble. Its timer is made and left in the
// bubble: a channel from one may not be used outside of it.
func recvFake[T any](now, deadline int64, ch <-chan T, done <-chan struct{}) (v T, end park.End) {
	var expiry <-chan time.Time
	if deadline != clock.Never {
		t := time.NewTimer(time.Duration(deadline - now))
		defer t.Stop()
		expiry = t.C
	}
	select {
	case v, ok := <-ch:
		if !ok {
			return v, park.Closed
		}
		return v, park.Delivered
	case <-done:
		end = park.Done
	case <-expiry:
		end = park.Due
	}
	if v, found := tryRecv(ch); found != park.Due {
		return v, found
	}
	return v, end
}

// handOver is how long a receive that finds the budget used up waits for a
// share before it is refused. Of two goroutines that answer each other, one
// begins to spin just when the other, which has its value now, ends.
const handOver = int64(time.Microsecond)

// spinRecv tries ch until a value comes, the end, or done is closed, as far as
// the budget goes. The end is park.Due if it came to nothing.
func spinRecv[T any](ch <-chan T, now, end int64, done <-chan struct{}) (v T, how park.End, last int64) {
	how = park.Due
	if runtime.GOMAXPROCS(0) == 1 {
		return v, how, now
	}
	most := mostSpinning()
	for limit := now + handOver; spinBudget.spinning.Load() >= most && now < limit; {
		now = clock.Now()
	}
	y := newYielder(now, end-now)
	spun := false
	for how == park.Due && now < end && takeSpin(now) {
		spun = true
		start := now
		v, how, now = spinShare(ch, now, min(end, now+pauseLimit), &y, done)
		giveSpin(start, now)
		counts.spun.Add(now - start)
	}
	if spun {
		counts.receivesSpun.Add(1)
		if how == park.Delivered {
			counts.receivesCaught.Add(1)
		}
	}
	return v, how, now
}

func spinShare[T any](ch <-chan T, now, end int64, y *yielder, done <-chan struct{}) (v T, how park.End, last int64) {
	for {
		if v, how = tryRecv(ch); how != park.Due || now >= end {
			return v, how, now
		}
		if isDone(done) {
			return v, park.Done, now
		}
		y.yield(now)
		pause.Core()
		now = clock.Now()
	}
}

// EventTimeout waits until cond holds. It calls cond first, after every receive
// from wake, and once more when timeout has passed since the call; in between
// it is parked. It is the kernel's wait_event_timeout.
//
// It returns the time that was left when cond held, at least 1 ns, even if that
// was at the very end: whatever cond says counts, however late. Else it
// returns 0 and a [TimeoutError]. A timeout of 0 is none: it waits for ever, and
// the time left is the longest Duration. A negative timeout is [os.ErrInvalid],
// before cond is called; a nil cond panics.
//
// Who changes what cond looks at sends to wake afterwards, best without
// blocking on a channel with a buffer of one: a wake-up that is sent while the
// waiter looks is not lost then. Each wake-up reaches one waiter; for many, see
// [Event.WaitCond]. A nil wake never wakes. If wake is closed and cond does not
// hold, nothing would ever wake it again: it returns the time left and
// [ErrClosed].
//
// It allocates nothing but the error.
func EventTimeout(cond func() bool, wake <-chan struct{}, timeout time.Duration) (left time.Duration, err error) {
	mustHave(cond != nil, "cond")
	if err := checkWait("event", 0, timeout); err != nil {
		return 0, err
	}
	return waitCond(cond, wake, timeout, clock.Now(), clock.Fake(), nil, nil)
}

// waitCond waits for cond by wake, which is that of w if the wake-ups are an
// Event's.
func waitCond(cond func() bool, wake <-chan struct{}, timeout time.Duration, start int64, fake bool, e *Event, w *waiter) (left time.Duration, err error) {
	deadline := deadlineOf(start, timeout)
	now, end := start, park.Delivered
	for calls := 1; ; calls++ {
		if e != nil && !w.queued {
			e.queue(w, false) // before the look, so that a Set after it wakes
		}
		// Whether the time is over is decided before cond is called, so that
		// there is a call after the deadline however long this goroutine was
		// kept from running.
		expired := now >= deadline
		if cond() {
			return max(1, leftUntil(deadline)), nil
		}
		switch {
		case expired:
			return 0, &timedOut{TimeoutError{timeout, time.Duration(clock.Now() - start), calls, false}}
		case end == park.Closed:
			return leftUntil(deadline), ErrClosed
		}
		end = await(fake, clock.Now(), deadline, wake, nil)
		if e != nil && end == park.Delivered {
			w.queued = false
		}
		now = clock.Now()
	}
}

// leftUntil returns the time until the deadline, or 0 if it is past.
func leftUntil(deadline int64) time.Duration {
	if deadline == clock.Never { // which in a bubble is further away than can be told
		return math.MaxInt64
	}
	return time.Duration(max(0, deadline-clock.Now()))
}

// An Event is a flag that any number of goroutines wait for: the kernel's
// completion with complete_all, or a wait queue, see [Event.WaitCond]. The zero
// Event is clear. It must not be copied after first use. An Event that is used
// in a testing/synctest bubble, as a channel from there, must not be used
// outside.
//
// Set wakes everybody who waits at that time, also if Clear follows at once: no
// wake-up is lost. What was done before Set is seen after the wait that it
// ended. Waits allocate nothing but their errors.
type Event struct {
	set atomic.Bool // written with the lock held

	mu          sync.Mutex
	wakes       uint64 // calls of Set
	first, last *waiter
}

// A waiter is one who waits for an Event. It is woken by a value in c, once for
// each time that it was queued.
type waiter struct {
	c          chan struct{}
	queued     bool   // since then it has not been woken, as far as it knows
	wakes      uint64 // of the event when it was queued
	prev, next *waiter
}

func newWaiter() *waiter { return &waiter{c: make(chan struct{}, 1)} }

var waiters = sync.Pool{New: func() any { return newWaiter() }}

// takeWaiter returns a waiter that nobody uses. A bubble has its own, since
// channels may not pass its border.
func takeWaiter(fake bool) *waiter {
	if fake {
		return newWaiter()
	}
	return waiters.Get().(*waiter)
}

// Set sets the event and wakes all who wait. The event stays set until Clear.
func (e *Event) Set() {
	e.mu.Lock()
	e.set.Store(true)
	e.wakes++
	w := e.first
	e.first, e.last = nil, nil
	e.mu.Unlock()
	for w != nil {
		next := w.next // before it is woken, and may wait again
		w.prev, w.next = nil, nil
		w.c <- struct{}{}
		w = next
	}
}

// Clear clears the event, so that waits begun from then on wait for the next
// Set. Those that Set has woken return.
func (e *Event) Clear() {
	e.mu.Lock()
	e.set.Store(false)
	e.mu.Unlock()
}

// IsSet reports whether the event is set.
func (e *Event) IsSet() bool { return e.set.Load() }

// Wait returns once the event is set, at once if it is.
func (e *Event) Wait() { e.wait(clock.Never, nil) }

// WaitTimeout is [Event.Wait] for at most timeout, after which it returns a
// [TimeoutError]. A Set that comes together with the end counts. A timeout of 0
// is none; a negative one is [os.ErrInvalid], whether the event is set or not.
func (e *Event) WaitTimeout(timeout time.Duration) error {
	if err := checkWait("event", 0, timeout); err != nil {
		return err
	}
	if e.set.Load() {
		return nil
	}
	start := clock.Now()
	if e.wait(deadlineOf(start, timeout), nil) == park.Delivered {
		return nil
	}
	return &timedOut{TimeoutError{Timeout: timeout, Elapsed: time.Duration(clock.Now() - start)}}
}

// WaitContext is [Event.Wait], but returns ctx.Err() as soon as ctx is done. An
// event that is set counts all the same, even if ctx was done before. A nil ctx
// panics.
func (e *Event) WaitContext(ctx context.Context) error {
	mustHave(ctx != nil, "Context")
	if e.wait(clock.Never, ctx.Done()) == park.Delivered {
		return nil
	}
	return ctx.Err()
}

// WaitCond waits until cond holds, with the event as a wait queue: it is
// [EventTimeout] with cond called after every Set, by every waiter. Whether the
// event is set does not matter. Who changes what cond looks at calls Set
// afterwards; a Set while the waiter looks is not lost.
func (e *Event) WaitCond(cond func() bool, timeout time.Duration) (left time.Duration, err error) {
	mustHave(cond != nil, "cond")
	if err := checkWait("event", 0, timeout); err != nil {
		return 0, err
	}
	start, fake := clock.Now(), clock.Fake()
	w := takeWaiter(fake)
	defer e.release(w, fake) // by a panic of cond too
	return waitCond(cond, w.c, timeout, start, fake, e, w)
}

// wait waits for the event to be set.
func (e *Event) wait(deadline int64, done <-chan struct{}) park.End {
	if e.set.Load() {
		return park.Delivered
	}
	now, fake := clock.Now(), clock.Fake()
	w := takeWaiter(fake)
	end := park.Delivered
	if e.queue(w, true) {
		if end = await(fake, now, deadline, w.c, done); end == park.Delivered {
			w.queued = false
		}
	}
	if e.release(w, fake) {
		end = park.Delivered
	}
	return end
}

// queue has the next Set wake w. With unlessSet it does not, and returns false,
// if the event is set.
func (e *Event) queue(w *waiter, unlessSet bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if unlessSet && e.set.Load() {
		return false
	}
	w.queued, w.wakes = true, e.wakes
	if w.prev = e.last; w.prev == nil {
		e.first = w
	} else {
		w.prev.next = w
	}
	e.last = w
	return true
}

// release gives w back. It reports whether a Set had taken w out of the queue
// that w does not know of.
func (e *Event) release(w *waiter, fake bool) (woken bool) {
	if w.queued {
		if woken = !e.unqueue(w); woken {
			<-w.c // it is there, or about to be
		}
		w.queued = false
	}
	if !fake {
		waiters.Put(w)
	}
	return woken
}

// unqueue takes w out of the queue, unless a Set has.
func (e *Event) unqueue(w *waiter) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.wakes != e.wakes {
		return false
	}
	if w.prev == nil {
		e.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		e.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	return true
}
