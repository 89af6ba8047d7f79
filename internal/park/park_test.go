package park

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/internal/clock"
)

func TestUntilIsNotEarlyAndReturnsTheTimeItSaw(t *testing.T) {
	for _, d := range []time.Duration{-1, 0, 1, 500, 1001, 20 * time.Microsecond, time.Millisecond, 3 * time.Millisecond} {
		now := clock.Now()
		deadline := now + int64(d)
		woke := Until(now, deadline)
		assert.GreaterOrEqual(t, woke, deadline, "%v", d)
		assert.LessOrEqual(t, woke, clock.Now(), "%v", d)
	}
}

func TestUntilSleepsBeyondTheHorizonInTwoSteps(t *testing.T) {
	now := clock.Now()
	deadline := now + horizon + int64(50*time.Millisecond)
	assert.GreaterOrEqual(t, Until(now, deadline), deadline)
}

func TestManySleepersAreNotEarly(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			for k := range 5 {
				now := clock.Now()
				deadline := now + int64(1+(i*k)%37)*100_000
				assert.GreaterOrEqual(t, Until(now, deadline), deadline)
			}
		})
	}
	wg.Wait()
}

func TestRangeEndsInside(t *testing.T) {
	for _, width := range []time.Duration{-time.Millisecond, 0, 1, 10 * time.Microsecond, time.Millisecond, time.Minute} {
		now := clock.Now()
		soft := now + int64(2*time.Millisecond)
		woke, reached := Range(now, soft, clock.After(soft, width), nil)
		assert.True(t, reached)
		assert.GreaterOrEqual(t, woke, soft, "%v", width)
	}
}

func TestRangeBeyondTheHorizon(t *testing.T) {
	now := clock.Now()
	soft := now + horizon + int64(20*time.Millisecond)
	woke, reached := Range(now, soft, clock.Never, nil)
	assert.True(t, reached)
	assert.GreaterOrEqual(t, woke, soft)
}

func TestDoneEndsEverySleep(t *testing.T) {
	for name, sleep := range map[string]func(now int64, done <-chan struct{}) (int64, bool){
		"UntilDone":                    func(now int64, done <-chan struct{}) (int64, bool) { return UntilDone(now, now+horizon/2, done) },
		"UntilDone beyond the horizon": func(now int64, done <-chan struct{}) (int64, bool) { return UntilDone(now, clock.Never, done) },
		"Range": func(now int64, done <-chan struct{}) (int64, bool) {
			return Range(now, now+horizon/2, now+horizon, done)
		},
		"Range beyond the horizon": func(now int64, done <-chan struct{}) (int64, bool) { return Range(now, clock.Never, clock.Never, done) },
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan struct{})
			now := clock.Now()
			time.AfterFunc(2*time.Millisecond, func() { close(done) })
			last, reached := sleep(now, done)
			assert.False(t, reached)
			assert.GreaterOrEqual(t, last, now)
			assert.Less(t, last-now, horizon/2)
		})
	}
}

// A timer that a cancelled sleep gave back must not end the next one early.
func TestTimersAreReusedWithoutAStaleExpiry(t *testing.T) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for k := range 200 {
				done := make(chan struct{})
				if k%2 == 0 { // cancelled at about the deadline
					time.AfterFunc(time.Duration(k)*time.Microsecond, func() { close(done) })
				}
				now := clock.Now()
				deadline := now + 100_000
				last, reached := UntilDone(now, deadline, done)
				if reached {
					assert.GreaterOrEqual(t, last, deadline)
				}
			}
		})
	}
	wg.Wait()
	assert.Zero(t, ReadCounts().Parked)
}

func TestRoundestIsWithinAndShared(t *testing.T) {
	got, ok := roundest(1_000_000, 2_000_000)
	require.True(t, ok)
	other, ok := roundest(1_040_000, 2_040_000)
	require.True(t, ok)
	assert.Equal(t, got, other, "two windows that nearly coincide have one round time")
	_, ok = roundest(5, 4)
	assert.False(t, ok)
}

func FuzzRoundest(f *testing.F) {
	f.Add(int64(1), int64(1))
	f.Add(int64(0), int64(1))
	f.Add(int64(7), int64(9))
	f.Add(int64(1), int64(clock.Never))
	f.Fuzz(func(t *testing.T, soft, hard int64) {
		if soft < 1 || hard < soft { // times of the clock, past its start
			return
		}
		got, ok := roundest(soft, hard)
		require.True(t, ok)
		require.GreaterOrEqual(t, got, soft)
		require.LessOrEqual(t, got, hard)
		if zeros := bits.TrailingZeros64(uint64(got)); soft != hard && zeros < 62 {
			rounder := (soft + (1<<(zeros+1) - 1)) >> (zeros + 1) << (zeros + 1)
			if rounder > 0 { // it did not wrap
				require.Greater(t, rounder, hard, "a rounder time lies in between")
			}
		}
	})
}

func TestRecvEndsByWhatComesFirst(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		deadline, value, closed, done time.Duration // 0 is never
		want                          End
	}{
		"value":                       {value: 2 * ms, want: Delivered},
		"value before the deadline":   {value: 2 * ms, deadline: time.Minute, want: Delivered},
		"value in the marked stretch": {value: ms / 2, deadline: time.Duration(near), want: Delivered},
		"value before done":           {value: 2 * ms, done: time.Minute, deadline: time.Minute, want: Delivered},
		"closed":                      {closed: 2 * ms, want: Closed},
		"closed before the deadline":  {closed: 2 * ms, deadline: time.Minute, want: Closed},
		"done":                        {done: 2 * ms, want: Done},
		"done before the deadline":    {done: 2 * ms, deadline: time.Minute, want: Done},
		"deadline":                    {deadline: ms, want: Due},
		"deadline beyond the marks":   {deadline: time.Duration(2*near) + ms/3, want: Due},
		"deadline beyond the horizon": {deadline: time.Duration(horizon) + ms, done: time.Minute, want: Due},
	} {
		t.Run(name, func(t *testing.T) {
			for {
				ch, done := make(chan int, 1), make(chan struct{})
				var came atomic.Int64
				came.Store(clock.Never)
				after := func(d time.Duration, f func()) {
					if d > 0 {
						timer := time.AfterFunc(d, func() { f(); came.Store(clock.Now()) })
						t.Cleanup(func() { timer.Stop() })
					}
				}
				after(c.value, func() { ch <- 7 })
				after(c.closed, func() { close(ch) })
				after(c.done, func() { close(done) })
				now := clock.Now()
				deadline := int64(clock.Never)
				if c.deadline > 0 {
					deadline = now + int64(c.deadline)
				}
				v, end := Recv(now, deadline, ch, done)
				if end == Delivered {
					assert.Equal(t, 7, v)
				}
				if end == Due {
					require.GreaterOrEqual(t, clock.Now(), deadline)
					if c.want != Due && came.Load() >= deadline {
						continue // a busy machine was late with what was to come first
					}
				}
				assert.Equal(t, c.want, end)
				break
			}
		})
	}
}

func TestRecvTakesAValueThatIsThereAtTheEnd(t *testing.T) {
	done := make(chan struct{})
	close(done)
	ch := make(chan int, 1)
	for range 100 {
		for _, deadline := range []int64{0, clock.Now() + 1, clock.Never} {
			ch <- 7
			v, end := Recv(clock.Now(), deadline, ch, done)
			require.Equal(t, Delivered, end)
			require.Equal(t, 7, v)
		}
	}
}

func TestRecvThatIsLeftByItsValueLeavesNoMark(t *testing.T) {
	ch := make(chan int, 1)
	before := ReadCounts()
	for range 200 {
		time.AfterFunc(50*time.Microsecond, func() { ch <- 1 })
		now := clock.Now()
		Recv(now, now+int64(20*time.Millisecond), ch, nil)
	}
	time.Sleep(30 * time.Millisecond)
	assert.Less(t, ReadCounts().BellRings-before.BellRings, uint64(50), "a spare ring for hardly any of 200 waits")
}
