package wait_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

// mustTick waits for a tick that has to come.
func mustTick(t *testing.T, p *wait.Pacer) wait.Tick {
	t.Helper()
	tick, err := p.Wait(t.Context())
	require.NoError(t, err)
	return tick
}

func TestTicksAreOnePeriodApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := wait.NewPacer(time.Second)
		for i := range int64(5) {
			tick := mustTick(t, p)
			due := start.Add(time.Duration(i+1) * time.Second)
			assert.Equal(t, wait.Tick{Index: i + 1, Scheduled: due}, tick)
			assert.Equal(t, due, time.Now())
		}
	})
}

func TestAMillionTicksDoNotDrift(t *testing.T) {
	ticks := 1_000_000
	if testing.Short() {
		ticks = 50_000
	}
	const period = 1_000_001 * time.Nanosecond
	for name, opts := range map[string][]wait.PacerOption{
		"Skip": nil, "Burst": {wait.OnMissed(wait.Burst)}, "Delay": {wait.OnMissed(wait.Delay)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p := wait.NewPacer(period, opts...)
				for k := 1; k <= ticks; k++ {
					tick, err := p.Wait(t.Context())
					if err != nil || !tick.Scheduled.Equal(time.Now()) || tick.Index != int64(k) || tick.Missed != 0 {
						require.Failf(t, "off the grid", "tick %d at %v: %+v", k, time.Since(start), tick)
					}
					if k%100 == 1 {
						time.Sleep(time.Duration(k % int(period))) // work that takes less than a period
					}
				}
				assert.Equal(t, time.Duration(ticks)*period, time.Since(start))
			})
		})
	}
}

func TestMissedTicksByPolicy(t *testing.T) {
	type seen struct {
		index, missed  int64
		due, late, now float64 // in periods from the start
	}
	for _, c := range []struct {
		name string
		opts []wait.PacerOption
		want []seen // after work of 3.5 periods that follows the first tick
	}{
		{"Skip is the default", nil, []seen{{4, 2, 4, 0.5, 4.5}, {5, 0, 5, 0, 5}, {6, 0, 6, 0, 6}}},
		{"Skip", []wait.PacerOption{wait.OnMissed(wait.Burst), wait.OnMissed(wait.Skip), {}},
			[]seen{{4, 2, 4, 0.5, 4.5}, {5, 0, 5, 0, 5}, {6, 0, 6, 0, 6}}},
		{"Burst", []wait.PacerOption{wait.OnMissed(wait.Burst)},
			[]seen{{2, 0, 2, 2.5, 4.5}, {3, 0, 3, 1.5, 4.5}, {4, 0, 4, 0.5, 4.5}, {5, 0, 5, 0, 5}}},
		{"Delay", []wait.PacerOption{wait.OnMissed(wait.Delay)},
			[]seen{{2, 2, 2, 2.5, 4.5}, {3, 0, 5.5, 0, 5.5}, {4, 0, 6.5, 0, 6.5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const period = 10 * time.Millisecond
				start := time.Now()
				periods := func(d time.Duration) float64 { return float64(d) / float64(period) }
				p := wait.NewPacer(period, c.opts...)
				mustTick(t, p)
				time.Sleep(period * 7 / 2)
				for _, want := range c.want {
					tick := mustTick(t, p)
					assert.Equal(t, want, seen{tick.Index, tick.Missed, periods(tick.Scheduled.Sub(start)), periods(tick.Lateness), periods(time.Since(start))})
				}
			})
		})
	}
}

func TestATickThatIsAlmostAPeriodLateMovesNoGrid(t *testing.T) {
	for _, policy := range []wait.MissedPolicy{wait.Skip, wait.Burst, wait.Delay} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			p := wait.NewPacer(time.Second, wait.OnMissed(policy))
			time.Sleep(2*time.Second - 1)
			tick := mustTick(t, p)
			assert.Equal(t, wait.Tick{Index: 1, Scheduled: start.Add(time.Second), Lateness: time.Second - 1}, tick)
			mustTick(t, p)
			assert.Equal(t, 2*time.Second, time.Since(start))
		})
	}
}

// forEachPace runs f for each way of a Pacer to wait, on a Thread too, in the
// times that are given.
func forEachPace(t *testing.T, times func(*testing.T, func(*testing.T)), f func(t *testing.T, opts ...wait.PacerOption)) {
	for name, opts := range map[string][]wait.PacerOption{
		"default": nil,
		"Sleep":   {wait.PaceBy(wait.MethodSleep)},
		"Hybrid":  {wait.PaceBy(wait.MethodHybrid)},
		"Spin":    {wait.PaceBy(wait.MethodSpin)},
	} {
		t.Run(name, func(t *testing.T) {
			times(t, func(t *testing.T) { f(t, opts...) })
		})
		t.Run(name+" on a Thread", func(t *testing.T) {
			times(t, func(t *testing.T) {
				thread, err := wait.LockThread()
				require.NoError(t, err)
				defer func() { assert.NoError(t, thread.Close()) }()
				f(t, append(opts[:len(opts):len(opts)], wait.PaceOn(thread))...)
			})
		})
	}
}

func inRealTime(t *testing.T, f func(t *testing.T)) { f(t) }

func TestTicksAreNotEarlyAndStayOnTheirGrid(t *testing.T) {
	forEachPace(t, inRealTime, func(t *testing.T, opts ...wait.PacerOption) {
		for _, c := range []struct {
			period time.Duration
			n      int
		}{{20 * time.Microsecond, 200}, {time.Millisecond, 30}, {23 * time.Millisecond, 3}} {
			for _, ctx := range []context.Context{context.Background(), t.Context()} {
				p := wait.NewPacer(c.period, opts...)
				var first time.Time
				var index int64
				for range c.n {
					tick, err := p.Wait(ctx)
					late := time.Since(tick.Scheduled)
					require.NoError(t, err)
					if first.IsZero() {
						first = tick.Scheduled.Add(-time.Duration(tick.Index) * c.period)
					}
					require.GreaterOrEqual(t, tick.Lateness, time.Duration(0))
					require.GreaterOrEqual(t, late, tick.Lateness)
					require.Equal(t, time.Duration(tick.Index)*c.period, tick.Scheduled.Sub(first))
					require.Equal(t, index+1+tick.Missed, tick.Index)
					index = tick.Index
				}
			}
		}
	})
}

func TestWaitEndsWithItsContextAndLeavesTheTick(t *testing.T) {
	forEachPace(t, inBothTimes, func(t *testing.T, opts ...wait.PacerOption) {
		p := wait.NewPacer(60*time.Millisecond, opts...)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		for range 2 { // the second time it is done before
			tick, err := p.Wait(ctx)
			assert.Equal(t, context.DeadlineExceeded, err)
			assert.Zero(t, tick)
		}
		assert.EqualValues(t, 1, mustTick(t, p).Index)
	})
}

func TestResetBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wait.NewPacer(time.Second)
		for range 3 {
			mustTick(t, p)
		}
		time.Sleep(5700 * time.Millisecond)
		p.Reset()
		start := time.Now()
		assert.Equal(t, wait.Tick{Index: 1, Scheduled: start.Add(time.Second)}, mustTick(t, p))
	})
}

func TestSetPeriodKeepsTheNextTickUnlessItIsFurtherAway(t *testing.T) {
	for _, c := range []struct {
		name         string
		period       time.Duration
		first, later time.Duration // from the change, 400 ms after a tick
	}{
		{"longer", 3 * time.Second, 600 * time.Millisecond, 3600 * time.Millisecond},
		{"the same", time.Second, 600 * time.Millisecond, 1600 * time.Millisecond},
		{"a little shorter", 700 * time.Millisecond, 600 * time.Millisecond, 1300 * time.Millisecond},
		{"much shorter", time.Millisecond, time.Millisecond, 2 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := wait.NewPacer(time.Second)
				mustTick(t, p)
				time.Sleep(400 * time.Millisecond)
				p.SetPeriod(c.period)
				start := time.Now()
				assert.Equal(t, wait.Tick{Index: 2, Scheduled: start.Add(c.first)}, mustTick(t, p))
				assert.Equal(t, wait.Tick{Index: 3, Scheduled: start.Add(c.later)}, mustTick(t, p))
			})
		})
	}
}

func TestAWaitUnderWayNoticesAChange(t *testing.T) {
	for name, c := range map[string]struct {
		period time.Duration
		change func(p *wait.Pacer)
		want   time.Duration // from the change to the tick
	}{
		"SetPeriod":                    {time.Hour, func(p *wait.Pacer) { p.SetPeriod(30 * time.Millisecond) }, 30 * time.Millisecond},
		"Reset":                        {40 * time.Millisecond, (*wait.Pacer).Reset, 40 * time.Millisecond},
		"Reset of a tick that is near": {8 * time.Millisecond, (*wait.Pacer).Reset, 8 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBothTimes(t, func(t *testing.T) {
				var changed, now time.Time
				var tick wait.Tick
				for range 20 { // on a busy machine the change or the wait may come after the tick
					firstTick := time.Now().Add(c.period)
					p := wait.NewPacer(c.period)
					var waiting sync.WaitGroup
					waiting.Go(func() {
						time.Sleep(4 * time.Millisecond)
						changed = time.Now()
						c.change(p)
					})
					tick, now = mustTick(t, p), time.Now()
					waiting.Wait()
					if changed.Before(firstTick) && tick.Missed == 0 {
						break
					}
				}
				assert.EqualValues(t, 1, tick.Index)
				assert.GreaterOrEqual(t, tick.Scheduled.Sub(changed), c.want)
				assert.GreaterOrEqual(t, now.Sub(tick.Scheduled), time.Duration(0))
				assert.Less(t, now.Sub(changed), 10*time.Second, "loose, but far from the hour")
			})
		})
	}
}

func TestChangesMayComeAtAnyTime(t *testing.T) {
	p := wait.NewPacer(100 * time.Microsecond)
	ctx, stop := context.WithCancel(t.Context())
	var changing, waiting sync.WaitGroup
	for _, change := range []func(k int){
		func(k int) { p.SetPeriod(time.Duration(1+k%300) * time.Microsecond) },
		func(int) { p.Reset() },
	} {
		changing.Go(func() {
			for k := range 200 {
				change(k)
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	for range 3 {
		waiting.Go(func() {
			for tick := range p.Ticks(ctx) {
				assert.GreaterOrEqual(t, time.Since(tick.Scheduled), tick.Lateness)
				assert.GreaterOrEqual(t, tick.Lateness, time.Duration(0))
				assert.GreaterOrEqual(t, tick.Missed, int64(0))
			}
		})
	}
	changing.Wait()
	p.SetPeriod(time.Microsecond)
	mustTick(t, p) // it still ticks
	stop()
	waiting.Wait()
}

func TestEachTickGoesToOneGoroutine(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		const each, waiters = 50, 4
		p := wait.NewPacer(100*time.Microsecond, wait.OnMissed(wait.Burst))
		var waiting sync.WaitGroup
		indices := make(chan int64, each*waiters)
		for range waiters {
			waiting.Go(func() {
				for range each {
					indices <- mustTick(t, p).Index
				}
			})
		}
		waiting.Wait()
		close(indices)
		seen := map[int64]bool{}
		for i := range indices {
			seen[i] = true
		}
		assert.Len(t, seen, each*waiters)
		assert.True(t, seen[1] && seen[each*waiters])
	})
}

func TestTicksEndsWithTheLoopOrTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := wait.NewPacer(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		var seen []int64
		for tick := range p.Ticks(ctx) {
			if seen = append(seen, tick.Index); tick.Index == 2 {
				break
			}
		}
		for tick := range p.Ticks(ctx) {
			seen = append(seen, tick.Index)
		}
		assert.Equal(t, []int64{1, 2, 3, 4}, seen)
		assert.Error(t, ctx.Err())
	})
}

func TestTheLongestPeriodDoesNotWrap(t *testing.T) {
	inBothTimes(t, func(t *testing.T) {
		for _, policy := range []wait.MissedPolicy{wait.Skip, wait.Burst, wait.Delay} {
			p := wait.NewPacer(math.MaxInt64, wait.OnMissed(policy))
			p.Reset()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			_, err := p.Wait(ctx)
			cancel()
			assert.Equal(t, context.DeadlineExceeded, err)
		}
	})
}

func TestWrongUseOfAPacerPanics(t *testing.T) {
	p := wait.NewPacer(time.Second)
	var none context.Context
	assert.PanicsWithValue(t, "wait: non-positive period 0s for NewPacer", func() { wait.NewPacer(0) })
	assert.PanicsWithValue(t, "wait: non-positive period -1ns for NewPacer", func() { wait.NewPacer(-1) })
	assert.PanicsWithValue(t, "wait: non-positive period 0s for SetPeriod", func() { p.SetPeriod(0) })
	assert.PanicsWithValue(t, "wait: nil Context", func() { _, _ = p.Wait(none) })
	assert.PanicsWithValue(t, "wait: nil Context", func() { p.Ticks(none) })
	assert.PanicsWithValue(t, "wait: nil Thread", func() { wait.PaceOn(nil) })
	assert.PanicsWithValue(t, "wait: pace by Method(3)", func() { wait.PaceBy(3) })
	assert.PanicsWithValue(t, "wait: missed ticks by MissedPolicy(-1)", func() { wait.OnMissed(-1) })
	const notMade = "wait: Pacer not made by NewPacer"
	assert.PanicsWithValue(t, notMade, func() { _, _ = new(wait.Pacer).Wait(t.Context()) })
	assert.PanicsWithValue(t, notMade, func() { new(wait.Pacer).Reset() })
	assert.PanicsWithValue(t, notMade, func() { new(wait.Pacer).SetPeriod(time.Second) })
}

func TestAPacerThatCrossesTheBorderOfABubblePanics(t *testing.T) {
	use := func(t *testing.T, p *wait.Pacer) {
		for name, use := range map[string]func(){
			"Wait":      func() { _, _ = p.Wait(t.Context()) },
			"Reset":     p.Reset,
			"SetPeriod": func() { p.SetPeriod(time.Second) },
		} {
			assert.PanicsWithValue(t, "wait: Pacer used across the border of a testing/synctest bubble", use, name)
		}
	}
	outside := wait.NewPacer(time.Millisecond)
	var inside *wait.Pacer
	synctest.Test(t, func(t *testing.T) {
		inside = wait.NewPacer(time.Millisecond)
		use(t, outside)
	})
	use(t, inside)
	mustTick(t, outside) // and is not locked
}

func TestAPacerOnAThreadWaitsThereOnly(t *testing.T) {
	thread, err := wait.LockThread()
	require.NoError(t, err)
	defer func() { assert.NoError(t, thread.Close()) }()
	p := wait.NewPacer(time.Millisecond, wait.PaceOn(thread))
	mustTick(t, p)
	var elsewhere sync.WaitGroup
	elsewhere.Go(func() {
		assert.PanicsWithValue(t, "wait: Thread used by another goroutine than the one that locked it",
			func() { _, _ = p.Wait(t.Context()) })
	})
	elsewhere.Wait()
}

func TestTicksAllocateNothingAndLeaveNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	forEachPace(t, inRealTime, func(t *testing.T, opts ...wait.PacerOption) {
		for _, ctx := range []context.Context{context.Background(), t.Context()} {
			for _, period := range []time.Duration{200 * time.Microsecond, 11 * time.Millisecond} {
				p := wait.NewPacer(period, opts...)
				assertNoAllocs(t, 10, func() {
					if _, err := p.Wait(ctx); err != nil {
						t.Error(err)
					}
				}, period)
			}
		}
	})
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}
