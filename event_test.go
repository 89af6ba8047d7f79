package wait_test

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
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

// inBothTimes runs f in real and in fake time.
func inBothTimes(t *testing.T, f func(t *testing.T)) {
	t.Run("real time", f)
	t.Run("fake time", func(t *testing.T) { synctest.Test(t, f) })
}

// A receiver is one form of receive. It waits for ever, but for ctx.
type receiver struct {
	name string
	recv func(ctx context.Context, ch <-chan int, spin time.Duration) (int, error)
}

var receivers = []receiver{
	{"RecvTimeout", func(_ context.Context, ch <-chan int, spin time.Duration) (int, error) {
		return wait.RecvTimeout(ch, spin, 0)
	}},
	{"RecvTimeout with a timeout", func(_ context.Context, ch <-chan int, spin time.Duration) (int, error) {
		return wait.RecvTimeout(ch, spin, time.Minute)
	}},
	{"RecvContext", func(ctx context.Context, ch <-chan int, spin time.Duration) (int, error) {
		return wait.RecvContext(ctx, ch, spin)
	}},
	{"RecvContext without Done", func(_ context.Context, ch <-chan int, spin time.Duration) (int, error) {
		return wait.RecvContext(context.Background(), ch, spin)
	}},
}

// forEachReceive runs f for every form in both times, with and without a spin.
func forEachReceive(t *testing.T, f func(t *testing.T, recv func(<-chan int) (int, error))) {
	for _, r := range receivers {
		for _, spin := range []time.Duration{0, 200 * time.Microsecond, math.MaxInt64} {
			t.Run(r.name+", spin "+spin.String(), func(t *testing.T) {
				inBothTimes(t, func(t *testing.T) {
					f(t, func(ch <-chan int) (int, error) { return r.recv(t.Context(), ch, spin) })
				})
			})
		}
	}
}

func TestReceiveTakesAValue(t *testing.T) {
	for name, send := range map[string]func(c chan int){
		"that is there":         func(c chan int) { c <- 42 },
		"that comes soon":       func(c chan int) { go func() { c <- 42 }() },
		"that comes later":      func(c chan int) { time.AfterFunc(3*time.Millisecond, func() { c <- 42 }) },
		"left by a closed one":  func(c chan int) { c <- 42; close(c) },
		"that the sender holds": func(c chan int) { c <- 41; go func() { c <- 42 }(); <-c },
	} {
		t.Run(name, func(t *testing.T) {
			forEachReceive(t, func(t *testing.T, recv func(<-chan int) (int, error)) {
				c := make(chan int, 1)
				send(c)
				v, err := recv(c)
				assert.NoError(t, err)
				assert.Equal(t, 42, v)
			})
		})
	}
}

func TestReceiveTellsAClosedChannel(t *testing.T) {
	for name, after := range map[string]time.Duration{"before": 0, "meanwhile": 3 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			forEachReceive(t, func(t *testing.T, recv func(<-chan int) (int, error)) {
				c := make(chan int)
				if after == 0 {
					close(c)
				} else {
					time.AfterFunc(after, func() { close(c) })
				}
				v, err := recv(c)
				assert.ErrorIs(t, err, wait.ErrClosed)
				assert.NotErrorIs(t, err, wait.ErrTimeout)
				assert.Zero(t, v)
			})
		})
	}
}

// mustTimeOut checks everything that the error of a timeout is.
func mustTimeOut(t *testing.T, err error, timeout time.Duration, polls int) {
	t.Helper()
	assert.ErrorIs(t, err, wait.ErrTimeout)
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.ErrorIs(t, err, syscall.ETIMEDOUT)
	assert.True(t, os.IsTimeout(err))
	var found wait.TimeoutError
	require.ErrorAs(t, err, &found)
	assert.Equal(t, timeout, found.Timeout)
	assert.GreaterOrEqual(t, found.Elapsed, timeout)
	assert.Equal(t, polls, found.Polls)
}

func TestReceiveTimesOutAndNotEarly(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		for name, ch := range map[string]chan int{"empty": make(chan int), "nil": nil} {
			for _, spin := range []time.Duration{0, 50 * time.Microsecond, time.Hour} {
				for _, timeout := range []time.Duration{1, 20 * time.Microsecond, time.Millisecond, 1900 * time.Microsecond, 4 * time.Millisecond} {
					start := time.Now()
					v, err := wait.RecvTimeout(ch, spin, timeout)
					assert.GreaterOrEqual(t, time.Since(start), timeout, name)
					mustTimeOut(t, err, timeout, 0)
					assert.Zero(t, v)
				}
			}
		}
	})
}

// Of two timers of a bubble that are due at once any may be first. With one P,
// where it is the receive's, its goroutine runs after the sender's: it was woken
// by the timeout, and the value is there.
func TestReceiveTakesAValueThatComesWithTheTimeoutOnFakeTime(t *testing.T) {
	const timeout, rounds = time.Second, 100
	atGOMAXPROCS(t, 1, func() {
		synctest.Test(t, func(t *testing.T) {
			received := 0
			for range rounds {
				c := make(chan int, 1)
				go func() {
					time.Sleep(timeout)
					c <- 1
				}()
				v, err := wait.RecvTimeout(c, 0, timeout)
				if err == nil {
					received++
				}
				synctest.Wait()
				assert.Equal(t, 1-v, len(c), "received or left there")
			}
			assert.NotZero(t, received)
		})
	})
}

func TestReceiveTimeoutSaysWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := wait.RecvTimeout(make(chan int), 0, time.Second)
		assert.EqualError(t, err, "wait: nothing came in 1s (waited 1s)")
	})
}

func TestReceiveWithoutATimeoutWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int)
		time.AfterFunc(100*365*24*time.Hour, func() { c <- 1 })
		v, err := wait.RecvTimeout(c, 0, 0)
		assert.NoError(t, err)
		assert.Equal(t, 1, v)
	})
}

func TestReceiveWithTheLongestTimeoutDoesNotWrap(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		c := make(chan int)
		time.AfterFunc(5*time.Millisecond, func() { c <- 1 })
		v, err := wait.RecvTimeout(c, math.MaxInt64, math.MaxInt64)
		assert.NoError(t, err)
		assert.Equal(t, 1, v)
	})
}

func TestNegativeTimesAreRefusedBeforeAnythingHappens(t *testing.T) {
	c := make(chan int, 1)
	c <- 1
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	var event wait.Event
	event.Set()
	for name, call := range map[string]func() error{
		"RecvTimeout spin":    func() error { _, err := wait.RecvTimeout(c, -1, 1); return err },
		"RecvTimeout timeout": func() error { _, err := wait.RecvTimeout(c, 1, -1); return err },
		"RecvContext spin":    func() error { _, err := wait.RecvContext(t.Context(), c, math.MinInt64); return err },
		"EventTimeout": func() error {
			_, err := wait.EventTimeout(func() bool { t.Error("cond was called"); return true }, wake, -1)
			return err
		},
		"Event.WaitTimeout": func() error { return event.WaitTimeout(-1) },
		"Event.WaitCond": func() error {
			_, err := event.WaitCond(func() bool { t.Error("cond was called"); return true }, -time.Second)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, call(), os.ErrInvalid)
			assert.Len(t, c, 1)
			assert.Len(t, wake, 1)
		})
	}
}

func TestNilFunctionsAndContextsPanic(t *testing.T) {
	var event wait.Event
	var none context.Context
	assert.PanicsWithValue(t, "wait: nil cond", func() { _, _ = wait.EventTimeout(nil, nil, -1) })
	assert.PanicsWithValue(t, "wait: nil cond", func() { _, _ = event.WaitCond(nil, -1) })
	assert.PanicsWithValue(t, "wait: nil Context", func() { _, _ = wait.RecvContext(none, make(chan int), 0) })
	assert.PanicsWithValue(t, "wait: nil Context", func() { _ = event.WaitContext(none) })
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		for _, spin := range []time.Duration{0, time.Millisecond, time.Hour} {
			for _, ch := range []chan int{nil, make(chan int)} {
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Millisecond)
				_, err := wait.RecvContext(ctx, ch, spin)
				assert.Equal(t, context.DeadlineExceeded, err)
				_, err = wait.RecvContext(ctx, ch, spin)
				assert.Equal(t, context.DeadlineExceeded, err, "done before")
				cancel()
			}
		}
	})
}

func TestReceiveTakesAValueThatIsThereThoughTheContextIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	inBothTimes(t, func(t *testing.T) {
		c := make(chan int, 1)
		for range 100 {
			c <- 1
			_, err := wait.RecvContext(ctx, c, 0)
			require.NoError(t, err)
		}
	})
}

// Many receivers that give up all the time must not lose a value, nor see one
// twice.
func TestReceivesThatTimeOutLoseNothing(t *testing.T) {
	const each, senders = 3000, 4
	c := make(chan int)
	seen := make([]atomic.Int32, each*senders)
	var sending, receiving sync.WaitGroup
	for i := range senders {
		sending.Go(func() {
			for k := range each {
				c <- i*each + k
			}
		})
	}
	for i := range 8 {
		receiving.Go(func() {
			for k := 0; ; k++ {
				v, err := wait.RecvTimeout(c, time.Duration(k%3)*2*time.Microsecond, time.Duration(1+(i*5+k)%40)*time.Microsecond)
				switch {
				case err == nil:
					seen[v].Add(1)
				case errors.Is(err, wait.ErrClosed):
					return
				}
			}
		})
	}
	sending.Wait()
	close(c)
	receiving.Wait()
	for v := range seen {
		require.EqualValues(t, 1, seen[v].Load(), "value %d", v)
	}
}

func TestReceivesAllocateNothing(t *testing.T) {
	c, answer := make(chan int), make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for v := range c {
			answer <- v
		}
	}()
	defer close(c)
	for name, recv := range map[string]func() (int, error){
		"parked":             func() (int, error) { return wait.RecvTimeout(answer, 0, 0) },
		"parked and marked":  func() (int, error) { return wait.RecvTimeout(answer, 0, 1900*time.Microsecond) },
		"parked for longer":  func() (int, error) { return wait.RecvTimeout(answer, 0, time.Minute) },
		"spun":               func() (int, error) { return wait.RecvTimeout(answer, time.Millisecond, time.Minute) },
		"with a context":     func() (int, error) { return wait.RecvContext(ctx, answer, 0) },
		"spun, with context": func() (int, error) { return wait.RecvContext(ctx, answer, time.Millisecond) },
	} {
		assertNoAllocs(t, 200, func() {
			c <- 1
			switch _, err := recv(); {
			case errors.Is(err, wait.ErrTimeout): // on a host that is too busy
				<-answer
			case err != nil:
				t.Error(name, err)
			}
		}, name)
	}
}

// assertNoAllocs fails if f allocates. Under the race detector, where sync.Pool
// drops one in four of what it is given, a wait may have to make a timer anew.
func assertNoAllocs(t *testing.T, runs int, f func(), what ...any) {
	t.Helper()
	most := 0.0
	if underRace {
		most = 3
	}
	f()
	assert.LessOrEqual(t, testing.AllocsPerRun(runs, f), most, what...)
}

// counted is a cond that holds from its nth call on.
func counted(n int) (cond func() bool, calls *int) {
	calls = new(int)
	return func() bool { *calls++; return *calls >= n }, calls
}

// A condition wait is EventTimeout or Event.WaitCond. It gets a wake-up for
// each call of wake.
type condWait struct {
	name string
	make func() (wait func(cond func() bool, timeout time.Duration) (time.Duration, error), wake func())
}

var condWaits = []condWait{
	{"EventTimeout", func() (func(func() bool, time.Duration) (time.Duration, error), func()) {
		wake := make(chan struct{}, 1)
		return func(cond func() bool, timeout time.Duration) (time.Duration, error) {
				return wait.EventTimeout(cond, wake, timeout)
			}, func() {
				select {
				case wake <- struct{}{}:
				default:
				}
			}
	}},
	{"Event.WaitCond", func() (func(func() bool, time.Duration) (time.Duration, error), func()) {
		event := new(wait.Event)
		return event.WaitCond, event.Set
	}},
}

// forEachCondWait runs f for both in fake time, where each wait has ended when
// synctest.Wait returns.
func forEachCondWait(t *testing.T, f func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), wake func())) {
	for _, c := range condWaits {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait, wake := c.make()
				f(t, wait, wake)
			})
		})
	}
}

func TestCondIsCalledFirst(t *testing.T) {
	forEachCondWait(t, func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), _ func()) {
		cond, calls := counted(1)
		left, err := wait(cond, time.Second)
		assert.NoError(t, err)
		assert.Equal(t, time.Second, left, "no time has passed")
		assert.Equal(t, 1, *calls)
	})
}

func TestCondIsCalledAfterEveryWakeAndNotOtherwise(t *testing.T) {
	forEachCondWait(t, func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), wake func()) {
		cond, calls := counted(5)
		go func() {
			for k := 1; k < 5; k++ {
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, k, *calls)
				wake()
			}
		}()
		left, err := wait(cond, 10*time.Second)
		assert.NoError(t, err)
		assert.Equal(t, 6*time.Second, left)
		assert.Equal(t, 5, *calls)
	})
}

func TestCondIsCalledOnceMoreAtTheDeadline(t *testing.T) {
	forEachCondWait(t, func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), _ func()) {
		cond, calls := counted(3)
		start := time.Now()
		left, err := wait(cond, time.Second)
		mustTimeOut(t, err, time.Second, 2)
		assert.Zero(t, left)
		assert.Equal(t, 2, *calls)
		assert.Equal(t, time.Second, time.Since(start))
		assert.ErrorContains(t, err, "condition not met")
	})
}

func TestCondThatHoldsAtTheVeryEndLeavesANanosecond(t *testing.T) {
	forEachCondWait(t, func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), _ func()) {
		cond, _ := counted(2)
		left, err := wait(cond, time.Second)
		assert.NoError(t, err)
		assert.Equal(t, time.Nanosecond, left)
	})
}

func TestCondIsCalledAfterTheDeadlineEvenIfItOutlastedThat(t *testing.T) {
	forEachCondWait(t, func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), _ func()) {
		calls := 0
		left, err := wait(func() bool {
			calls++
			time.Sleep(5 * time.Second)
			return calls == 2
		}, 2*time.Second)
		assert.NoError(t, err)
		assert.Equal(t, time.Nanosecond, left)
	})
}

func TestCondIsWaitedForWithoutATimeout(t *testing.T) {
	forEachCondWait(t, func(t *testing.T, wait func(func() bool, time.Duration) (time.Duration, error), wake func()) {
		time.AfterFunc(100*365*24*time.Hour, wake)
		cond, _ := counted(2)
		left, err := wait(cond, 0)
		assert.NoError(t, err)
		assert.Equal(t, time.Duration(math.MaxInt64), left)
	})
}

func TestCondWaitsAreNotEarlyInRealTime(t *testing.T) {
	for _, c := range condWaits {
		t.Run(c.name, func(t *testing.T) {
			wait, _ := c.make()
			for _, timeout := range []time.Duration{1, 50 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
				cond, _ := counted(3)
				start := time.Now()
				_, err := wait(cond, timeout)
				assert.GreaterOrEqual(t, time.Since(start), timeout)
				mustTimeOut(t, err, timeout, 2)
			}
		})
	}
}

func TestCondWaitsAllocateNothing(t *testing.T) {
	for _, c := range condWaits {
		t.Run(c.name, func(t *testing.T) {
			wait, wake := c.make()
			var ready atomic.Bool
			cond := ready.Load
			again := make(chan struct{})
			defer close(again)
			go func() {
				for range again {
					ready.Store(true)
					wake()
				}
			}()
			for _, timeout := range []time.Duration{0, time.Second} {
				assertNoAllocs(t, 200, func() {
					ready.Store(false)
					again <- struct{}{}
					if _, err := wait(cond, timeout); err != nil {
						t.Error(err)
					}
				}, timeout)
			}
		})
	}
}

func TestANilWakeNeverWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cond, calls := counted(3)
		_, err := wait.EventTimeout(cond, nil, time.Hour)
		mustTimeOut(t, err, time.Hour, 2)
		assert.Equal(t, 2, *calls)
	})
}

func TestAClosedWakeIsNoReasonToWait(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		wake := make(chan struct{})
		close(wake)
		cond, _ := counted(2)
		left, err := wait.EventTimeout(cond, wake, time.Hour)
		assert.NoError(t, err, "cond is called after the close")
		assert.Greater(t, left, 59*time.Minute)

		never, calls := counted(100)
		left, err = wait.EventTimeout(never, wake, time.Hour)
		assert.ErrorIs(t, err, wait.ErrClosed)
		assert.Greater(t, left, 59*time.Minute)
		assert.Equal(t, 2, *calls)
	})
}

// An event wait is one form of waiting for an Event to be set.
var eventWaits = map[string]func(ctx context.Context, e *wait.Event) error{
	"Wait":             func(_ context.Context, e *wait.Event) error { e.Wait(); return nil },
	"WaitTimeout":      func(_ context.Context, e *wait.Event) error { return e.WaitTimeout(time.Minute) },
	"WaitTimeout of 0": func(_ context.Context, e *wait.Event) error { return e.WaitTimeout(0) },
	"WaitContext":      func(ctx context.Context, e *wait.Event) error { return e.WaitContext(ctx) },
	"WaitCond": func(_ context.Context, e *wait.Event) error {
		_, err := e.WaitCond(e.IsSet, time.Minute)
		return err
	},
}

func forEachEventWait(t *testing.T, f func(t *testing.T, wait func(*wait.Event) error)) {
	for name, w := range eventWaits {
		t.Run(name, func(t *testing.T) {
			inBothTimes(t, func(t *testing.T) { f(t, func(e *wait.Event) error { return w(t.Context(), e) }) })
		})
	}
}

func TestAnEventThatIsSetIsNotWaitedFor(t *testing.T) {
	forEachEventWait(t, func(t *testing.T, w func(*wait.Event) error) {
		var event wait.Event
		assert.False(t, event.IsSet())
		event.Set()
		event.Set()
		for range 3 {
			assert.True(t, event.IsSet())
			assert.NoError(t, w(&event))
		}
	})
}

func TestSetWakesAllWaiters(t *testing.T) {
	forEachEventWait(t, func(t *testing.T, w func(*wait.Event) error) {
		var event wait.Event
		for range 3 {
			var waiting sync.WaitGroup
			value := 0
			for range 64 {
				waiting.Go(func() {
					assert.NoError(t, w(&event))
					assert.Equal(t, 1, value, "what was done before Set is seen after the wait")
				})
			}
			time.Sleep(time.Millisecond)
			value = 1
			event.Set()
			waiting.Wait()
			event.Clear()
			assert.False(t, event.IsSet())
		}
	})
}

func TestSetWakesThoseWhoWaitThoughClearFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var event wait.Event
		var woken atomic.Int32
		for range 64 {
			go func() {
				event.Wait()
				woken.Add(1)
			}()
		}
		synctest.Wait() // all are asleep
		event.Set()
		event.Clear()
		synctest.Wait()
		assert.EqualValues(t, 64, woken.Load())
		assert.Error(t, event.WaitTimeout(time.Second), "it is clear again")
	})
}

func TestEventWaitsTimeOutAndNotEarly(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		var event wait.Event
		for _, timeout := range []time.Duration{1, 100 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
			start := time.Now()
			err := event.WaitTimeout(timeout)
			assert.GreaterOrEqual(t, time.Since(start), timeout)
			mustTimeOut(t, err, timeout, 0)
		}
	})
}

func TestEventWaitEndsWithItsContext(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		var event wait.Event
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		for range 2 { // the second time it is done before
			assert.Equal(t, context.DeadlineExceeded, event.WaitContext(ctx))
		}
		event.Set()
		assert.NoError(t, event.WaitContext(ctx), "what is set counts")
	})
}

func TestWaitCondDoesNotMindThatTheEventIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var event wait.Event
		event.Set()
		cond, calls := counted(100)
		_, err := event.WaitCond(cond, time.Second)
		mustTimeOut(t, err, time.Second, 2)
		assert.Equal(t, 2, *calls)
	})
}

func TestWaitCondWakesManyWhoWaitForDifferentThings(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		var event wait.Event
		var level atomic.Int64
		var waiting sync.WaitGroup
		for i := range int64(64) {
			waiting.Go(func() {
				_, err := event.WaitCond(func() bool { return level.Load() > i }, time.Minute)
				assert.NoError(t, err)
			})
		}
		for range 64 {
			time.Sleep(10 * time.Microsecond)
			level.Add(1)
			event.Set()
		}
		waiting.Wait()
	})
}

func TestACondThatPanicsLeavesNothingBehind(t *testing.T) {
	var event, other wait.Event
	for range 10 {
		assert.PanicsWithValue(t, "bad", func() { _, _ = event.WaitCond(func() bool { panic("bad") }, 0) })
		event.Set()
		event.Clear()
		assert.Error(t, other.WaitTimeout(time.Microsecond), "a wake-up was left over")
	}
}

func TestACondWaitThatTimesOutLeavesNothingBehind(t *testing.T) {
	var event, other wait.Event
	for range 10 {
		_, err := event.WaitCond(func() bool { return false }, time.Microsecond)
		assert.Error(t, err)
		event.Set()
		event.Clear()
		assert.Error(t, other.WaitTimeout(time.Microsecond), "a wake-up was left over")
	}
}

func TestEventWaitsAllocateNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var event wait.Event
	again := make(chan struct{})
	defer close(again)
	go func() {
		for range again {
			runtime.Gosched()
			event.Set()
		}
	}()
	for name, w := range eventWaits {
		assertNoAllocs(t, 200, func() {
			event.Clear()
			again <- struct{}{}
			if err := w(ctx, &event); err != nil {
				t.Error(err)
			}
		}, name)
	}
}

// Setters hand out work and do not go on before it is done; waiters that miss
// a Set leave it undone. Both sides wait by Events, which the timeouts make
// end in all ways and at all times.
func TestNoWakeUpIsLostAmongManyWaitersAndSetters(t *testing.T) {
	const waiting, setting = 64, 8
	rounds := 1_000_000
	if testing.Short() {
		rounds = 20_000
	}
	before := runtime.NumGoroutine()
	var event wait.Event
	var work [setting]struct {
		todo atomic.Bool
		done wait.Event
	}
	var over atomic.Bool
	take := func() (found bool) {
		for i := range work {
			if work[i].todo.Load() && work[i].todo.CompareAndSwap(true, false) {
				found = true
				work[i].done.Set()
			}
		}
		return found
	}
	var waiters, setters sync.WaitGroup
	for i := range waiting {
		waiters.Go(func() {
			for k := i; !over.Load(); k++ {
				switch k % 4 {
				case 0:
					event.Wait()
				case 1:
					_ = event.WaitTimeout(time.Duration(1+k%200) * time.Microsecond)
				case 2:
					_, _ = event.WaitCond(func() bool { return over.Load() || take() }, time.Minute)
				case 3:
					if err := event.WaitTimeout(time.Minute); err != nil {
						t.Error(err)
					}
				}
				if event.Clear(); over.Load() {
					event.Set()
				}
				take()
			}
		})
	}
	for i := range setting {
		setters.Go(func() {
			w := &work[i]
			for range rounds / setting {
				w.done.Clear()
				w.todo.Store(true)
				event.Set()
				if err := w.done.WaitTimeout(time.Minute); err != nil {
					t.Error("a wake-up was lost:", err)
					return
				}
			}
		})
	}
	setters.Wait()
	over.Store(true)
	event.Set()
	waiters.Wait()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before, "a goroutine is left behind")
}
