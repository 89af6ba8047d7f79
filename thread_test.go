package wait_test

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

// threadVerbs are the methods of a Thread as functions of a duration.
func threadVerbs(th *wait.Thread) []verb {
	return []verb{
		{"Thread.Sleep", th.Sleep},
		{"Thread.SleepUntil", untilVerb(th.SleepUntil)},
		{"Thread.SleepRange", func(d time.Duration) { th.SleepRange(d, d+d/4) }},
		{"Thread.Spin", th.Spin},
		{"Thread.Hybrid", th.Hybrid},
		{"Thread.HybridUntil", untilVerb(th.HybridUntil)},
	}
}

// onThread runs f on a Thread in a goroutine of its own, and closes it.
func onThread(t *testing.T, f func(*wait.Thread), opts ...wait.ThreadOption) {
	t.Helper()
	onFreshThread(func() {
		th, err := wait.LockThread(opts...)
		if !assert.NoError(t, err) {
			return
		}
		defer func() { assert.NoError(t, th.Close()) }()
		f(th)
	})
}

// onFreshThread runs f on a thread that no other goroutine uses, and that
// ends with it: whatever f leaves behind is gone.
func onFreshThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

func TestThreadIsNeverEarly(t *testing.T) {
	onThread(t, func(th *wait.Thread) {
		for _, v := range threadVerbs(th) {
			for _, d := range mixed {
				assert.GreaterOrEqual(t, lateness(v, d), time.Duration(0), "%s(%v)", v.name, d)
			}
		}
	})
}

func TestThreadReturnsAtOnceFromThePast(t *testing.T) {
	onThread(t, func(th *wait.Thread) {
		before := wait.ReadStats()
		for _, v := range threadVerbs(th) {
			v.wait(0)
			v.wait(-time.Hour)
		}
		after := wait.ReadStats()
		assert.Equal(t, before.Sleeps+before.SleepRanges+before.Spins+before.Hybrids,
			after.Sleeps+after.SleepRanges+after.Spins+after.Hybrids)
	})
}

func TestThreadDoesNotAllocate(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	onThread(t, func(th *wait.Thread) {
		for _, v := range threadVerbs(th) {
			assert.Zero(t, testing.AllocsPerRun(20, func() { v.wait(50 * time.Microsecond) }), v.name)
		}
	})
}

func TestThreadLearnsAFloorOfItsOwn(t *testing.T) {
	onThread(t, func(th *wait.Thread) {
		shared := wait.CurrentFloor().Classes
		for range 20 {
			th.Sleep(200 * time.Microsecond)
			th.Hybrid(2 * time.Millisecond)
		}
		f := th.Floor()
		samples := map[time.Duration]int{}
		for _, c := range f.Classes {
			samples[c.UpTo] = c.Samples
			assert.LessOrEqual(t, c.P50, c.P90)
			assert.LessOrEqual(t, c.P90, c.P99)
		}
		assert.GreaterOrEqual(t, samples[300*time.Microsecond], 15)
		// On a busy machine Hybrid may spin all the way once it knows enough.
		assert.GreaterOrEqual(t, samples[3*time.Millisecond], 8)
		assert.Len(t, f.Classes, len(shared))
	})
}

func TestThreadOfAnotherGoroutine(t *testing.T) {
	onThread(t, func(th *wait.Thread) {
		var other sync.WaitGroup
		other.Go(func() {
			for _, v := range threadVerbs(th) {
				assert.PanicsWithValue(t, "wait: Thread used by another goroutine than the one that locked it",
					func() { v.wait(time.Microsecond) }, v.name)
			}
			assert.ErrorContains(t, th.Close(), "another goroutine")
		})
		other.Wait()
		th.Sleep(time.Microsecond) // as if nothing had been
	})
}

func TestThreadAfterClose(t *testing.T) {
	onFreshThread(func() {
		th, err := wait.LockThread()
		if !assert.NoError(t, err) {
			return
		}
		assert.NoError(t, th.Close())
		for _, v := range threadVerbs(th) {
			assert.PanicsWithValue(t, "wait: Thread used after Close", func() { v.wait(time.Microsecond) }, v.name)
		}
		assert.ErrorIs(t, th.Close(), os.ErrClosed)
		assert.ErrorIs(t, th.Close(), os.ErrClosed)
	})
}

func TestThreadInABubbleUsesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th, err := wait.LockThread()
		require.NoError(t, err)
		for _, v := range threadVerbs(th) {
			start := time.Now()
			v.wait(time.Hour)
			assert.Equal(t, time.Hour, time.Since(start), v.name)
		}
		require.NoError(t, th.Close())
	})
}

func TestThreadOptionZeroIsNone(t *testing.T) {
	onThread(t, func(th *wait.Thread) { th.Sleep(time.Microsecond) }, wait.ThreadOption{})
}
