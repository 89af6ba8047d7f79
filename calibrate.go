package wait

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
)

// Calibrate measures the floor of this host, installs it and returns it. It
// takes at most about 300 ms, most of it asleep, and is best called at the
// start of a program, while nothing else runs: other work shows in the
// figures. Waits of other goroutines go on meanwhile; a second Calibrate
// waits for the first.
//
// It checks the clock first, by the smallest step between its readings, then
// whether sleeps end on the grid of a tick, then the lateness of sleeps by
// their length. If ctx is done before the end it installs nothing and returns
// ctx.Err() with the floor as known before. In a testing/synctest bubble
// there is nothing to measure: the error is [errors.ErrUnsupported]. A nil ctx
// panics.
func Calibrate(ctx context.Context) (Floor, error) {
	mustHave(ctx != nil, "Context")
	if err := ctx.Err(); err != nil {
		return CurrentFloor(), err
	}
	if clock.Fake() {
		return CurrentFloor(), fmt.Errorf("wait: calibrate on fake time: %w", errors.ErrUnsupported)
	}
	select {
	case calibrating <- struct{}{}:
		defer func() { <-calibrating }()
	case <-ctx.Done():
		return CurrentFloor(), ctx.Err()
	}
	found, err := thisHost.measure(ctx)
	if err != nil {
		return CurrentFloor(), err
	}
	ruler.step.Store(found.step)
	ruler.cost.Store(found.cost)
	ruler.tick.Store(found.tick)
	for i := range classes {
		if len(found.late[i]) >= enough {
			classes[i].replace(found.late[i])
		}
	}
	return CurrentFloor(), nil
}

var calibrating = make(chan struct{}, 1)

// A host is what is calibrated. A test has one of its own, with another clock
// and other sleeps.
type host struct {
	now   func() int64
	sleep func(now, deadline int64) int64 // returns the time at its end
	spin  func(now, deadline int64)
}

var thisHost = host{
	now:   clock.Now,
	sleep: park.Until,
	spin:  func(now, deadline int64) { spinUntil(now, deadline, nil) }, // exact to 2 us, as it need be
}

// A measurement is what was found of a host.
type measurement struct {
	step, cost, tick int64
	late             [len(classes)][]int64
}

const (
	// tickBudget and classBudget are what looking for a tick and for the
	// lateness of the classes may take.
	tickBudget  = int64(150 * time.Millisecond)
	classBudget = int64(240 * time.Millisecond)

	// shortestTick is half of the period of a kernel with HZ=1000. Sleeps that
	// end faster than that wait for no tick.
	shortestTick = int64(500 * time.Microsecond)

	// probe is the sleep by which a tick is looked for: much shorter than any
	// tick, and longer than it takes to set a timer on a slow host, where a
	// reading of the clock alone may take 3 us. A sleep that is over before it
	// begins ends on no tick.
	probe = int64(100 * time.Microsecond)
)

func (h host) measure(ctx context.Context) (m measurement, err error) {
	m.step, m.cost = h.ruler()
	if m.tick, err = h.findTick(ctx); err != nil {
		return m, err
	}
	if m.tick > 0 {
		for i := range m.late {
			m.late[i] = gridLateness(m.tick)
		}
		return m, nil
	}
	m.late, err = h.lateness(ctx)
	return m, err
}

// ruler returns the smallest step between two readings of the clock, and what
// a reading takes.
func (h host) ruler() (step, cost int64) {
	const readings = 1000
	step = math.MaxInt64
	start := h.now()
	last := start
	for i := 0; i < readings || step == math.MaxInt64; i++ {
		now := h.now()
		if now > last {
			step = min(step, now-last)
		}
		last = now
		if i+1 == readings {
			cost = (now - start) / readings
		}
	}
	return step, cost
}

// findTick returns the period of the grid on which sleeps end, or 0.
//
// On a tick-driven host the shortest sleeps, back to back, take a tick each.
// But so do sleeps that are merely slow; what tells them apart is that sleeps
// begun at any time end on the same grid.
func (h host) findTick(ctx context.Context) (int64, error) {
	const (
		backToBack = 5
		scrambled  = 8
	)
	begin := h.now()
	var took []int64
	for range backToBack {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		before := h.now()
		took = append(took, h.sleep(before, before+probe)-before)
	}
	slices.Sort(took)
	tick := took[backToBack/2]
	if tick < shortestTick {
		return 0, nil
	}
	ends := []int64{h.now()}
	for i := 1; i <= scrambled && (h.now()-begin < tickBudget || i <= scrambled/2); i++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		now := h.now()
		phase := math.Mod(float64(i)*math.Phi, 1) // as uneven as can be
		h.spin(now, now+int64(phase*float64(tick)))
		now = h.now()
		ends = append(ends, h.sleep(now, now+probe))
	}
	return gridOf(ends, tick), nil
}

// gridOf returns the exact period of the grid of about the given period that
// all but one of the times lie on, or 0 if they do not.
func gridOf(times []int64, about int64) int64 {
	first, last := times[0], times[len(times)-1]
	periods := math.Round(float64(last-first) / float64(about))
	if periods < 1 {
		return 0
	}
	period := float64(last-first) / periods
	off := 0
	for _, t := range times {
		n := float64(t-first) / period
		if math.Abs(n-math.Round(n)) > 0.1 {
			off++
		}
	}
	if off > 1 {
		return 0
	}
	return int64(math.Round(period))
}

// gridLateness returns the lateness of sleeps of any length that end on a
// grid: anything up to a tick, and none likelier than another.
func gridLateness(tick int64) []int64 {
	late := make([]int64, window)
	for i := range late {
		late[i] = tick * int64(i+1) / window
	}
	return late
}

// lateness returns the lateness of sleeps of each class but the longest, as
// far as there is time for it.
func (h host) lateness(ctx context.Context) (late [len(classes)][]int64, err error) {
	begin, stopped := h.now(), false
	for i, c := range [...]struct {
		request time.Duration
		n       int
	}{
		{30 * time.Microsecond, 30},
		{100 * time.Microsecond, 30},
		{300 * time.Microsecond, 30},
		{time.Millisecond, 16},
		{2 * time.Millisecond, 10},
		{6 * time.Millisecond, enough},
		{12 * time.Millisecond, enough},
	} {
		for range c.n {
			if err := ctx.Err(); err != nil {
				return late, err
			}
			now := h.now()
			if now-begin > classBudget {
				return late, nil
			}
			deadline := now + int64(c.request)
			l := h.sleep(now, deadline) - deadline
			late[i] = append(late[i], l)
			if l > classBudget/4 && !stopped {
				// The host did something else meanwhile, once.
				begin, stopped = begin+l, true
			}
		}
	}
	return late, nil
}
