package wait

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typical is a lateness of 40 to 60 us.
func typical(r *rand.Rand) int64 { return 40_000 + r.Int64N(20_000) }

func learned(n int) (*class, *rand.Rand) {
	r := rand.New(rand.NewPCG(1, 2))
	c := &class{upTo: time.Millisecond}
	for range n {
		c.learn(typical(r))
	}
	return c, r
}

func TestAClassGuessesUntilItKnows(t *testing.T) {
	c, _ := learned(enough - 1)
	assert.Equal(t, FloorClass{UpTo: time.Millisecond, P50: guessP50, P90: guessP90, P99: guessP99, Samples: enough - 1}, c.figures())
	c.learn(50_000)
	assert.Less(t, c.figures().P50, guessP50)
}

func TestAClassLearnsQuantiles(t *testing.T) {
	c, _ := learned(1000)
	f := c.figures()
	assert.InDelta(t, 50_000, f.P50, 4_000)
	assert.InDelta(t, 58_000, f.P90, 2_000)
	assert.InDelta(t, 59_800, f.P99, 600)
	assert.Equal(t, window, f.Samples)
}

func TestTheWindowIsSortedAndHoldsTheLatest(t *testing.T) {
	c := &class{}
	var all []int64
	r := rand.New(rand.NewPCG(3, 4))
	for range 700 {
		v := r.Int64N(20)
		c.learn(v)
		all = append(all, v)
		latest := all[max(0, len(all)-window):]
		require.ElementsMatch(t, latest, c.sorted[:c.n])
		require.IsNonDecreasing(t, c.sorted[:c.n])
	}
}

func TestOutliersMoveNothing(t *testing.T) {
	for name, outliers := range map[string][]int64{
		"50 ms":                {50_000_000},
		"SIGSTOP for a second": {1_000_000_000},
	} {
		t.Run(name, func(t *testing.T) {
			c, r := learned(500)
			before, margin := c.figures(), c.margin()
			for _, o := range outliers {
				c.learn(o)
			}
			after := c.figures()
			assert.InDelta(t, before.P50, after.P50, 1_000)
			assert.InDelta(t, before.P90, after.P90, 1_000)
			assert.InDelta(t, before.P99, after.P99, 1_000)
			assert.InDelta(t, margin, c.margin(), 1_000)
			for range 2 * window {
				c.learn(typical(r))
			}
			assert.InDelta(t, before.P99, c.figures().P99, 1_000)
		})
	}
}

func TestAFewLongDelaysDoNotMakeHybridSpinThroughThem(t *testing.T) {
	c, _ := learned(500)
	for range 4 { // every thread of a stopped process
		c.learn(1_000_000_000)
	}
	assert.Less(t, c.margin(), int64(4*60_000+spare+1))
}

func TestAClassRecoversWithinTwoHundredSleeps(t *testing.T) {
	c, r := learned(500)
	want := c.figures()
	for range window {
		c.learn(50_000_000)
	}
	assert.EqualValues(t, 50_000_000, c.figures().P50)
	for range 200 {
		c.learn(typical(r))
	}
	got := c.figures()
	assert.InDelta(t, want.P50, got.P50, 4_000)
	assert.InDelta(t, want.P99, got.P99, 2_000)
}

func TestANoteIsLearnedByTheNextWait(t *testing.T) {
	c, _ := learned(0)
	now := int64(time.Second)
	c.settle(now)
	assert.Zero(t, c.samples.Load())
	c.note(0)
	assert.Zero(t, c.samples.Load())
	c.settle(now)
	c.settle(now)
	assert.EqualValues(t, 1, c.samples.Load())
	c.note(0)
	c.settle(now + 1)
	assert.EqualValues(t, 1, c.samples.Load(), "a crowd need not teach the same thing all the time")
	c.settle(now + settlePeriod)
	assert.EqualValues(t, 2, c.samples.Load())
}

// A margin that has grown past the request lets no sleep happen from which it
// could be learned that it is too long.
func TestAPoisonedMarginComesDownByItself(t *testing.T) {
	for _, request := range []int64{150_000, 1_000_000, 10_000_000} {
		c, r := learned(500)
		c.replace(samplesOf(50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond))
		spun := int64(0)
		for i := range 200 {
			sleep, probe := c.plan(request)
			late := typical(r)
			switch {
			case sleep == 0:
			case probe:
				c.learnProbe(late)
			default:
				c.learn(late)
			}
			if i >= 100 {
				spun += request - sleep
			}
		}
		assert.Less(t, spun/100, int64(guessP99+1000), "spun per wait of %v", time.Duration(request))
	}
}

func TestRequestsBelowTheFloorAreSpunButForAFewProbes(t *testing.T) {
	c, r := learned(500)
	sleeps := 0
	for range 10 * probePeriod {
		if sleep, probe := c.plan(30_000); sleep > 0 {
			require.True(t, probe)
			c.learnProbe(typical(r))
			sleeps++
		}
	}
	assert.Equal(t, 10, sleeps)
}

func TestClassOf(t *testing.T) {
	for i := range classes {
		upTo := int64(classes[i].upTo)
		assert.Same(t, &classes[i], classes.of(upTo))
		if i+1 < len(classes) {
			assert.Same(t, &classes[i+1], classes.of(upTo+1))
			assert.Less(t, upTo, int64(classes[i+1].upTo))
		}
	}
}

// keepFloor puts back what a test does to the package's floor.
func keepFloor(t *testing.T) {
	type kept struct {
		recent  [window]int64
		n, next int
	}
	var all [len(classes)]kept
	step, cost, tick := ruler.step.Load(), ruler.cost.Load(), ruler.tick.Load()
	for i := range classes {
		c := &classes[i]
		c.mu.Lock()
		all[i] = kept{c.recent, c.n, c.next}
		c.mu.Unlock()
	}
	t.Cleanup(func() {
		ruler.step.Store(step)
		ruler.cost.Store(cost)
		ruler.tick.Store(tick)
		for i, k := range all {
			var late []int64
			for j := range k.n {
				late = append(late, k.recent[(k.next-k.n+j+window)%window])
			}
			classes[i].replace(late)
		}
	})
}

func TestHybridLeavesAPoisonedFloorBehind(t *testing.T) {
	keepFloor(t)
	f := CurrentFloor()
	for i := range f.Classes {
		f.Classes[i] = FloorClass{UpTo: f.Classes[i].UpTo, P50: 50 * time.Millisecond, P90: 50 * time.Millisecond, P99: 50 * time.Millisecond, Samples: window}
	}
	require.NoError(t, SetFloor(f))
	for range 200 {
		Hybrid(time.Millisecond)
	}
	margin := classes.of(int64(time.Millisecond)).margin()
	t.Logf("margin %v", time.Duration(margin))
	assert.Less(t, margin, int64(20*time.Millisecond), "still poisoned")
}

func TestSetFloorInstallsWhatItWasGiven(t *testing.T) {
	keepFloor(t)
	f := Floor{ClockStep: 1, ClockCost: 20, Tick: 4 * time.Millisecond}
	for i := range classes {
		ms := time.Duration(i+1) * time.Millisecond
		f.Classes = append(f.Classes, FloorClass{UpTo: classes[i].upTo, P50: ms, P90: 2 * ms, P99: 3 * ms, Samples: window})
	}
	require.NoError(t, SetFloor(f))
	got := CurrentFloor()
	f.Wakeup = got.Wakeup
	assert.Equal(t, f, got)

	data, err := json.Marshal(got)
	require.NoError(t, err)
	var back Floor
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, got, back)
	require.NoError(t, SetFloor(back))
}

func TestSetFloorLeavesWhatItHasNoSamplesOf(t *testing.T) {
	keepFloor(t)
	before := CurrentFloor()
	require.NoError(t, SetFloor(Floor{Classes: []FloorClass{{UpTo: time.Millisecond, P50: 1, P90: 2, P99: 3, Samples: enough - 1}}}))
	assert.Equal(t, before.Classes, CurrentFloor().Classes)
}

func TestSetFloorRefusesNonsense(t *testing.T) {
	keepFloor(t)
	before := CurrentFloor()
	good := func() Floor {
		return Floor{Classes: []FloorClass{
			{UpTo: 100 * time.Microsecond, P50: 10, P90: 20, P99: 30, Samples: 128},
			{UpTo: time.Millisecond, P50: 10, P90: 20, P99: 30, Samples: 128},
		}}
	}
	for field, spoil := range map[string]func(f *Floor){
		"ClockStep":          func(f *Floor) { f.ClockStep = -1 },
		"ClockCost":          func(f *Floor) { f.ClockCost = -1 },
		"Tick":               func(f *Floor) { f.Tick = -time.Millisecond },
		"Wakeup":             func(f *Floor) { f.Wakeup = "magic" },
		"Classes":            func(f *Floor) { f.Classes = nil },
		"Classes[0].P50":     func(f *Floor) { f.Classes[0].P50 = -1 },
		"Classes[0].P90":     func(f *Floor) { f.Classes[0].P90 = 9 },
		"Classes[1].P99":     func(f *Floor) { f.Classes[1].P99 = 19 },
		"Classes[1].Samples": func(f *Floor) { f.Classes[1].Samples = -1 },
		"Classes[1].UpTo":    func(f *Floor) { f.Classes[1].UpTo = 7 * time.Millisecond },
		"Classes[0].UpTo":    func(f *Floor) { f.Classes[0].UpTo = -1 },
	} {
		t.Run(field, func(t *testing.T) {
			f := good()
			spoil(&f)
			err := SetFloor(f)
			require.ErrorIs(t, err, os.ErrInvalid)
			assert.ErrorContains(t, err, field+" ")
			assert.Equal(t, before, CurrentFloor(), "nothing may be changed")
		})
	}
	t.Run("out of order", func(t *testing.T) {
		f := good()
		f.Classes[0], f.Classes[1] = f.Classes[1], f.Classes[0]
		assert.ErrorContains(t, SetFloor(f), "Classes[1].UpTo ")
	})
}

// An unmarshalled floor may hold anything.
func FuzzSetFloor(f *testing.F) {
	good, err := json.Marshal(CurrentFloor())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"classes":[{"up_to_ns":1000000,"p50_ns":9,"p90_ns":8,"samples":1000}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var floor Floor
		if json.Unmarshal(data, &floor) != nil {
			return
		}
		keepFloor(t)
		if err := SetFloor(floor); err != nil {
			require.ErrorIs(t, err, os.ErrInvalid)
			return
		}
		require.NoError(t, CurrentFloor().check())
	})
}

var example = Floor{Classes: []FloorClass{
	{UpTo: 100 * time.Microsecond, P50: 20 * time.Microsecond, P90: 40 * time.Microsecond, P99: 60 * time.Microsecond, Samples: 128},
	{UpTo: time.Millisecond, P50: 50 * time.Microsecond, P90: 70 * time.Microsecond, P99: 90 * time.Microsecond, Samples: 128},
	{UpTo: math.MaxInt64, P50: 100 * time.Microsecond, P90: 200 * time.Microsecond, P99: 300 * time.Microsecond, Samples: 128},
}}

func TestLateness(t *testing.T) {
	us := time.Microsecond
	for _, c := range []struct {
		d        time.Duration
		quantile float64
		want     time.Duration
	}{
		{50 * us, 0.5, 20 * us}, {50 * us, 0.9, 40 * us}, {50 * us, 0.99, 60 * us},
		{50 * us, 0.7, 30 * us}, {50 * us, 0.945, 50 * us},
		{50 * us, 0, 20 * us}, {50 * us, -3, 20 * us}, {50 * us, 1, 60 * us}, {50 * us, 7, 60 * us},
		{50 * us, math.NaN(), 60 * us}, {50 * us, math.Inf(-1), 20 * us},
		{100 * us, 0.5, 20 * us}, {101 * us, 0.5, 50 * us}, {time.Hour, 0.5, 100 * us}, {math.MaxInt64, 0.5, 100 * us},
		{0, 0.5, 0}, {-1, 0.99, 0},
	} {
		assert.Equal(t, c.want, example.Lateness(c.d, c.quantile), "Lateness(%v, %v)", c.d, c.quantile)
	}
	assert.Zero(t, Floor{}.Lateness(time.Second, 0.5))
	short := Floor{Classes: example.Classes[:1]}
	assert.Equal(t, 20*us, short.Lateness(time.Hour, 0.5), "the longest class serves what is longer")
}

func TestAdvise(t *testing.T) {
	for d, want := range map[time.Duration]Method{
		-1:                     MethodSpin,
		0:                      MethodSpin,
		60 * time.Microsecond:  MethodSpin,
		61 * time.Microsecond:  MethodHybrid,
		200 * time.Microsecond: MethodHybrid,
		279 * time.Microsecond: MethodHybrid,
		280 * time.Microsecond: MethodSleep,
		math.MaxInt64:          MethodSleep,
	} {
		assert.Equal(t, want, example.Advise(d), "%v", d)
	}
	assert.Equal(t, "Spin Hybrid Sleep Method(9)", MethodSpin.String()+" "+MethodHybrid.String()+" "+MethodSleep.String()+" "+Method(9).String())
}

func TestForDoesWhatTheFloorAdvises(t *testing.T) {
	keepFloor(t)
	f := example
	f.Classes = append([]FloorClass(nil), f.Classes...)
	for d, want := range map[time.Duration]Method{
		50 * time.Microsecond:  MethodSpin,
		200 * time.Microsecond: MethodHybrid,
		900 * time.Microsecond: MethodSleep,
	} {
		require.NoError(t, SetFloor(f)) // anew, since each wait teaches
		require.Equal(t, want, CurrentFloor().Advise(d))
		before := ReadStats()
		For(d)
		after := ReadStats()
		got := map[Method]uint64{MethodSpin: after.Spins - before.Spins, MethodHybrid: after.Hybrids - before.Hybrids, MethodSleep: after.Sleeps - before.Sleeps}
		for m, n := range got {
			assert.Equal(t, m == want, n == 1, "%v took %d of %v", d, n, m)
		}
	}
}

func TestMidBand(t *testing.T) {
	windows := Floor{Tick: 15_625 * time.Microsecond}
	for k, want := range map[int]time.Duration{
		-1: 0, 0: 0, 1: 7_812_500, 2: 23_437_500, 16: 250*time.Millisecond - 7_812_500,
	} {
		assert.Equal(t, want, windows.MidBand(k), "%d", k)
	}
	odd := Floor{Tick: 4_000_001}
	for k := 1; k < 5; k++ {
		want := math.Round(4_000_001*float64(k) - 4_000_001.0/2)
		assert.EqualValues(t, want, odd.MidBand(k))
	}
	assert.Zero(t, Floor{}.MidBand(3), "no tick")
	assert.Equal(t, time.Duration(math.MaxInt64), Floor{Tick: 1 << 40}.MidBand(math.MaxInt32), "saturates")
}

func TestFloorPrintsItself(t *testing.T) {
	f := example
	f.Tick, f.Wakeup = 4*time.Millisecond, WakeupTimerfd
	s := f.String()
	for _, part := range []string{"timerfd", "tick of 4ms", "<= 100µs", "longer", "300µs"} {
		assert.Contains(t, s, part)
	}
	assert.NotContains(t, Floor{}.String(), "tick")
}

// A simHost has a clock that moves only as it is used.
type simHost struct {
	t    int64
	step int64
	cost int64                      // of a reading of the clock, 25 if it is 0
	end  func(deadline int64) int64 // when a sleep until the deadline ends
}

func (s *simHost) host() host {
	return host{
		now:   func() int64 { s.t += cmp.Or(s.cost, 25); return s.t / s.step * s.step },
		sleep: func(_, deadline int64) int64 { s.t = max(s.t, s.end(deadline)); return s.t / s.step * s.step },
		spin:  func(_, deadline int64) { s.t = max(s.t, deadline+10) },
	}
}

func onGrid(tick, phase int64, r *rand.Rand) func(int64) int64 {
	return func(deadline int64) int64 {
		return (deadline-phase+tick-1)/tick*tick + phase + r.Int64N(tick/100)
	}
}

func TestCalibrateFindsTheTickOfATickDrivenHost(t *testing.T) {
	for _, tick := range []int64{1_000_000, 3_333_333, 4_000_000, 10_000_000, 15_625_000} {
		for phase := range int64(5) {
			r := rand.New(rand.NewPCG(uint64(tick), uint64(phase)))
			s := &simHost{t: 1e9, step: 1, end: onGrid(tick, phase*tick/5, r)}
			begin := s.t
			m, err := s.host().measure(t.Context())
			require.NoError(t, err)
			assert.InEpsilon(t, tick, m.tick, 0.02, "tick %v phase %d", time.Duration(tick), phase)
			assert.LessOrEqual(t, s.t-begin, int64(310*time.Millisecond))
			for i := range m.late {
				assert.Len(t, m.late[i], window)
				assert.Equal(t, m.tick, m.late[i][window-1])
			}
		}
	}
}

// A clock of a few microseconds, as a PC's HPET is, makes a sleep of that
// length be over before its timer is set.
func TestCalibrateFindsTheTickOnASlowClock(t *testing.T) {
	const tick, cost = 4_000_000, 3_200
	r := rand.New(rand.NewPCG(7, 8))
	s := &simHost{t: 1e9, step: 1, cost: cost}
	s.end = func(deadline int64) int64 {
		if s.t += 5 * cost; s.t >= deadline {
			return s.t
		}
		return onGrid(tick, 0, r)(deadline)
	}
	m, err := s.host().measure(t.Context())
	require.NoError(t, err)
	assert.InEpsilon(t, tick, m.tick, 0.02)
}

func TestCalibrateTakesSlowSleepsForNoTick(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, end := range map[string]func(int64) int64{
		"fine timers":            func(d int64) int64 { return d + 40_000 + r.Int64N(30_000) },
		"a millisecond each":     func(d int64) int64 { return d + 1_060_000 + r.Int64N(20_000) },
		"four milliseconds each": func(d int64) int64 { return d + 4_000_000 + r.Int64N(20_000) },
		"anything up to 10 ms":   func(d int64) int64 { return d + r.Int64N(10_000_000) },
	} {
		s := &simHost{t: 1e9, step: 1, end: end}
		m, err := s.host().measure(t.Context())
		require.NoError(t, err)
		assert.Zero(t, m.tick, name)
		assert.NotEmpty(t, m.late[0], name)
	}
}

func TestCalibrateChecksTheRuler(t *testing.T) {
	for _, step := range []int64{1, 100, 15_625_000} {
		s := &simHost{t: 1e9, step: step, end: func(d int64) int64 { return d + 50_000 }}
		got, cost := s.host().ruler()
		assert.Equal(t, max(step, 25), got)
		assert.InDelta(t, 25, cost, float64(step)/1000+1)
	}
}

func TestCalibrateMeasuresEachClass(t *testing.T) {
	s := &simHost{t: 1e9, step: 1, end: func(d int64) int64 { return d + 50_000 }}
	begin := s.t
	m, err := s.host().measure(t.Context())
	require.NoError(t, err)
	assert.LessOrEqual(t, s.t-begin, int64(300*time.Millisecond))
	for i := range m.late[:len(m.late)-1] {
		assert.GreaterOrEqual(t, len(m.late[i]), enough)
		for _, late := range m.late[i] {
			assert.EqualValues(t, 50_000, late)
		}
	}
}

// The host may stop the process for longer than the whole calibration takes.
func TestCalibrateSurvivesAStop(t *testing.T) {
	for _, stopped := range []int{1, 3, 40, 100, 130} {
		n := 0
		s := &simHost{t: 1e9, step: 1, end: func(d int64) int64 {
			if n++; n == stopped {
				return d + int64(400*time.Millisecond)
			}
			return d + 50_000
		}}
		late, err := s.host().lateness(t.Context())
		require.NoError(t, err)
		for i := range late[:len(late)-1] {
			assert.GreaterOrEqual(t, len(late[i]), enough, "class %d, stopped at sleep %d", i, stopped)
		}
	}
}

func TestSetFloorRefusesWhatNoHostHas(t *testing.T) {
	keepFloor(t)
	for _, p99 := range []time.Duration{time.Hour + 1, math.MaxInt64} {
		err := SetFloor(Floor{Classes: []FloorClass{{UpTo: time.Millisecond, P90: p99 - 1, P99: p99, Samples: window}}})
		assert.ErrorIs(t, err, os.ErrInvalid)
		assert.ErrorContains(t, err, "Classes[0].P99")
	}
	require.NoError(t, SetFloor(Floor{Classes: []FloorClass{{UpTo: time.Millisecond, P90: time.Hour, P99: time.Hour, Samples: window}}}))
	assert.Positive(t, classes.of(int64(time.Millisecond)).margin())
}

func TestCalibrate(t *testing.T) {
	keepFloor(t)
	start := time.Now()
	f, err := Calibrate(t.Context())
	took := time.Since(start)
	require.NoError(t, err)
	t.Logf("took %v and found\n%v", took, f)
	assert.Less(t, took, 30*time.Second, "loose: the machine may be busy")
	assert.NoError(t, f.check())
	assert.Positive(t, f.ClockStep)
	assert.Positive(t, f.ClockCost)
	assert.Equal(t, f, CurrentFloor())
}

func TestCalibrateObeysItsContext(t *testing.T) {
	keepFloor(t)
	before := CurrentFloor()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	f, err := Calibrate(done)
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, before, f)

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = Calibrate(short)
	assert.Equal(t, context.DeadlineExceeded, err)
	assert.Equal(t, before, CurrentFloor(), "nothing may be installed")

	calibrating <- struct{}{} // another one is under way
	defer func() { <-calibrating }()
	_, err = Calibrate(short)
	assert.Equal(t, context.DeadlineExceeded, err)
	//lint:ignore SA1012 a nil Context is what is tested
	assert.PanicsWithValue(t, "wait: nil Context", func() { _, _ = Calibrate(nil) })
}
