package wait

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
)

// freshBudget gives a test the spin budget as it is in the beginning.
func freshBudget(t *testing.T) {
	reset := func() {
		spinBudget.spinning.Store(0)
		spinBudget.refused.Store(false)
		spinBudget.closed.Store(0)
		spinBudget.refusedAt.Store(0)
	}
	reset()
	t.Cleanup(reset)
}

func TestTheSpinBudgetIsHalfThePs(t *testing.T) {
	for procs, want := range map[int]int{1: 1, 2: 1, 4: 2, 5: 2, 8: 4} {
		freshBudget(t)
		before := runtime.GOMAXPROCS(procs)
		taken := 0
		for takeSpin(1000) {
			taken++
		}
		runtime.GOMAXPROCS(before)
		assert.Equal(t, want, taken, "GOMAXPROCS=%d", procs)
		assert.EqualValues(t, want, spinBudget.spinning.Load(), "a refusal leaves nothing behind")
	}
}

func TestOneSpinnerAloneIsNeverRefused(t *testing.T) {
	freshBudget(t)
	for now := int64(0); now < 1e6; now += 1000 {
		require.True(t, takeSpin(now))
		giveSpin(now, now+999)
	}
}

func TestACrowdSpinsHalfOfTheTime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	require.True(t, takeSpin(1000))
	require.False(t, takeSpin(1100), "while the first spins")
	giveSpin(1000, 2000)
	assert.False(t, takeSpin(2001), "for as long again")
	assert.False(t, takeSpin(2999))
	assert.True(t, takeSpin(3000))
	giveSpin(3000, 3001)
}

func TestACrowdThatWasRefusedSleepsForAWhile(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	var sleepers sync.WaitGroup
	for range 2 * crowd {
		sleepers.Go(func() { Sleep(300 * time.Millisecond) })
	}
	for park.Parked() < 2*crowd {
		time.Sleep(time.Millisecond)
	}
	now := int64(time.Second)
	assert.False(t, crowded(now), "none was refused")
	assert.False(t, crowded(1), "nor has one just after the program started")
	require.True(t, takeSpin(now))
	require.False(t, takeSpin(now))
	assert.True(t, crowded(now+1))
	assert.False(t, crowded(now+crowdMemory), "it tries again")
	sleepers.Wait()
	assert.False(t, crowded(now+1), "the crowd has gone")
}

// A short wait gets the same care as a long one: it sleeps, and spins the rest.
func TestHybridSpinsForAboutItsMargin(t *testing.T) {
	for _, d := range []time.Duration{200 * time.Microsecond, time.Millisecond, 10 * time.Millisecond} {
		freshBudget(t)
		keepFloor(t)
		const p99 = 100 * time.Microsecond
		classes.of(int64(d)).replace(samplesOf(p99/2, p99/2, p99))
		before := ReadStats()
		for range 20 {
			classes.of(int64(d)).replace(samplesOf(p99/2, p99/2, p99))
			Hybrid(d)
		}
		after := ReadStats()
		spun := (after.Spun - before.Spun) / 20
		t.Logf("Hybrid(%v) spun for %v", d, spun)
		assert.Greater(t, spun, time.Microsecond, "%v", d)
		assert.Less(t, spun, d*9/10, "%v", d)
		assert.EqualValues(t, 20, after.Hybrids-before.Hybrids)
	}
}

func TestSleepAndHybridTeachTheFloor(t *testing.T) {
	for name, wait := range map[string]func(time.Duration){"Sleep": Sleep, "Hybrid": Hybrid} {
		freshBudget(t)
		keepFloor(t)
		c := classes.of(int64(500 * time.Microsecond))
		var learned int64
		for range 21 { // a host that stops this process early on has Hybrid spin for a while
			c.replace([]int64{0})
			for range 20 {
				wait(500 * time.Microsecond)
			}
			if learned = c.samples.Load(); learned > 10 {
				break
			}
		}
		assert.Greater(t, learned, int64(10), name)
	}
}

func TestHybridInACrowdThatWasRefusedSleepsAllTheWay(t *testing.T) {
	freshBudget(t)
	var sleepers sync.WaitGroup
	for range 2 * crowd {
		sleepers.Go(func() { Sleep(300 * time.Millisecond) })
	}
	for park.Parked() < 2*crowd {
		time.Sleep(time.Millisecond)
	}
	spinBudget.refusedAt.Store(clock.Now())
	before := ReadStats()
	Hybrid(time.Millisecond)
	Hybrid(time.Microsecond)
	after := ReadStats()
	assert.Equal(t, before.Spun, after.Spun)
	assert.EqualValues(t, 2, after.OverBudget-before.OverBudget)
	sleepers.Wait()
}

// The host may stop a spin for as long as it likes.
func TestAStoppedSpinDoesNotCloseTheBudgetForLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	require.True(t, takeSpin(0))
	require.False(t, takeSpin(1))
	giveSpin(0, int64(time.Hour))
	assert.False(t, takeSpin(int64(time.Hour)+1))
	assert.True(t, takeSpin(int64(time.Hour)+pauseLimit))
}

func TestASpinNoticesThatOnlyOnePIsLeft(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	y := newYielder(0, int64(time.Second))
	y.yield(turn)
	assert.Equal(t, lookAgain, y.next)
	runtime.GOMAXPROCS(1)
	y.yield(lookAgain)
	assert.Equal(t, lookAgain+turn, y.next)
	runtime.GOMAXPROCS(2)
	y.yield(y.next)
	assert.Equal(t, lookAgain+turn+lookAgain, y.next)

	short := newYielder(0, turn)
	assert.Equal(t, int64(clock.Never), short.next)
}

func TestHybridBeyondTheBudgetSleeps(t *testing.T) {
	freshBudget(t)
	require.True(t, takeSpin(clock.Now()))
	for spinBudget.spinning.Load() < max(1, int64(runtime.GOMAXPROCS(0)/2)) {
		require.True(t, takeSpin(clock.Now()))
	}
	over := ReadStats().OverBudget
	for _, d := range []time.Duration{5 * time.Microsecond, time.Millisecond} {
		start := time.Now()
		Hybrid(d)
		assert.GreaterOrEqual(t, time.Since(start), d)
	}
	// A sleep that ends after the deadline needs no spin, so not every one of
	// many is refused; the first of these always is.
	assert.Greater(t, ReadStats().OverBudget, over)
}

func TestTheBudgetIsGivenBack(t *testing.T) {
	freshBudget(t)
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			for range 20 {
				Hybrid(300 * time.Microsecond)
			}
		})
	}
	wg.Wait()
	assert.Zero(t, spinBudget.spinning.Load())
}

// On the only P a spin would keep everybody else from running for 10 ms, after
// which the runtime preempts it.
func TestASpinSharesTheOnlyP(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var turns atomic.Int64
	var stop atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		for !stop.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	Spin(20 * time.Millisecond)
	got := turns.Load()
	stop.Store(true)
	other.Wait()
	assert.Greater(t, got, int64(3), "more than preemption alone would give")
}

func TestASpinEndsWhenItIsDone(t *testing.T) {
	done := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { close(done) })
	now := clock.Now()
	last, reached := spinUntil(now, now+int64(time.Hour), done)
	assert.False(t, reached)
	assert.Less(t, last-now, int64(time.Minute))
}

func TestSpunTimeIsCounted(t *testing.T) {
	before := ReadStats().Spun
	start := time.Now()
	for range 10 {
		Spin(100 * time.Microsecond)
	}
	spun := ReadStats().Spun - before
	assert.GreaterOrEqual(t, spun, time.Millisecond)
	assert.LessOrEqual(t, spun, time.Since(start))
}

// spinsOfReceive returns how many receives have spun during f.
func spinsOfReceive(f func()) uint64 {
	before := ReadStats()
	f()
	return ReadStats().ReceivesSpun - before.ReceivesSpun
}

func TestAReceiveCatchesAValueInItsSpin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	before := ReadStats()
	c := make(chan int, 1)
	var sender sync.WaitGroup
	sender.Go(func() {
		// Not before the spin, nor so soon after its begin that it takes no time.
		for limit := time.Now().Add(10 * time.Second); spinBudget.spinning.Load() == 0 && time.Now().Before(limit); {
			runtime.Gosched()
		}
		for start := time.Now(); time.Since(start) < 2*time.Millisecond; {
		}
		c <- 1
	})
	_, err := RecvTimeout(c, time.Minute, 0)
	require.NoError(t, err)
	sender.Wait()
	after := ReadStats()
	assert.EqualValues(t, 1, after.ReceivesSpun-before.ReceivesSpun)
	assert.EqualValues(t, 1, after.ReceivesCaught-before.ReceivesCaught)
	assert.Greater(t, after.Spun, before.Spun)
	assert.Zero(t, spinBudget.spinning.Load(), "the budget is given back")
}

func TestAReceiveThatSpinsInVainParks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	before := ReadStats()
	_, err := RecvTimeout(make(chan int), 50*time.Microsecond, 300*time.Millisecond)
	require.ErrorIs(t, err, ErrTimeout)
	after := ReadStats()
	assert.EqualValues(t, 1, after.ReceivesSpun-before.ReceivesSpun)
	assert.Equal(t, before.ReceivesCaught, after.ReceivesCaught)
	assert.GreaterOrEqual(t, after.Spun-before.Spun, 50*time.Microsecond)
	assert.Less(t, after.Spun-before.Spun, 200*time.Millisecond, "loose: the host may stop the spin")
}

func TestAReceiveDoesNotSpinInVain(t *testing.T) {
	for name, c := range map[string]struct {
		procs int
		take  bool // the whole budget is taken
		ch    chan int
	}{
		"over the budget":    {procs: 2, take: true, ch: make(chan int)},
		"with one P":         {procs: 1, ch: make(chan int)},
		"from a nil channel": {procs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
			freshBudget(t)
			if c.take {
				require.True(t, takeSpin(clock.Now()))
			}
			over := counts.overBudget.Load()
			assert.Zero(t, spinsOfReceive(func() {
				_, err := RecvTimeout(c.ch, time.Minute, time.Millisecond)
				assert.ErrorIs(t, err, ErrTimeout)
			}))
			assert.Equal(t, c.take, counts.overBudget.Load() > over)
		})
	}
}

func TestAReceiveWaitsAMomentForTheOtherSidesSpinToEnd(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	caught := false
	for end := time.Now().Add(10 * time.Second); !caught && time.Now().Before(end); {
		freshBudget(t)
		now := clock.Now()
		require.True(t, takeSpin(now))
		begun := make(chan struct{})
		go func() {
			close(begun)
			giveSpin(now, clock.Now())
		}()
		<-begun
		caught = spinsOfReceive(func() { _, _ = RecvTimeout(make(chan int), 5*time.Microsecond, time.Millisecond) }) == 1
	}
	assert.True(t, caught)
}

func TestALongSpinOfAReceiveEndsWhenOthersWereRefused(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	refused := make(chan struct{})
	time.AfterFunc(5*time.Millisecond, func() {
		takeSpin(clock.Now())
		close(refused)
	})
	spun := counts.spun.Load()
	_, err := RecvTimeout(make(chan int), time.Minute, time.Second)
	require.ErrorIs(t, err, ErrTimeout)
	<-refused
	assert.Less(t, counts.spun.Load()-spun, int64(800*time.Millisecond), "it has not parked")
}

func TestALongSpinOfAReceiveThatNobodyMindsGoesOn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	spun := counts.spun.Load()
	_, err := RecvTimeout(make(chan int), time.Minute, 3*time.Duration(pauseLimit))
	require.ErrorIs(t, err, ErrTimeout)
	assert.GreaterOrEqual(t, counts.spun.Load()-spun, 3*pauseLimit-int64(time.Millisecond))
}

func TestTheYielderOfAReceiveSharesAPThatBecameTheOnlyOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	freshBudget(t)
	var other sync.WaitGroup
	var turns atomic.Int64
	var stop atomic.Bool
	time.AfterFunc(5*time.Millisecond, func() {
		runtime.GOMAXPROCS(1)
		turns.Store(0)
	})
	other.Go(func() {
		for !stop.Load() {
			turns.Add(1)
			runtime.Gosched()
		}
	})
	_, err := RecvTimeout(make(chan int), time.Minute, 60*time.Millisecond)
	stop.Store(true)
	other.Wait()
	require.ErrorIs(t, err, ErrTimeout)
	assert.Greater(t, turns.Load(), int64(100), "preemption alone would give it some six turns")
}

func FuzzTakenTicksStayInOrder(f *testing.F) {
	f.Add(int64(1), int64(0), uint8(0))
	f.Add(int64(1000), int64(2500), uint8(1))
	f.Add(int64(1)<<62, int64(1)<<62, uint8(2))
	f.Fuzz(func(t *testing.T, period, late int64, policy uint8) {
		if period <= 0 || late < 0 {
			return
		}
		const next = int64(1000)
		now := clock.After(next, time.Duration(late))
		p := NewPacer(time.Duration(period), OnMissed(MissedPolicy(policy%3)))
		p.next = next
		tick, due, ok := p.take(now, next)
		require.True(t, ok)
		require.LessOrEqual(t, due, now, "it is due")
		require.GreaterOrEqual(t, due, next)
		require.GreaterOrEqual(t, tick.Missed, int64(0))
		require.Greater(t, p.next, due, "time goes on")
		switch p.missed {
		case Skip:
			require.Equal(t, next+tick.Missed*period, due, "on the grid")
			require.Less(t, now-due, period, "the latest")
			require.Equal(t, tick.Missed+1, tick.Index)
		case Burst:
			require.Equal(t, next, due)
			require.Zero(t, tick.Missed)
		case Delay:
			require.Equal(t, next, due)
			require.Equal(t, (now-next)/period, tick.Missed)
			if tick.Missed > 0 {
				require.Equal(t, clock.After(now, time.Duration(period)), p.next)
			}
		}
		_, _, ok = p.take(now, next)
		require.False(t, ok, "it is taken")
	})
}
