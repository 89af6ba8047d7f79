package wait_test

import (
	"context"
	"math"
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

func TestMain(m *testing.M) {
	if run, ok := children[os.Getenv(childVar)]; ok {
		run()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childVar names the function of children that this process is to run in
// place of the tests: what changes a whole process has one of its own.
const childVar = "WAIT_TEST_CHILD"

var children = map[string]func(){
	"longest": longestChild,
}

// A verb is a way to wait for a duration.
type verb struct {
	name string
	wait func(d time.Duration)
}

func untilVerb(f func(time.Time)) func(time.Duration) {
	return func(d time.Duration) { f(time.Now().Add(d)) }
}

func contextVerb(f func(context.Context, time.Duration) error) func(time.Duration) {
	return func(d time.Duration) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if err := f(ctx, d); err != nil {
			panic(err)
		}
	}
}

var verbs = []verb{
	{"Sleep", wait.Sleep},
	{"SleepUntil", untilVerb(wait.SleepUntil)},
	{"SleepContext", contextVerb(wait.SleepContext)},
	{"SleepContext without Done", func(d time.Duration) { _ = wait.SleepContext(context.Background(), d) }},
	{"SleepRange", func(d time.Duration) { wait.SleepRange(d, d+d/4) }},
	{"SleepRange of nothing", func(d time.Duration) { wait.SleepRange(d, d) }},
	{"SleepRange backwards", func(d time.Duration) { wait.SleepRange(d, d-1) }},
	{"Spin", wait.Spin},
	{"SpinUntil", untilVerb(wait.SpinUntil)},
	{"Hybrid", wait.Hybrid},
	{"HybridUntil", untilVerb(wait.HybridUntil)},
	{"HybridContext", contextVerb(wait.HybridContext)},
	{"For", wait.For},
	{"Until", untilVerb(wait.Until)},
}

// forEachVerb runs f once for every verb.
func forEachVerb(t *testing.T, f func(t *testing.T, v verb)) {
	for _, v := range verbs {
		t.Run(v.name, func(t *testing.T) { f(t, v) })
	}
}

// lateness waits for d and returns how late that ended, negative if early.
func lateness(v verb, d time.Duration) time.Duration {
	start := time.Now()
	v.wait(d)
	return time.Since(start) - d
}

// mixed are lengths on both sides of every border that a wait may cross.
var mixed = []time.Duration{
	1, 99, time.Microsecond, 3 * time.Microsecond, 10 * time.Microsecond, 16384, 31 * time.Microsecond, 77 * time.Microsecond,
	200 * time.Microsecond, 499 * time.Microsecond, time.Millisecond, 1500 * time.Microsecond, 4 * time.Millisecond,
}

func TestNoVerbIsEarly(t *testing.T) {
	for _, procs := range []int{1, 2} {
		atGOMAXPROCS(t, procs, func() {
			forEachVerb(t, func(t *testing.T, v verb) {
				for range 5 {
					for _, d := range mixed {
						assert.GreaterOrEqual(t, lateness(v, d), time.Duration(0), "%v", d)
					}
				}
			})
		})
	}
}

// atGOMAXPROCS runs f with another number of Ps.
func atGOMAXPROCS(t *testing.T, procs int, f func()) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	f()
}

// TestUdelayGrid takes the lengths of the kernel's test_udelay, each of them
// as often, or twice with -short.
func TestUdelayGrid(t *testing.T) {
	each := 100
	if testing.Short() {
		each = 2
	}
	for _, v := range []verb{{"Spin", wait.Spin}, {"Hybrid", wait.Hybrid}} {
		for us := 1; us <= 2000; {
			d := time.Duration(us) * time.Microsecond
			for range each {
				require.GreaterOrEqual(t, lateness(v, d), time.Duration(0), "%s %v", v.name, d)
			}
			switch {
			case us < 200:
				us++
			case us < 500:
				us += 10
			default:
				us += 100
			}
		}
	}
}

func TestNoVerbIsEarlyInACrowd(t *testing.T) {
	forEachVerb(t, func(t *testing.T, v verb) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				for k := range 6 {
					d := time.Duration(1+(i*7+k*13)%40) * 50 * time.Microsecond
					assert.GreaterOrEqual(t, lateness(v, d), time.Duration(0), "%v", d)
				}
			})
		}
		wg.Wait()
	})
}

func TestNoVerbIsEarlyUnderGarbageCollection(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var collector sync.WaitGroup
	collector.Go(func() {
		var keep [][]byte
		for ctx.Err() == nil {
			keep = append(keep, make([]byte, 1<<16))
			if len(keep) == 64 {
				keep = nil
				runtime.GC()
			}
		}
	})
	forEachVerb(t, func(t *testing.T, v verb) {
		for _, d := range mixed {
			assert.GreaterOrEqual(t, lateness(v, d), time.Duration(0), "%v", d)
		}
	})
	stop()
	collector.Wait()
}

func TestNothingToWaitForReturnsAtOnce(t *testing.T) {
	// Several goroutines in a row could be run by the scheduler meanwhile;
	// what shows that none of these parks is that it does not count as one.
	before := wait.ReadStats()
	forEachVerb(t, func(t *testing.T, v verb) {
		for _, d := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
			v.wait(d)
		}
	})
	for _, past := range []time.Time{{}, time.Unix(0, 0), time.Now().Add(-1), time.Now().Round(0).Add(-time.Hour)} {
		wait.SleepUntil(past)
		wait.SpinUntil(past)
		wait.HybridUntil(past)
		wait.Until(past)
	}
	wait.SleepRange(0, time.Hour)
	wait.SleepRange(-time.Hour, time.Hour)
	after := wait.ReadStats()
	assert.Equal(t, before.Sleeps, after.Sleeps)
	assert.Equal(t, before.SleepRanges, after.SleepRanges)
	assert.Equal(t, before.Hybrids, after.Hybrids)
	assert.Equal(t, before.Spins, after.Spins)
}

func TestWallClockTimesAreWaitedFor(t *testing.T) {
	for _, until := range []func(time.Time){wait.SleepUntil, wait.SpinUntil, wait.HybridUntil, wait.Until} {
		start := time.Now()
		until(start.Add(3 * time.Millisecond).Round(0)) // strips the monotonic reading
		// The wall clock may be stepped or slewed meanwhile, the monotonic one
		// that this is read from may not.
		assert.Greater(t, time.Since(start), 2900*time.Microsecond)
	}
}

// longestChild waits for the longest Duration in every verb at once, and
// reports if any of them returns.
func longestChild() {
	forever := []func(){
		func() { wait.Sleep(math.MaxInt64) },
		func() { wait.SleepUntil(time.Now().Add(math.MaxInt64)) },
		func() { wait.SleepUntil(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) },
		func() { wait.SleepRange(math.MaxInt64, math.MaxInt64) },
		func() { wait.SleepRange(math.MaxInt64-1, 1) },
		func() { wait.Hybrid(math.MaxInt64) },
		func() { _ = wait.HybridContext(context.Background(), math.MaxInt64) },
		func() { wait.For(math.MaxInt64) },
		func() { wait.Until(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) },
		func() { _ = wait.SleepContext(context.Background(), math.MaxInt64) },
		func() { wait.Sleep(1 << 62) },
	}
	returned := make(chan int)
	for i, f := range forever {
		go func() {
			f()
			returned <- i
		}()
	}
	select {
	case i := <-returned:
		println("the wait numbered", i, "returned")
		os.Exit(1)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestLongestDurationDoesNotWrap(t *testing.T) {
	runChild(t, "longest")
	for _, f := range []func(context.Context, time.Duration) error{wait.SleepContext, wait.HybridContext} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		assert.Equal(t, context.DeadlineExceeded, f(ctx, math.MaxInt64))
		cancel()
	}
}

func TestRangeEndsByMaxInTheWorstCase(t *testing.T) {
	for _, max := range []time.Duration{1100 * time.Microsecond, 2 * time.Millisecond, 20 * time.Millisecond} {
		start := time.Now()
		wait.SleepRange(time.Millisecond, max)
		took := time.Since(start)
		assert.GreaterOrEqual(t, took, time.Millisecond)
		assert.Less(t, took, max+time.Second, "loose: the machine may be busy")
		t.Logf("SleepRange(1ms, %v) took %v", max, took)
	}
}

func TestRangesOfManyGoroutinesShareWakeups(t *testing.T) {
	before := wait.ReadStats()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 20 {
				wait.SleepRange(4*time.Millisecond, 8*time.Millisecond)
			}
		})
	}
	wg.Wait()
	after := wait.ReadStats()
	assert.EqualValues(t, 2000, after.SleepRanges-before.SleepRanges)
	if after.Wakeup == wait.WakeupTimerfd {
		rings := after.AlarmRings + after.BellRings - before.AlarmRings - before.BellRings
		assert.Less(t, rings, uint64(1000), "of 2000 sleeps hardly one shared a wake-up")
	}
}

func TestContextForms(t *testing.T) {
	for name, f := range map[string]func(context.Context, time.Duration) error{
		"SleepContext": wait.SleepContext, "HybridContext": wait.HybridContext,
	} {
		t.Run(name, func(t *testing.T) {
			done, cancel := context.WithCancel(t.Context())
			cancel()
			for _, d := range []time.Duration{-1, 0, 1, time.Hour} {
				assert.Equal(t, context.Canceled, f(done, d), "done before, %v", d)
			}
			live, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, d := range []time.Duration{-1, 0, 1, time.Millisecond} {
				assert.NoError(t, f(live, d), "%v", d)
			}
			expired, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			defer cancel()
			assert.Equal(t, context.DeadlineExceeded, f(expired, time.Minute))
			assert.PanicsWithValue(t, "wait: nil Context", func() { _ = f(nil, 1) })
		})
	}
}

func TestCancelEndsTheWaitAndLeavesNothingBehind(t *testing.T) {
	for name, f := range map[string]func(context.Context, time.Duration) error{
		"SleepContext": wait.SleepContext, "HybridContext": wait.HybridContext,
	} {
		for _, d := range []time.Duration{100 * time.Millisecond, time.Hour} {
			t.Run(name+" "+d.String(), func(t *testing.T) {
				before := runtime.NumGoroutine()
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 200 {
					wg.Go(func() { assert.Equal(t, context.Canceled, f(ctx, d)) })
				}
				for wait.ReadStats().Parked < 200 {
					time.Sleep(time.Millisecond)
				}
				cancelled := time.Now()
				cancel()
				wg.Wait()
				took := time.Since(cancelled)
				assert.Less(t, took, 50*time.Second, "loose, but far from the hour")
				t.Logf("200 goroutines returned %v after the cancel", took)
				assert.Zero(t, wait.ReadStats().Parked)
				// The bell's keeper stays for a fifth of a second.
				for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
					time.Sleep(10 * time.Millisecond)
				}
				assert.LessOrEqual(t, runtime.NumGoroutine(), before)
			})
		}
	}
}

func TestWaitsAllocateNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, v := range []verb{
		{"Sleep", wait.Sleep},
		{"SleepRange", func(d time.Duration) { wait.SleepRange(d, 2*d) }},
		{"Spin", wait.Spin},
		{"Hybrid", wait.Hybrid},
		{"For", wait.For},
		{"SleepUntil", untilVerb(wait.SleepUntil)},
		{"SpinUntil", untilVerb(wait.SpinUntil)},
		{"HybridUntil", untilVerb(wait.HybridUntil)},
		{"Until", untilVerb(wait.Until)},
		{"SleepContext", func(d time.Duration) { _ = wait.SleepContext(ctx, d) }},
		{"HybridContext", func(d time.Duration) { _ = wait.HybridContext(ctx, d) }},
	} {
		for _, d := range []time.Duration{2 * time.Microsecond, 200 * time.Microsecond} {
			v.wait(d)
			assert.Zero(t, testing.AllocsPerRun(50, func() { v.wait(d) }), "%s(%v)", v.name, d)
		}
	}
}

func TestBubblesUseTheirFakeTime(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var outside sync.WaitGroup
	for _, v := range verbs { // real waits meanwhile
		outside.Go(func() {
			for ctx.Err() == nil {
				assert.GreaterOrEqual(t, lateness(v, 300*time.Microsecond), time.Duration(0))
			}
		})
	}
	for range 3 {
		forEachVerb(t, func(t *testing.T, v verb) {
			synctest.Test(t, func(t *testing.T) {
				for _, d := range []time.Duration{-1, 0, 1, time.Microsecond, time.Second, 24 * time.Hour, 40 * 365 * 24 * time.Hour, time.Minute} {
					start := time.Now()
					v.wait(d)
					want := max(0, d)
					if v.name == "SleepRange" {
						assert.GreaterOrEqual(t, time.Since(start), want)
						assert.LessOrEqual(t, time.Since(start), want+want/4)
					} else {
						assert.Equal(t, want, time.Since(start))
					}
				}
			})
		})
	}
	stop()
	outside.Wait()
}

func TestCancelInABubble(t *testing.T) {
	for _, f := range []func(context.Context, time.Duration) error{wait.SleepContext, wait.HybridContext} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			assert.Equal(t, context.DeadlineExceeded, f(ctx, time.Hour))
			assert.Equal(t, time.Minute, time.Since(start))
		})
	}
}

func TestStatsCountWaits(t *testing.T) {
	before := wait.ReadStats()
	wait.Sleep(time.Microsecond * 50)
	wait.SleepRange(50*time.Microsecond, time.Millisecond)
	wait.Spin(50 * time.Microsecond)
	wait.Hybrid(50 * time.Microsecond)
	_ = wait.PollTimeout(func() bool { return true }, 0, 0)
	after := wait.ReadStats()
	assert.Equal(t, before.Sleeps+1, after.Sleeps)
	assert.Equal(t, before.SleepRanges+1, after.SleepRanges)
	assert.Equal(t, before.Spins+1, after.Spins)
	assert.Equal(t, before.Hybrids+1, after.Hybrids)
	assert.Equal(t, before.Polls+1, after.Polls)
	assert.GreaterOrEqual(t, after.Spun-before.Spun, 50*time.Microsecond)
	assert.Zero(t, after.Parked)
	assert.Len(t, after.FloorByClass, len(wait.CurrentFloor().Classes))
}

func TestParkedCountsSleepers(t *testing.T) {
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { wait.Sleep(100 * time.Millisecond) })
	}
	var most int64
	for end := time.Now().Add(10 * time.Second); most < 20 && time.Now().Before(end); {
		most = max(most, wait.ReadStats().Parked)
	}
	wg.Wait()
	assert.EqualValues(t, 20, most)
	assert.Zero(t, wait.ReadStats().Parked)
}
