package wait

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
)

// ReadPollTimeout calls op until cond holds for the value that op returned,
// and returns that value. It is the kernel's read_poll_timeout.
//
// Between two calls it sleeps like [SleepRange] from a quarter of sleep to
// sleep; with a sleep of 0 it does not sleep, which burns a CPU. Once timeout
// has passed since the call, it looks one last time and returns a
// [TimeoutError] if cond still does not hold; a value for which cond holds is
// a success however late it came. So op runs at least once, cond once per op,
// and the last sleep is cut to end at the deadline. A timeout of 0 polls for
// ever.
//
// The last value read is returned with every error. A negative sleep or
// timeout is [os.ErrInvalid], before op runs; a nil op or cond panics. Polls
// allocate nothing but the error.
func ReadPollTimeout[T any](op func() T, cond func(T) bool, sleep, timeout time.Duration, opts ...PollOption) (T, error) {
	mustHave(op != nil, "op")
	return poll(false, func() (T, error) { return op(), nil }, cond, sleep, timeout, opts)
}

// ReadPollTimeoutAtomic is [ReadPollTimeout], but spins for delay between two
// calls of op instead of sleeping: it never parks the goroutine. It is the
// kernel's read_poll_timeout_atomic, with one difference: timeout is measured
// on the clock, not by adding up delays, so a slow op does not stretch it.
//
// With a single P (GOMAXPROCS is 1) it lets other goroutines run every 20 us
// or so.
func ReadPollTimeoutAtomic[T any](op func() T, cond func(T) bool, delay, timeout time.Duration, opts ...PollOption) (T, error) {
	mustHave(op != nil, "op")
	return poll(true, func() (T, error) { return op(), nil }, cond, delay, timeout, opts)
}

// ReadxPollTimeout is [ReadPollTimeout] for an op that takes an address, or
// any other one argument. It is the kernel's readx_poll_timeout.
func ReadxPollTimeout[A, T any](op func(A) T, addr A, cond func(T) bool, sleep, timeout time.Duration, opts ...PollOption) (T, error) {
	mustHave(op != nil, "op")
	return poll(false, func() (T, error) { return op(addr), nil }, cond, sleep, timeout, opts)
}

// ReadxPollTimeoutAtomic is [ReadPollTimeoutAtomic] for an op that takes an
// address, or any other one argument. It is the kernel's
// readx_poll_timeout_atomic.
func ReadxPollTimeoutAtomic[A, T any](op func(A) T, addr A, cond func(T) bool, delay, timeout time.Duration, opts ...PollOption) (T, error) {
	mustHave(op != nil, "op")
	return poll(true, func() (T, error) { return op(addr), nil }, cond, delay, timeout, opts)
}

// TryReadPollTimeout is [ReadPollTimeout] for an op that can fail. An error
// from op ends the poll at once, is returned as it is, and wins over the
// timeout; cond does not see the value that came with it. It is the kernel's
// regmap_read_poll_timeout.
func TryReadPollTimeout[T any](op func() (T, error), cond func(T) bool, sleep, timeout time.Duration, opts ...PollOption) (T, error) {
	mustHave(op != nil, "op")
	return poll(false, op, cond, sleep, timeout, opts)
}

// TryReadPollTimeoutAtomic is [ReadPollTimeoutAtomic] for an op that can fail,
// as [TryReadPollTimeout] is [ReadPollTimeout]. It is the kernel's
// regmap_read_poll_timeout_atomic.
func TryReadPollTimeoutAtomic[T any](op func() (T, error), cond func(T) bool, delay, timeout time.Duration, opts ...PollOption) (T, error) {
	mustHave(op != nil, "op")
	return poll(true, op, cond, delay, timeout, opts)
}

// PollTimeout is [ReadPollTimeout] without a value: it polls until cond holds.
// It is the kernel's poll_timeout_us.
func PollTimeout(cond func() bool, sleep, timeout time.Duration, opts ...PollOption) error {
	mustHave(cond != nil, "cond")
	_, err := poll(false, func() (bool, error) { return cond(), nil }, holds, sleep, timeout, opts)
	return err
}

// PollTimeoutAtomic is [ReadPollTimeoutAtomic] without a value: it polls until
// cond holds. It is the kernel's poll_timeout_us_atomic.
func PollTimeoutAtomic(cond func() bool, delay, timeout time.Duration, opts ...PollOption) error {
	mustHave(cond != nil, "cond")
	_, err := poll(true, func() (bool, error) { return cond(), nil }, holds, delay, timeout, opts)
	return err
}

func holds(v bool) bool { return v }

func mustHave(present bool, name string) {
	if !present {
		panic("wait: nil " + name)
	}
}

// A PollOption changes how a poll goes. Of two of a kind the later one holds.
type PollOption struct {
	// Value is for packages that build polls of their own on these, and
	// options of their own on this type. The polls of this package do not look
	// at it.
	Value any

	kind  optionKind
	ctx   context.Context
	pump  func()
	limit time.Duration
}

type optionKind int

const (
	noOption optionKind = iota // the zero PollOption changes nothing
	sleepBeforeRead
	pollContext
	onPoll
	backoff
)

// SleepBeforeRead has the poll sleep (or spin) once before the first op too.
// The time that takes is part of the timeout. It is the kernel's
// sleep_before_read, and the atomic forms' delay_before_read.
func SleepBeforeRead() PollOption { return PollOption{kind: sleepBeforeRead} }

// PollContext has the poll end with ctx.Err() once ctx is done, in the middle
// of a sleep or a delay too. Between sleeps ctx is looked at after op, cond and
// the timeout: a value for which cond holds is a success, and op runs once even
// if ctx is done before (unless [SleepBeforeRead] is given too, whose sleep it
// ends). A nil ctx panics.
func PollContext(ctx context.Context) PollOption {
	mustHave(ctx != nil, "Context")
	return PollOption{kind: pollContext, ctx: ctx}
}

// OnPoll has the poll call f between two polls, before the sleep: the place to
// pump a queue or feed a watchdog. The time that f takes is part of the
// timeout. A nil f panics.
func OnPoll(f func()) PollOption {
	mustHave(f != nil, "OnPoll function")
	return PollOption{kind: onPoll, pump: f}
}

// Backoff has each sleep be twice as long as the one before, up to limit. A
// limit below the poll's sleep changes nothing, and so does any limit for a
// sleep of 0. A negative limit makes the poll fail with [os.ErrInvalid].
func Backoff(limit time.Duration) PollOption { return PollOption{kind: backoff, limit: limit} }

// ErrTimeout is what the error of a poll, a receive or an event that ran out of
// time is, by [errors.Is].
var ErrTimeout = errors.New("wait: timeout")

// A TimeoutError says how a poll, a receive or an event ran out of time. It is
// found by [errors.As] in the error, as a value or a pointer. That error has a method
// Timeout that returns true, and is, by [errors.Is], [ErrTimeout],
// [os.ErrDeadlineExceeded] and [syscall.ETIMEDOUT].
type TimeoutError struct {
	Timeout time.Duration // what the caller allowed
	Elapsed time.Duration // what the wait took
	Polls   int           // how often op or cond ran; 0 where there is none
	Last    any           // the value that op returned last; nil where there is none
}

func (e TimeoutError) Error() string {
	if e.Polls == 0 {
		return fmt.Sprintf("wait: nothing came in %v (waited %v)", e.Timeout, e.Elapsed)
	}
	return fmt.Sprintf("wait: condition not met in %v (%d polls in %v, last value %v)", e.Timeout, e.Polls, e.Elapsed, e.Last)
}

// Is reports whether target is one of the names for a time that ran out.
func (e TimeoutError) Is(target error) bool {
	return target == ErrTimeout || target == os.ErrDeadlineExceeded || target == syscall.ETIMEDOUT
}

// timedOut is the error that polls return: a TimeoutError with the method
// that has the name of one of its fields.
type timedOut struct{ TimeoutError }

func (e *timedOut) Timeout() bool { return true }

func (e *timedOut) As(target any) bool {
	switch t := target.(type) {
	case *TimeoutError:
		*t = e.TimeoutError
	case **TimeoutError:
		*t = &e.TimeoutError
	default:
		return false
	}
	return true
}

// poll is the one loop behind all of them.
func poll[T any](atomic bool, op func() (T, error), cond func(T) bool, sleep, timeout time.Duration, opts []PollOption) (last T, err error) {
	mustHave(cond != nil, "cond")
	p := poller{atomic: atomic, sleep: sleep}
	for _, o := range opts {
		p.apply(o)
	}
	if err := p.check(timeout); err != nil {
		return last, err
	}
	counts.poll.Add(1)
	start := p.begin(timeout)
	now, live := start, true
	if p.sleepFirst && sleep > 0 {
		if now, live = p.rest(start); !live {
			return last, p.ctx.Err()
		}
	}
	for polls := 1; ; polls++ {
		// Whether the time is over is decided before op runs, so that there
		// is a look after the deadline however long this goroutine was kept
		// from running.
		expired := now > p.deadline
		if last, err = op(); err != nil || cond(last) {
			return last, err
		}
		if expired {
			return last, &timedOut{TimeoutError{timeout, time.Duration(clock.Now() - start), polls, last}}
		}
		now = clock.Now()
		if p.tight && now < p.yielder.next {
			continue // no PAUSE: reading the clock takes as long already
		}
		if now, live = p.between(now); !live {
			return last, p.ctx.Err()
		}
	}
}

// A poller is what one poll waits by.
type poller struct {
	atomic     bool
	fake       bool // in a synctest bubble
	tight      bool // nothing to do between two polls
	sleepFirst bool
	sleep      time.Duration
	limit      time.Duration // up to which sleep is doubled
	deadline   int64
	yielder    yielder
	pump       func()
	ctx        context.Context
	done       <-chan struct{}
}

func (p *poller) apply(o PollOption) {
	switch o.kind {
	case sleepBeforeRead:
		p.sleepFirst = true
	case pollContext:
		p.ctx, p.done = o.ctx, o.ctx.Done()
	case onPoll:
		p.pump = o.pump
	case backoff:
		p.limit = o.limit
	}
}

func (p *poller) check(timeout time.Duration) error {
	switch {
	case p.sleep < 0:
		return fmt.Errorf("wait: poll with a sleep of %v: %w", p.sleep, os.ErrInvalid)
	case timeout < 0:
		return fmt.Errorf("wait: poll with a timeout of %v: %w", timeout, os.ErrInvalid)
	case p.limit < 0:
		return fmt.Errorf("wait: poll with a backoff limit of %v: %w", p.limit, os.ErrInvalid)
	}
	return nil
}

// begin fixes the deadline and returns the time from which it counts.
func (p *poller) begin(timeout time.Duration) int64 {
	now := clock.Now()
	p.fake = clock.Fake()
	p.deadline = clock.Never
	if timeout > 0 {
		p.deadline = clock.After(now, timeout)
	}
	p.yielder = newYielder(now, p.deadline-now)
	p.tight = p.sleep == 0 && p.done == nil && p.pump == nil && !p.fake
	return now
}

// between does what is to be done between two polls. It returns a reading of
// the clock from its end, and false if the poll's context ended it.
func (p *poller) between(now int64) (last int64, live bool) {
	if isDone(p.done) {
		return now, false
	}
	if p.pump != nil {
		p.pump()
		now = clock.Now()
	}
	return p.rest(now)
}

// rest waits until the next poll, at most until just past the deadline.
func (p *poller) rest(now int64) (last int64, live bool) {
	if p.sleep == 0 && !p.fake {
		p.yielder.yield(now)
		return now, true
	}
	sleep := p.nextSleep()
	end := clock.After(p.deadline, 1) // the first time at which p has expired
	hard := min(clock.After(now, sleep), end)
	switch {
	case p.fake:
		return p.restFake(now, min(max(hard, now+fakePoll), end))
	case p.atomic:
		p.yielder.yield(now)
		last, live = spinUntil(now, hard, p.done)
		for live && last < hard {
			last = clock.Now()
		}
		return last, live
	default:
		counts.sleepRange.Add(1)
		soft := min(clock.After(now, sleep/4+1), hard)
		return park.Range(now, soft, hard, p.done)
	}
}

// fakePoll is what a poll without a sleep takes in a synctest bubble, where
// time would otherwise stand still for ever.
const fakePoll = int64(time.Microsecond)

func (p *poller) restFake(now, deadline int64) (int64, bool) {
	ctx := p.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	err := fakeSleep(ctx, time.Duration(deadline-now))
	return clock.Now(), err == nil
}

// nextSleep returns the sleep that is due, and backs off for the one after.
func (p *poller) nextSleep() time.Duration {
	sleep := p.sleep
	switch {
	case sleep >= p.limit:
	case sleep > p.limit/2:
		p.sleep = p.limit
	default:
		p.sleep *= 2
	}
	return sleep
}
