package wait_test

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

// A pollForm is one function of the ReadPollTimeout family, in the shape that
// all of them can be called by.
type pollForm struct {
	name      string
	atomic    bool
	valueless bool // whether its TimeoutError.Last is what cond said
	poll      func(op func() int, cond func(int) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (int, error)
}

func call(op func() int) int { return op() }

// withoutError makes an op of the Try forms.
func withoutError(op func() int) func() (int, error) {
	return func() (int, error) { return op(), nil }
}

// conditionOf makes a cond of the forms without a value, which leaves in last
// what it read.
func conditionOf(op func() int, cond func(int) bool, last *int) func() bool {
	return func() bool {
		*last = op()
		return cond(*last)
	}
}

var pollForms = []pollForm{
	{name: "ReadPollTimeout", poll: wait.ReadPollTimeout[int]},
	{name: "ReadPollTimeoutAtomic", atomic: true, poll: wait.ReadPollTimeoutAtomic[int]},
	{
		name: "ReadxPollTimeout",
		poll: func(op func() int, cond func(int) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (int, error) {
			return wait.ReadxPollTimeout(call, op, cond, sleep, timeout, opts...)
		},
	},
	{
		name: "ReadxPollTimeoutAtomic", atomic: true,
		poll: func(op func() int, cond func(int) bool, delay, timeout time.Duration, opts ...wait.PollOption) (int, error) {
			return wait.ReadxPollTimeoutAtomic(call, op, cond, delay, timeout, opts...)
		},
	},
	{
		name: "TryReadPollTimeout",
		poll: func(op func() int, cond func(int) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (int, error) {
			return wait.TryReadPollTimeout(withoutError(op), cond, sleep, timeout, opts...)
		},
	},
	{
		name: "TryReadPollTimeoutAtomic", atomic: true,
		poll: func(op func() int, cond func(int) bool, delay, timeout time.Duration, opts ...wait.PollOption) (int, error) {
			return wait.TryReadPollTimeoutAtomic(withoutError(op), cond, delay, timeout, opts...)
		},
	},
	{
		name: "PollTimeout", valueless: true,
		poll: func(op func() int, cond func(int) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (last int, err error) {
			err = wait.PollTimeout(conditionOf(op, cond, &last), sleep, timeout, opts...)
			return last, err
		},
	},
	{
		name: "PollTimeoutAtomic", atomic: true, valueless: true,
		poll: func(op func() int, cond func(int) bool, delay, timeout time.Duration, opts ...wait.PollOption) (last int, err error) {
			err = wait.PollTimeoutAtomic(conditionOf(op, cond, &last), delay, timeout, opts...)
			return last, err
		},
	},
}

// forEachPoll runs f once for every form, in real time.
func forEachPoll(t *testing.T, f func(t *testing.T, p pollForm)) {
	for _, p := range pollForms {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

// forEachPollInABubble runs f once for every form, in fake time.
func forEachPollInABubble(t *testing.T, f func(t *testing.T, p pollForm)) {
	for _, p := range pollForms {
		t.Run(p.name+" in a bubble", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, p) })
		})
	}
}

// forEachPollInBothTimes is for rules whose test takes little real time and
// does not depend on what exactly a read or a sleep takes.
func forEachPollInBothTimes(t *testing.T, f func(t *testing.T, p pollForm)) {
	forEachPoll(t, f)
	forEachPollInABubble(t, f)
}

// A register counts how often it was read: that is its value. It remembers
// when each read began, and what cond was shown.
type register struct {
	onRead func(n int) // what else the nth read does, or nil
	start  time.Time
	reads  []time.Duration
	shown  []int
}

func newRegister() *register { return &register{start: time.Now()} }

func (r *register) read() int {
	r.reads = append(r.reads, time.Since(r.start))
	n := len(r.reads)
	if r.onRead != nil {
		r.onRead(n)
	}
	return n
}

// reaches is a cond that holds from the nth read on.
func (r *register) reaches(n int) func(int) bool {
	return func(v int) bool {
		r.shown = append(r.shown, v)
		return v >= n
	}
}

func (r *register) never() func(int) bool { return r.reaches(math.MaxInt) }

func (r *register) elapsed() time.Duration { return time.Since(r.start) }

// soon is a loose upper bound: the machine may be busy. What it is held
// against would take hours.
const soon = 30 * time.Second

func TestPollSucceedsAtTheFirstLook(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		for _, sleep := range []time.Duration{0, 1, time.Hour, math.MaxInt64} {
			for _, timeout := range []time.Duration{0, 1, time.Hour, math.MaxInt64} {
				r := newRegister()
				v, err := p.poll(r.read, r.reaches(1), sleep, timeout)
				assert.NoError(t, err)
				assert.Equal(t, 1, v)
				assert.Len(t, r.reads, 1)
				assert.Less(t, r.elapsed(), soon, "sleep %v, timeout %v", sleep, timeout)
			}
		}
	})
}

func TestPollShowsCondEachValueOnce(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		for _, sleep := range []time.Duration{0, time.Microsecond, 200 * time.Microsecond} {
			r := newRegister()
			v, err := p.poll(r.read, r.reaches(5), sleep, time.Minute)
			assert.NoError(t, err)
			assert.Equal(t, 5, v)
			assert.Equal(t, []int{1, 2, 3, 4, 5}, r.shown)
			assert.Len(t, r.reads, 5)
		}
	})
}

func TestPollThatTimesOutShowsCondEachValueOnce(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		for _, sleep := range []time.Duration{0, 50 * time.Microsecond} {
			r := newRegister()
			v, err := p.poll(r.read, r.never(), sleep, 300*time.Microsecond)
			assert.ErrorIs(t, err, wait.ErrTimeout)
			assert.Len(t, r.shown, len(r.reads))
			for i, shown := range r.shown {
				require.Equal(t, i+1, shown)
			}
			assert.Equal(t, len(r.reads), v)
		}
	})
}

func TestPollSucceedsHoweverLateTheValueCame(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		r.onRead = func(int) { time.Sleep(2 * time.Millisecond) }
		v, err := p.poll(r.read, r.reaches(1), time.Microsecond, time.Millisecond)
		assert.NoError(t, err, "the only read ended past the deadline")
		assert.Equal(t, 1, v)
	})
}

func TestPollLooksOnceMoreAfterTheDeadline(t *testing.T) {
	for _, sleep := range []time.Duration{0, time.Microsecond, 200 * time.Microsecond, time.Hour} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				r.onRead = func(int) { time.Sleep(2 * time.Millisecond) }
				v, err := p.poll(r.read, r.reaches(2), sleep, time.Millisecond)
				assert.NoError(t, err, "the first read took the whole time, the second one is good")
				assert.Equal(t, 2, v)
			})
		})
	}
}

func TestPollGivesUpAfterTheLookPastTheDeadline(t *testing.T) {
	const timeout = 500 * time.Microsecond
	for _, sleep := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Hour} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPoll(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				_, err := p.poll(r.read, r.never(), sleep, timeout)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				// Several reads may be past the deadline, where the thread was
				// kept from running between the clock and the read.
				assert.Greater(t, r.reads[len(r.reads)-1], timeout)
				assert.Less(t, r.elapsed(), soon)
			})
			forEachPollInABubble(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				_, err := p.poll(r.read, r.never(), sleep, timeout)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				late := 0
				for _, at := range r.reads {
					if at > timeout {
						late++
					}
				}
				assert.Equal(t, 1, late, "reads past the deadline")
			})
		})
	}
}

func TestPollGivesUpAfterOneMoreLookThoughReadsAreSlow(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		r.onRead = func(int) { time.Sleep(time.Hour) }
		_, err := p.poll(r.read, r.never(), time.Second, time.Minute)
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.Len(t, r.reads, 2)
	})
}

func TestPollWithoutTimeoutEndsOnlyWhenCondHolds(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		v, err := p.poll(r.read, r.reaches(3000), 0, 0)
		assert.NoError(t, err)
		assert.Equal(t, 3000, v)
	})
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		v, err := p.poll(r.read, r.reaches(3000), time.Hour, 0)
		assert.NoError(t, err)
		assert.Equal(t, 3000, v)
		assert.Greater(t, r.elapsed(), 2999*time.Hour/4)
	})
}

func TestPollWithoutSleepEndsAtTheTimeout(t *testing.T) {
	const timeout = 2 * time.Millisecond
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.never(), 0, timeout)
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.GreaterOrEqual(t, r.elapsed(), timeout)
		assert.Less(t, r.elapsed(), soon)
		t.Logf("%d reads in %v", len(r.reads), r.elapsed())
	})
}

func TestPollRefusesNegativeTimesBeforeItReads(t *testing.T) {
	for _, c := range []struct {
		name           string
		sleep, timeout time.Duration
		opts           []wait.PollOption
	}{
		{"sleep", -1, 0, nil},
		{"smallest sleep", math.MinInt64, time.Second, nil},
		{"timeout", 0, -1, nil},
		{"smallest timeout", time.Microsecond, math.MinInt64, nil},
		{"both", -time.Second, -time.Second, nil},
		{"backoff", time.Microsecond, time.Second, []wait.PollOption{wait.Backoff(-1)}},
		{"smallest backoff", 0, 0, []wait.PollOption{wait.Backoff(math.MinInt64)}},
		{"sleep before the first read", -time.Second, time.Second, []wait.PollOption{wait.SleepBeforeRead()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				v, err := p.poll(r.read, r.reaches(1), c.sleep, c.timeout, c.opts...)
				assert.ErrorIs(t, err, os.ErrInvalid)
				assert.NotErrorIs(t, err, wait.ErrTimeout)
				assert.Empty(t, r.reads)
				assert.Zero(t, v)
			})
		})
	}
}

func TestPollPanicsOnWhatIsNil(t *testing.T) {
	one := func() int { return 1 }
	positive := func(v int) bool { return v > 0 }
	for _, c := range []struct {
		name, missing string
		poll          func()
	}{
		{"ReadPollTimeout", "op", func() { _, _ = wait.ReadPollTimeout(nil, positive, 0, 0) }},
		{"ReadPollTimeout", "cond", func() { _, _ = wait.ReadPollTimeout(one, nil, 0, 0) }},
		{"ReadPollTimeoutAtomic", "op", func() { _, _ = wait.ReadPollTimeoutAtomic(nil, positive, 0, 0) }},
		{"ReadPollTimeoutAtomic", "cond", func() { _, _ = wait.ReadPollTimeoutAtomic(one, nil, 0, 0) }},
		{"ReadxPollTimeout", "op", func() { _, _ = wait.ReadxPollTimeout(nil, one, positive, 0, 0) }},
		{"ReadxPollTimeout", "cond", func() { _, _ = wait.ReadxPollTimeout(call, one, nil, 0, 0) }},
		{"ReadxPollTimeoutAtomic", "op", func() { _, _ = wait.ReadxPollTimeoutAtomic(nil, one, positive, 0, 0) }},
		{"ReadxPollTimeoutAtomic", "cond", func() { _, _ = wait.ReadxPollTimeoutAtomic(call, one, nil, 0, 0) }},
		{"TryReadPollTimeout", "op", func() { _, _ = wait.TryReadPollTimeout(nil, positive, 0, 0) }},
		{"TryReadPollTimeout", "cond", func() { _, _ = wait.TryReadPollTimeout(withoutError(one), nil, 0, 0) }},
		{"TryReadPollTimeoutAtomic", "op", func() { _, _ = wait.TryReadPollTimeoutAtomic(nil, positive, 0, 0) }},
		{"TryReadPollTimeoutAtomic", "cond", func() { _, _ = wait.TryReadPollTimeoutAtomic(withoutError(one), nil, 0, 0) }},
		{"PollTimeout", "cond", func() { _ = wait.PollTimeout(nil, 0, 0) }},
		{"PollTimeoutAtomic", "cond", func() { _ = wait.PollTimeoutAtomic(nil, 0, 0) }},
		//lint:ignore SA1012 a nil Context is what is tested
		{"PollContext", "Context", func() { wait.PollContext(nil) }},
		{"OnPoll", "OnPoll function", func() { wait.OnPoll(nil) }},
	} {
		t.Run(c.name+" "+c.missing, func(t *testing.T) {
			assert.PanicsWithValue(t, "wait: nil "+c.missing, c.poll)
		})
	}
}

// timeOut has a poll run out of time and returns what it returned.
func timeOut(t *testing.T, p pollForm, r *register, sleep, timeout time.Duration, opts ...wait.PollOption) (int, error) {
	t.Helper()
	v, err := p.poll(r.read, r.never(), sleep, timeout, opts...)
	require.Error(t, err)
	return v, err
}

func TestPollTimeoutErrorIsByEveryName(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		_, err := timeOut(t, p, newRegister(), 10*time.Microsecond, 100*time.Microsecond)
		for _, target := range []error{wait.ErrTimeout, os.ErrDeadlineExceeded, syscall.ETIMEDOUT} {
			assert.ErrorIs(t, err, target)
		}
		for _, target := range []error{context.DeadlineExceeded, context.Canceled, os.ErrInvalid, errors.ErrUnsupported} {
			assert.NotErrorIs(t, err, target)
		}
		assert.True(t, os.IsTimeout(err))
		timeout, ok := err.(interface{ Timeout() bool })
		require.True(t, ok)
		assert.True(t, timeout.Timeout())
	})
}

func TestPollTimeoutErrorIsFoundAsValueAndPointer(t *testing.T) {
	const timeout = 100 * time.Microsecond
	forEachPoll(t, func(t *testing.T, p pollForm) {
		_, err := timeOut(t, p, newRegister(), 10*time.Microsecond, timeout)
		var value wait.TimeoutError
		require.ErrorAs(t, err, &value)
		var pointer *wait.TimeoutError
		require.ErrorAs(t, err, &pointer)
		assert.Equal(t, timeout, value.Timeout)
		assert.Equal(t, value, *pointer)
		assert.ErrorIs(t, value, wait.ErrTimeout)
		assert.ErrorIs(t, pointer, wait.ErrTimeout)
		assert.Equal(t, err.Error(), value.Error())

		var other *os.PathError
		assert.False(t, errors.As(err, &other))
	})
}

func TestPollTimeoutErrorTellsHowItWent(t *testing.T) {
	for _, timeout := range []time.Duration{1, 10 * time.Microsecond, time.Millisecond} {
		t.Run(timeout.String(), func(t *testing.T) {
			forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				v, err := timeOut(t, p, r, 100*time.Microsecond, timeout)
				var e wait.TimeoutError
				require.ErrorAs(t, err, &e)
				assert.Equal(t, timeout, e.Timeout)
				assert.GreaterOrEqual(t, e.Elapsed, timeout)
				assert.LessOrEqual(t, e.Elapsed, r.elapsed())
				assert.Equal(t, len(r.reads), e.Polls)
				assert.Equal(t, len(r.reads), v)
				if p.valueless {
					assert.Equal(t, false, e.Last)
				} else {
					assert.Equal(t, v, e.Last)
				}
			})
		})
	}
}

func TestPollTimeoutErrorSaysWhatIsKnown(t *testing.T) {
	e := wait.TimeoutError{Timeout: 3 * time.Second, Elapsed: 4 * time.Second, Polls: 17, Last: "busy"}
	for _, part := range []string{"3s", "4s", "17", "busy"} {
		assert.Contains(t, e.Error(), part)
	}
	assert.True(t, strings.HasPrefix(e.Error(), "wait: "))
}

// tryForms are the forms whose op can fail.
var tryForms = []struct {
	name string
	poll func(op func() (int, error), cond func(int) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (int, error)
}{
	{"TryReadPollTimeout", wait.TryReadPollTimeout[int]},
	{"TryReadPollTimeoutAtomic", wait.TryReadPollTimeoutAtomic[int]},
}

func TestErrorOfOpEndsThePollAsItIs(t *testing.T) {
	broken := &os.PathError{Op: "read", Path: "register", Err: syscall.EIO}
	for _, p := range tryForms {
		for _, at := range []int{1, 3} {
			r := newRegister()
			v, err := p.poll(func() (int, error) {
				if n := r.read(); n < at {
					return n, nil
				}
				return 77, broken
			}, r.never(), time.Microsecond, time.Minute)
			assert.True(t, err == error(broken), "%s: %v", p.name, err)
			assert.Equal(t, 77, v, "%s: the value that came with the error", p.name)
			assert.Len(t, r.reads, at, p.name)
			assert.Len(t, r.shown, at-1, "%s: cond does not see that value", p.name)
		}
	}
}

func TestErrorOfOpWinsOverTheTimeout(t *testing.T) {
	broken := errors.New("broken")
	for _, p := range tryForms {
		for _, at := range []int{1, 2} { // the read that crosses the deadline, and the one after it
			r := newRegister()
			_, err := p.poll(func() (int, error) {
				n := r.read()
				time.Sleep(2 * time.Millisecond)
				if n < at {
					return n, nil
				}
				return n, broken
			}, r.never(), time.Microsecond, time.Millisecond)
			assert.True(t, err == broken, "%s: %v", p.name, err)
		}
	}
}

func TestErrorOfOpWinsOverTheContext(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range tryForms {
		_, err := p.poll(func() (int, error) { return 1, broken }, func(int) bool { return false }, 0, 0, wait.PollContext(ctx))
		assert.True(t, err == broken, "%s: %v", p.name, err)
	}
}

// TestPollIsLimitedByTheClock has an op that takes 250 times the delay, as a
// register behind a slow bus does. Delays added up would make 10 ms of it
// into 10000 reads, and 2.5 s.
func TestPollIsLimitedByTheClock(t *testing.T) {
	const cost, timeout = 250 * time.Microsecond, 10 * time.Millisecond
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		r.onRead = func(int) {
			for began := time.Now(); time.Since(began) < cost; {
			}
		}
		_, err := p.poll(r.read, r.never(), time.Microsecond, timeout)
		took := r.elapsed()
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.GreaterOrEqual(t, took, timeout)
		assert.LessOrEqual(t, len(r.reads), int(timeout/cost)+1)
		assert.Less(t, took, time.Second, "loose, but less than the delays added up")
	})
}

func TestPollWaitsBetweenReads(t *testing.T) {
	for _, sleep := range []time.Duration{1, 100, time.Microsecond, 50 * time.Microsecond, 600 * time.Microsecond} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
				least := sleep / 4
				if p.atomic {
					least = sleep
				}
				r := newRegister()
				_, err := p.poll(r.read, r.reaches(5), sleep, 0)
				require.NoError(t, err)
				for i := 1; i < len(r.reads); i++ {
					assert.GreaterOrEqual(t, r.reads[i]-r.reads[i-1], least, "before read %d", i+1)
				}
			})
		})
	}
}

func TestPollCutsItsLastSleep(t *testing.T) {
	for _, sleep := range []time.Duration{time.Minute, time.Hour, math.MaxInt64} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPoll(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				_, err := p.poll(r.read, r.never(), sleep, time.Millisecond)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				assert.Len(t, r.reads, 2)
				assert.Less(t, r.elapsed(), soon)
			})
			forEachPollInABubble(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				_, err := p.poll(r.read, r.never(), sleep, 10*time.Second)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				assert.Len(t, r.reads, 2)
				assert.GreaterOrEqual(t, r.elapsed(), 10*time.Second)
				assert.LessOrEqual(t, r.elapsed(), 10*time.Second+time.Microsecond)
			})
		})
	}
}

func TestSleepBeforeReadSleepsBeforeTheFirstRead(t *testing.T) {
	for _, sleep := range []time.Duration{0, 1, 10 * time.Microsecond, 2 * time.Millisecond} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
				least := sleep / 4
				if p.atomic {
					least = sleep
				}
				r := newRegister()
				v, err := p.poll(r.read, r.reaches(1), sleep, time.Minute, wait.SleepBeforeRead())
				assert.NoError(t, err)
				assert.Equal(t, 1, v)
				require.Len(t, r.reads, 1)
				assert.GreaterOrEqual(t, r.reads[0], least)
			})
		})
	}
}

func TestPollWithoutSleepBeforeReadReadsAtOnce(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(2), time.Hour, 0)
		assert.NoError(t, err)
		assert.Zero(t, r.reads[0])
	})
}

func TestSleepBeforeReadCountsTowardsTheTimeout(t *testing.T) {
	const sleep, timeout = 4 * time.Second, 10 * time.Second
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.never(), sleep, timeout, wait.SleepBeforeRead())
		var e wait.TimeoutError
		require.ErrorAs(t, err, &e)
		assert.GreaterOrEqual(t, e.Elapsed, timeout)
		assert.LessOrEqual(t, e.Elapsed, timeout+time.Microsecond)
		assert.Equal(t, e.Elapsed, r.elapsed())
	})
}

func TestSleepBeforeReadLongerThanTheTimeoutStillReadsOnce(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		for _, good := range []bool{true, false} {
			r := newRegister()
			v, err := p.poll(r.read, func(int) bool { return good }, time.Hour, time.Millisecond, wait.SleepBeforeRead())
			if good {
				assert.NoError(t, err)
			} else {
				assert.ErrorIs(t, err, wait.ErrTimeout)
			}
			assert.Equal(t, 1, v)
			assert.Len(t, r.reads, 1)
			assert.Greater(t, r.reads[0], time.Millisecond)
			assert.Less(t, r.elapsed(), soon)
		}
	})
}

func TestPollLooksOnceThoughItsContextIsDone(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the cause is not what a poll returns"))
		for _, sleep := range []time.Duration{0, time.Microsecond, time.Hour} {
			r := newRegister()
			v, err := p.poll(r.read, r.reaches(1), sleep, 0, wait.PollContext(ctx))
			assert.NoError(t, err, "a value for which cond holds is a success")
			assert.Equal(t, 1, v)

			r = newRegister()
			v, err = p.poll(r.read, r.never(), sleep, 0, wait.PollContext(ctx))
			assert.True(t, err == context.Canceled, "not ctx.Err() as it is: %v", err)
			assert.Equal(t, 1, v)
			assert.Len(t, r.reads, 1)
			assert.Less(t, r.elapsed(), soon)
		}
	})
}

func TestContextDoneBeforeEndsTheSleepBeforeRead(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := newRegister()
		v, err := p.poll(r.read, r.reaches(1), time.Hour, 0, wait.PollContext(ctx), wait.SleepBeforeRead())
		assert.True(t, err == context.Canceled, "%v", err)
		assert.Zero(t, v)
		assert.Empty(t, r.reads)
		assert.Less(t, r.elapsed(), soon)
	})
}

func TestCancelDuringOpEndsThePollAfterThatLook(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		for _, sleep := range []time.Duration{0, time.Microsecond, time.Hour} {
			ctx, cancel := context.WithCancel(t.Context())
			r := newRegister()
			r.onRead = func(n int) {
				if n == 1 {
					cancel()
				}
			}
			v, err := p.poll(r.read, r.never(), sleep, 0, wait.PollContext(ctx))
			assert.True(t, err == context.Canceled, "%v", err)
			assert.Equal(t, 1, v)
		}
	})
}

func TestCancelEndsASleepBetweenReads(t *testing.T) {
	for _, sleep := range []time.Duration{100 * time.Millisecond, 10 * time.Second, math.MaxInt64} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPoll(t, func(t *testing.T, p pollForm) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := newRegister()
				r.onRead = func(int) { time.AfterFunc(2*time.Millisecond, cancel) }
				v, err := p.poll(r.read, r.never(), sleep, 0, wait.PollContext(ctx))
				assert.True(t, err == context.Canceled, "%v", err)
				assert.NotErrorIs(t, err, wait.ErrTimeout)
				assert.Equal(t, len(r.reads), v)
				assert.Less(t, r.elapsed(), 5*time.Second, "loose: the machine may be busy")
			})
			forEachPollInABubble(t, func(t *testing.T, p pollForm) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Millisecond, cancel)
				r := newRegister()
				v, err := p.poll(r.read, r.never(), sleep, 0, wait.PollContext(ctx))
				assert.True(t, err == context.Canceled, "%v", err)
				assert.Equal(t, 1, v)
				assert.Equal(t, time.Millisecond, r.elapsed())
			})
		})
	}
}

func TestDeadlineOfTheContextIsNoTimeoutError(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		v, err := p.poll(r.read, r.never(), 500*time.Microsecond, time.Hour, wait.PollContext(ctx))
		assert.True(t, err == context.DeadlineExceeded, "%v", err)
		assert.NotErrorIs(t, err, wait.ErrTimeout)
		var e *wait.TimeoutError
		assert.False(t, errors.As(err, &e))
		assert.Equal(t, len(r.reads), v)
		assert.GreaterOrEqual(t, r.elapsed(), 2*time.Millisecond)
	})
}

func TestPollWithALiveContextTimesOut(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := newRegister()
		_, err := p.poll(r.read, r.never(), 300*time.Microsecond, time.Millisecond, wait.PollContext(ctx))
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.GreaterOrEqual(t, r.elapsed(), time.Millisecond)
	})
}

func TestOnPollRunsBetweenTwoPolls(t *testing.T) {
	for _, sleep := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
				var events []string
				r := newRegister()
				r.onRead = func(int) { events = append(events, "op") }
				cond := func(v int) bool {
					events = append(events, "cond")
					return v == 3
				}
				pump := wait.OnPoll(func() { events = append(events, "pump") })
				_, err := p.poll(r.read, cond, sleep, time.Minute, pump)
				assert.NoError(t, err)
				assert.Equal(t, "op cond pump op cond pump op cond", strings.Join(events, " "))
			})
		})
	}
}

func TestOnPollRunsBeforeTheSleep(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		var pumped []time.Duration
		_, err := p.poll(r.read, r.reaches(4), time.Minute, 0, wait.SleepBeforeRead(),
			wait.OnPoll(func() { pumped = append(pumped, r.elapsed()) }))
		assert.NoError(t, err)
		assert.Equal(t, r.reads[:3], pumped)
	})
}

func TestTimeOfOnPollIsPartOfTheTimeout(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.never(), time.Second, time.Minute, wait.OnPoll(func() { time.Sleep(time.Hour) }))
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.Len(t, r.reads, 2)
		assert.LessOrEqual(t, r.elapsed(), time.Hour+time.Second)
	})
}

// gaps returns the times between the reads.
func (r *register) gaps() (gaps []time.Duration) {
	for i := 1; i < len(r.reads); i++ {
		gaps = append(gaps, r.reads[i]-r.reads[i-1])
	}
	return gaps
}

func TestBackoffDoublesTheSleepUpToItsLimit(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name         string
		sleep, limit time.Duration
		want         []time.Duration
	}{
		{"a multiple", s, 8 * s, []time.Duration{s, 2 * s, 4 * s, 8 * s, 8 * s, 8 * s}},
		{"not a multiple", s, 5 * s, []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s}},
		{"just below the double", s, 2*s - 1, []time.Duration{s, 2*s - 1, 2*s - 1}},
		{"just the double", s, 2 * s, []time.Duration{s, 2 * s, 2 * s}},
		{"the sleep itself", s, s, []time.Duration{s, s, s}},
		{"below the sleep", s, s / 2, []time.Duration{s, s, s}},
		{"zero", s, 0, []time.Duration{s, s, s}},
		{"the longest", s, math.MaxInt64, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s}},
	} {
		t.Run(c.name, func(t *testing.T) {
			forEachPollInABubble(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				_, err := p.poll(r.read, r.reaches(len(c.want)+1), c.sleep, 0, wait.Backoff(c.limit))
				assert.NoError(t, err)
				assert.Equal(t, c.want, r.gaps())
			})
		})
	}
}

func TestBackoffDoublesTheSleepBeforeReadToo(t *testing.T) {
	const s = time.Second
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(4), s, 0, wait.Backoff(4*s), wait.SleepBeforeRead())
		assert.NoError(t, err)
		assert.Equal(t, []time.Duration{s, 3 * s, 7 * s, 11 * s}, r.reads)
	})
}

func TestBackoffOfHugeSleepsDoesNotWrap(t *testing.T) {
	const year = 365 * 24 * time.Hour
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(3), 150*year, 0, wait.Backoff(math.MaxInt64))
		assert.NoError(t, err)
		// Twice that is more than a Duration holds. The second sleep, from 2149
		// on, ends where the runtime's time does, in 2262.
		assert.Equal(t, 150*year, r.gaps()[0])
		assert.Greater(t, r.gaps()[1], 100*year)
	})
}

func TestBackoffWithoutSleepDoesNotSleep(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(100), 0, 0, wait.Backoff(time.Hour))
		assert.NoError(t, err)
		assert.Less(t, r.elapsed(), soon)
	})
}

func TestBackoffDoesNotPassTheDeadline(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.never(), time.Second, 10*time.Second, wait.Backoff(time.Hour))
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.Len(t, r.reads, 5) // at 0, 1, 3, 7 and 10 s
		assert.LessOrEqual(t, r.elapsed(), 10*time.Second+time.Microsecond)
	})
}

func TestLaterOptionOfAKindHolds(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		done, cancel := context.WithCancel(t.Context())
		cancel()
		for _, c := range []struct {
			name string
			opts []wait.PollOption
			err  error
		}{
			{"done, live", []wait.PollOption{wait.PollContext(done), wait.PollContext(t.Context())}, nil},
			{"done, without Done", []wait.PollOption{wait.PollContext(done), wait.PollContext(context.Background())}, nil},
			{"live, done", []wait.PollOption{wait.PollContext(t.Context()), wait.PollContext(done)}, context.Canceled},
		} {
			r := newRegister()
			_, err := p.poll(r.read, r.reaches(3), time.Second, 0, c.opts...)
			assert.Equal(t, c.err, err, c.name)
		}

		var first, second int
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(3), time.Second, 0,
			wait.OnPoll(func() { first++ }), wait.Backoff(-1), wait.OnPoll(func() { second++ }), wait.Backoff(2*time.Second))
		assert.NoError(t, err)
		assert.Zero(t, first)
		assert.Equal(t, 2, second)

		r = newRegister()
		_, err = p.poll(r.read, r.reaches(4), time.Second, 0, wait.Backoff(time.Hour), wait.Backoff(2*time.Second))
		assert.NoError(t, err)
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 2 * time.Second}, r.gaps())
	})
}

func TestZeroOptionChangesNothing(t *testing.T) {
	forEachPollInABubble(t, func(t *testing.T, p pollForm) {
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(3), time.Second, time.Minute, wait.PollOption{})
		assert.NoError(t, err)
		assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, r.reads)

		r = newRegister()
		_, err = p.poll(r.read, r.reaches(3), time.Second, time.Minute, wait.Backoff(2*time.Second), wait.PollOption{})
		assert.NoError(t, err)
		assert.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, r.reads)
	})
}

func TestReadxPollTimeoutReadsTheAddress(t *testing.T) {
	for name, poll := range map[string]func(func(*uint32) uint32, *uint32, func(uint32) bool, time.Duration, time.Duration, ...wait.PollOption) (uint32, error){
		"ReadxPollTimeout":       wait.ReadxPollTimeout[*uint32, uint32],
		"ReadxPollTimeoutAtomic": wait.ReadxPollTimeoutAtomic[*uint32, uint32],
	} {
		var status uint32
		v, err := poll(func(addr *uint32) uint32 {
			assert.Same(t, &status, addr, name)
			return atomic.AddUint32(addr, 1)
		}, &status, func(v uint32) bool { return v == 3 }, time.Microsecond, time.Minute)
		assert.NoError(t, err, name)
		assert.EqualValues(t, 3, v, name)
		assert.EqualValues(t, 3, status, name)
	}
}

func TestLongestTimeoutDoesNotWrap(t *testing.T) {
	forEachPollInBothTimes(t, func(t *testing.T, p pollForm) {
		for _, sleep := range []time.Duration{0, 1, 20 * time.Microsecond} {
			r := newRegister()
			v, err := p.poll(r.read, r.reaches(20), sleep, math.MaxInt64, wait.Backoff(100*time.Microsecond))
			assert.NoError(t, err)
			assert.Equal(t, 20, v)
		}
	})
}

func TestLongestSleepDoesNotWrap(t *testing.T) {
	for _, timeout := range []time.Duration{0, math.MaxInt64} {
		for name, opts := range map[string][]wait.PollOption{
			"":                      nil,
			", Backoff":             {wait.Backoff(math.MaxInt64)},
			", sleeping before too": {wait.SleepBeforeRead()},
		} {
			t.Run(timeout.String()+name, func(t *testing.T) {
				forEachPoll(t, func(t *testing.T, p pollForm) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					defer cancel()
					r := newRegister()
					_, err := p.poll(r.read, r.never(), math.MaxInt64, timeout, append(opts, wait.PollContext(ctx))...)
					assert.True(t, err == context.DeadlineExceeded, "%v", err)
					assert.LessOrEqual(t, len(r.reads), 1)
				})
			})
		}
	}
}

func TestPollsAllocateNothing(t *testing.T) {
	var reads int
	op := func() int { reads++; return reads }
	try := func() (int, error) { reads++; return reads, nil }
	fourth := func(v int) bool { return v == 4 }
	is := func() bool { reads++; return reads == 4 }
	forms := []struct {
		name string
		poll func(sleep time.Duration, opts []wait.PollOption) error
	}{
		{"ReadPollTimeout", func(s time.Duration, o []wait.PollOption) error {
			_, err := wait.ReadPollTimeout(op, fourth, s, time.Minute, o...)
			return err
		}},
		{"ReadPollTimeoutAtomic", func(s time.Duration, o []wait.PollOption) error {
			_, err := wait.ReadPollTimeoutAtomic(op, fourth, s, time.Minute, o...)
			return err
		}},
		{"ReadxPollTimeout", func(s time.Duration, o []wait.PollOption) error {
			_, err := wait.ReadxPollTimeout(call, op, fourth, s, time.Minute, o...)
			return err
		}},
		{"ReadxPollTimeoutAtomic", func(s time.Duration, o []wait.PollOption) error {
			_, err := wait.ReadxPollTimeoutAtomic(call, op, fourth, s, time.Minute, o...)
			return err
		}},
		{"TryReadPollTimeout", func(s time.Duration, o []wait.PollOption) error {
			_, err := wait.TryReadPollTimeout(try, fourth, s, time.Minute, o...)
			return err
		}},
		{"TryReadPollTimeoutAtomic", func(s time.Duration, o []wait.PollOption) error {
			_, err := wait.TryReadPollTimeoutAtomic(try, fourth, s, time.Minute, o...)
			return err
		}},
		{"PollTimeout", func(s time.Duration, o []wait.PollOption) error {
			return wait.PollTimeout(is, s, time.Minute, o...)
		}},
		{"PollTimeoutAtomic", func(s time.Duration, o []wait.PollOption) error {
			return wait.PollTimeoutAtomic(is, s, time.Minute, o...)
		}},
		{"options made for the call", func(s time.Duration, _ []wait.PollOption) error {
			return wait.PollTimeout(is, s, time.Minute, wait.Backoff(2*s), wait.SleepBeforeRead())
		}},
		{"context made an option for the call", func(s time.Duration, _ []wait.PollOption) error {
			return wait.PollTimeoutAtomic(is, s, time.Minute, wait.PollContext(t.Context()))
		}},
	}
	all := []wait.PollOption{
		wait.SleepBeforeRead(), wait.OnPoll(func() {}), wait.Backoff(20 * time.Microsecond), wait.PollContext(context.Background()),
	}
	live := []wait.PollOption{wait.PollContext(t.Context())} // has a Done channel
	for _, c := range []struct {
		name   string
		opts   []wait.PollOption
		pooled bool // whether its sleeps take their timer from a sync.Pool
	}{{"none", nil, false}, {"all", all, false}, {"a live context", live, true}} {
		t.Run("options: "+c.name, func(t *testing.T) {
			for _, f := range forms {
				for _, sleep := range []time.Duration{0, time.Microsecond, 10 * time.Microsecond} {
					if c.pooled && underRace && sleep > 0 {
						continue // the race detector has sync.Pool forget things at random
					}
					allocs := testing.AllocsPerRun(10, func() {
						reads = 0
						if err := f.poll(sleep, c.opts); err != nil {
							panic(err)
						}
					})
					assert.Zero(t, allocs, "%s with a sleep of %v", f.name, sleep)
				}
			}
		})
	}
}

func TestPollsOfManyGoroutinesKeepApart(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		opts := []wait.PollOption{wait.PollContext(t.Context()), wait.Backoff(100 * time.Microsecond)}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				r := newRegister()
				v, err := p.poll(r.read, r.reaches(3+i), time.Duration(i)*time.Microsecond, time.Minute, opts...)
				assert.NoError(t, err)
				assert.Equal(t, 3+i, v)

				r = newRegister()
				timeout := time.Duration(1+i) * 50 * time.Microsecond
				_, err = p.poll(r.read, r.never(), time.Duration(i)*time.Microsecond, timeout, opts...)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				assert.GreaterOrEqual(t, r.elapsed(), timeout)
			})
		}
		wg.Wait()
	})
}

// TestPollSharesTheOnlyP has a poll wait for what another goroutine does by
// and by. If only the runtime's preemption let that one run, a turn of it
// would take 10 ms, in which thousands of reads fit.
func TestPollSharesTheOnlyP(t *testing.T) {
	const turns, readsPerTurn = 5, 1000
	for _, sleep := range []time.Duration{0, time.Microsecond, 3 * time.Microsecond, 50 * time.Microsecond} {
		t.Run(sleep.String(), func(t *testing.T) {
			forEachPoll(t, func(t *testing.T, p pollForm) {
				atGOMAXPROCS(t, 1, func() {
					var taken atomic.Int64
					var other sync.WaitGroup
					ctx, stop := context.WithCancel(t.Context())
					other.Go(func() {
						for ctx.Err() == nil {
							taken.Add(1)
							runtime.Gosched()
						}
					})
					var reads int
					_, err := p.poll(func() int { reads++; return int(taken.Load()) },
						func(v int) bool { return v >= turns }, sleep, time.Minute)
					stop()
					other.Wait()
					assert.NoError(t, err)
					assert.LessOrEqual(t, reads, turns*readsPerTurn)
				})
			})
		})
	}
}

func TestPollWorksAtAnyGOMAXPROCS(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		t.Run(strconv.Itoa(procs), func(t *testing.T) {
			atGOMAXPROCS(t, procs, func() {
				forEachPoll(t, func(t *testing.T, p pollForm) {
					for _, sleep := range []time.Duration{0, time.Microsecond, 30 * time.Microsecond} {
						r := newRegister()
						_, err := p.poll(r.read, r.never(), sleep, 200*time.Microsecond)
						assert.ErrorIs(t, err, wait.ErrTimeout)
						assert.GreaterOrEqual(t, r.elapsed(), 200*time.Microsecond)
					}
				})
			})
		})
	}
}

func TestStatsCountPolls(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		before := wait.ReadStats()
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(3), 10*time.Microsecond, 0)
		require.NoError(t, err)
		assert.EqualValues(t, 1, wait.ReadStats().Polls-before.Polls)
	})
}

func TestStatsCountSleepsBetweenPollsAsSleepRanges(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		before := wait.ReadStats()
		r := newRegister()
		_, err := p.poll(r.read, r.reaches(3), 10*time.Microsecond, 0)
		require.NoError(t, err)
		want := 2
		if p.atomic {
			want = 0
		}
		assert.EqualValues(t, want, wait.ReadStats().SleepRanges-before.SleepRanges)
	})
}

func TestPollTimesOutAtTheRightFakeTime(t *testing.T) {
	for _, c := range []struct{ sleep, timeout time.Duration }{
		{0, 1},
		{0, time.Millisecond},
		{1, time.Microsecond},
		{time.Second, time.Second},
		{7 * time.Second, time.Hour},
		{time.Hour, time.Minute},
		{30 * 24 * time.Hour, 10 * 365 * 24 * time.Hour},
	} {
		t.Run(c.sleep.String()+" "+c.timeout.String(), func(t *testing.T) {
			forEachPollInABubble(t, func(t *testing.T, p pollForm) {
				r := newRegister()
				_, err := p.poll(r.read, r.never(), c.sleep, c.timeout)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				assert.GreaterOrEqual(t, r.elapsed(), c.timeout)
				assert.LessOrEqual(t, r.elapsed(), c.timeout+time.Microsecond)
			})
		})
	}
}

func TestPollInABubbleLetsItsTimePass(t *testing.T) {
	for _, c := range []struct{ sleep, until time.Duration }{
		{0, 2 * time.Millisecond},
		{1, time.Millisecond},
		{time.Minute, 24 * time.Hour},
	} {
		t.Run(c.sleep.String(), func(t *testing.T) {
			forEachPollInABubble(t, func(t *testing.T, p pollForm) {
				var value atomic.Int64
				go func() {
					for range 4 {
						time.Sleep(c.until / 4)
						value.Add(1)
					}
				}()
				start := time.Now()
				v, err := p.poll(func() int { return int(value.Load()) }, func(v int) bool { return v == 4 }, c.sleep, 0)
				assert.NoError(t, err)
				assert.Equal(t, 4, v)
				assert.GreaterOrEqual(t, time.Since(start), c.until)
				assert.LessOrEqual(t, time.Since(start), c.until+c.sleep+time.Microsecond)
			})
		})
	}
}

// FuzzPollNeverTimesOutEarly takes its arguments in microseconds, small ones
// so that the polls in real time are short.
func FuzzPollNeverTimesOutEarly(f *testing.F) {
	f.Add(uint8(0), uint16(0), uint16(1), uint16(0), uint16(0))
	f.Add(uint8(1), uint16(1), uint16(1), uint16(0), uint16(0))
	f.Add(uint8(2), uint16(1), uint16(300), uint16(90), uint16(0))
	f.Add(uint8(3), uint16(300), uint16(10), uint16(0), uint16(400))
	f.Add(uint8(4), uint16(10), uint16(100), uint16(99), uint16(15))
	f.Add(uint8(5|8), uint16(40), uint16(200), uint16(1), uint16(80))
	f.Add(uint8(6|16), uint16(60), uint16(399), uint16(3), uint16(60))
	f.Add(uint8(7|8|16), uint16(399), uint16(399), uint16(99), uint16(399))
	f.Add(uint8(0|8|16), uint16(0), uint16(2), uint16(5), uint16(1))
	f.Fuzz(func(t *testing.T, form uint8, sleep, timeout, cost, limit uint16) {
		p := pollForms[form%8]
		micros := func(n, below uint16) time.Duration { return time.Duration(n%below) * time.Microsecond }
		run := func(t *testing.T) (*register, wait.TimeoutError) {
			opts := []wait.PollOption{wait.Backoff(micros(limit, 400))}
			if form&8 != 0 {
				opts = append(opts, wait.SleepBeforeRead())
			}
			if form&16 != 0 {
				opts = append(opts, wait.PollContext(t.Context()))
			}
			r := newRegister()
			r.onRead = func(int) {
				if cost := micros(cost, 100); cost > 0 {
					time.Sleep(cost)
				}
			}
			v, err := p.poll(r.read, r.never(), micros(sleep, 400), time.Microsecond+micros(timeout, 400), opts...)
			var e wait.TimeoutError
			require.ErrorAs(t, err, &e)
			require.GreaterOrEqual(t, e.Elapsed, e.Timeout)
			require.GreaterOrEqual(t, r.elapsed(), e.Elapsed)
			require.Equal(t, len(r.reads), e.Polls)
			require.Equal(t, len(r.reads), v)
			require.Len(t, r.shown, len(r.reads))
			require.Greater(t, r.reads[len(r.reads)-1], e.Timeout)
			return r, e
		}
		run(t)
		synctest.Test(t, func(t *testing.T) {
			r, e := run(t)
			// One read may be under way at the deadline, and one comes after it.
			require.LessOrEqual(t, r.elapsed(), e.Timeout+2*micros(cost, 100)+1)
		})
	})
}
