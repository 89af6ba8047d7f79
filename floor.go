package wait

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait/internal/park"
)

// A Floor is what sleeping costs in lateness on a host: how late sleeps end,
// by their length, and what they are measured with. It can be saved as JSON
// and installed again with [SetFloor].
type Floor struct {
	// ClockStep is the smallest step between two readings of the clock that
	// Calibrate saw, and ClockCost what a reading takes. A lateness below
	// either means nothing. They are 0 before Calibrate.
	ClockStep time.Duration `json:"clock_step_ns"`
	ClockCost time.Duration `json:"clock_cost_ns"`

	// Tick is the period of the grid on which all sleeps of a tick-driven
	// host end, or 0 where timers are finer than that.
	Tick time.Duration `json:"tick_ns"`

	// Wakeup is what ends a sleep: WakeupTimerfd or WakeupRuntime.
	Wakeup string `json:"wakeup"`

	// Classes holds the lateness of sleeps, shortest first.
	Classes []FloorClass `json:"classes"`
}

// A FloorClass is the lateness of sleeps of about one length.
type FloorClass struct {
	// UpTo is the longest sleep in the class; it begins above that of the
	// class before. That of the last class is the longest Duration.
	UpTo time.Duration `json:"up_to_ns"`

	// P50, P90 and P99 are how late the sleeps ended, as quantiles.
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`

	// Samples is how many sleeps the quantiles were taken from, at most the
	// last 128. If there were fewer than 8, the quantiles are a guess.
	Samples int `json:"samples"`
}

// A Method is a way to wait.
type Method int

// The ways to wait that [Floor.Advise] chooses from.
const (
	MethodSpin   Method = iota // the floor is longer than the wait
	MethodHybrid               // sleep, then spin for about the floor
	MethodSleep                // the floor is at most a quarter of the wait
)

func (m Method) String() string {
	switch m {
	case MethodSpin:
		return "Spin"
	case MethodHybrid:
		return "Hybrid"
	case MethodSleep:
		return "Sleep"
	}
	return fmt.Sprintf("Method(%d)", int(m))
}

// Lateness returns how late a sleep of d is expected to end, at the given
// quantile: the time that it will not exceed with that probability. Between
// the quantiles that the floor holds it goes in a straight line, below 0.5
// and above 0.99 it is that of the nearest. It is 0 for a d of zero or less,
// which does not sleep, and for a Floor without classes.
func (f Floor) Lateness(d time.Duration, quantile float64) time.Duration {
	c, ok := f.class(d)
	if !ok {
		return 0
	}
	switch {
	case quantile <= 0.5:
		return c.P50
	case quantile <= 0.9:
		return between(c.P50, c.P90, (quantile-0.5)/0.4)
	case quantile <= 0.99:
		return between(c.P90, c.P99, (quantile-0.9)/0.09)
	}
	return c.P99
}

func between(low, high time.Duration, share float64) time.Duration {
	return low + time.Duration(math.Round(share*float64(high-low)))
}

// Advise returns the cheapest way to wait for d that ends at most a quarter
// of d late in nine of ten waits. [For] does what it says, by the floor of
// the moment.
func (f Floor) Advise(d time.Duration) Method {
	c, ok := f.class(d)
	if !ok {
		return MethodSpin
	}
	return advise(d, c.P90, c.P99)
}

func (f Floor) class(d time.Duration) (FloorClass, bool) {
	if d <= 0 || len(f.Classes) == 0 {
		return FloorClass{}, false
	}
	for _, c := range f.Classes {
		if d <= c.UpTo {
			return c, true
		}
	}
	return f.Classes[len(f.Classes)-1], true
}

func advise(d, p90, p99 time.Duration) Method {
	switch {
	case p90 <= d/4:
		return MethodSleep
	case p99 < d:
		return MethodHybrid
	}
	return MethodSpin
}

// MidBand returns the request that on a tick-driven host takes k ticks most
// dependably, round(Tick*k - Tick/2): a sleep ends with the first tick after
// its time, so a request in the middle between two ticks is the furthest
// from taking one more or one less. It returns 0 on a host without a tick
// and for a k below 1.
func (f Floor) MidBand(k int) time.Duration {
	if f.Tick <= 0 || k < 1 {
		return 0
	}
	if int64(k) > math.MaxInt64/int64(f.Tick) {
		return math.MaxInt64
	}
	// Half a nanosecond is rounded away from zero, as math.Round does.
	return f.Tick*time.Duration(k) - f.Tick/2
}

// String returns the floor as a table with a line for each class.
func (f Floor) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sleeps end by %s, ", orUnknown(f.Wakeup))
	if f.Tick > 0 {
		fmt.Fprintf(&b, "on a tick of %v; ", f.Tick)
	}
	fmt.Fprintf(&b, "clock step %v, read %v\n", f.ClockStep, f.ClockCost)
	fmt.Fprintf(&b, "%-10s %10s %10s %10s %8s", "sleep", "p50 late", "p90", "p99", "samples")
	for _, c := range f.Classes {
		upTo := "longer"
		if c.UpTo < math.MaxInt64 {
			upTo = "<= " + c.UpTo.String()
		}
		fmt.Fprintf(&b, "\n%-10s %10v %10v %10v %8d", upTo, rounded(c.P50), rounded(c.P90), rounded(c.P99), c.Samples)
	}
	return b.String()
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown means"
	}
	return s
}

func rounded(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(100 * time.Nanosecond)
	}
	return d.Round(time.Microsecond)
}

// CurrentFloor returns the floor as calibrated, installed or learned so far.
// It never blocks and measures nothing.
func CurrentFloor() Floor {
	return Floor{
		ClockStep: time.Duration(ruler.step.Load()),
		ClockCost: time.Duration(ruler.cost.Load()),
		Tick:      time.Duration(ruler.tick.Load()),
		Wakeup:    wakeup(park.ReadCounts()),
		Classes:   classes.figures(),
	}
}

// SetFloor installs a floor that was measured before, on this host, in place
// of what is known so far. It is not the last word: Sleep and Hybrid go on to
// teach the package. Each class counts as 128 samples from then on. Classes with fewer than 8 samples, and classes that f does not
// hold, are left as they are; Wakeup is not installed, since what ends a
// sleep is not a matter of choice.
//
// A floor that cannot be is refused with an error that names the field and
// is [os.ErrInvalid]; then nothing is changed.
func SetFloor(f Floor) error {
	if err := f.check(); err != nil {
		return fmt.Errorf("wait: floor: %w: %w", err, os.ErrInvalid)
	}
	ruler.step.Store(int64(f.ClockStep))
	ruler.cost.Store(int64(f.ClockCost))
	ruler.tick.Store(int64(f.Tick))
	for _, c := range f.Classes {
		if c.Samples >= enough {
			classes.of(int64(c.UpTo)).replace(samplesOf(c.P50, c.P90, c.P99))
		}
	}
	return nil
}

// check returns an error that names the first field of f that cannot be.
func (f Floor) check() error {
	for _, field := range []struct {
		name  string
		value time.Duration
	}{{"ClockStep", f.ClockStep}, {"ClockCost", f.ClockCost}, {"Tick", f.Tick}} {
		if field.value < 0 {
			return fmt.Errorf("field %s is negative (%v)", field.name, field.value)
		}
	}
	switch f.Wakeup {
	case "", WakeupTimerfd, WakeupRuntime:
	default:
		return fmt.Errorf("field Wakeup is unknown (%q)", f.Wakeup)
	}
	if len(f.Classes) == 0 {
		return errors.New("field Classes is empty")
	}
	last := time.Duration(0)
	for i, c := range f.Classes {
		if err := c.check(last); err != nil {
			return fmt.Errorf("field Classes[%d].%w", i, err)
		}
		last = c.UpTo
	}
	return nil
}

// latest is the longest lateness that a floor may have.
const latest = time.Hour

// check is the like for a class that comes after one up to last.
func (c FloorClass) check(last time.Duration) error {
	for _, field := range []struct {
		ok   bool
		is   string
		what any
	}{
		{classes.of(int64(c.UpTo)).upTo == c.UpTo, "UpTo is not that of a class", c.UpTo},
		{c.UpTo > last, "UpTo is not above that of the class before", c.UpTo},
		{c.P50 >= 0, "P50 is negative", c.P50},
		{c.P90 >= c.P50, "P90 is below P50", c.P90},
		{c.P99 >= c.P90, "P99 is below P90", c.P99},
		{c.P99 <= latest, "P99 is more than an hour", c.P99},
		{c.Samples >= 0, "Samples is negative", c.Samples},
	} {
		if !field.ok {
			return fmt.Errorf("%s (%v)", field.is, field.what)
		}
	}
	return nil
}

// ruler is what the clock was found to be.
var ruler struct{ step, cost, tick atomic.Int64 }
