package wait

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// window is how many sleeps of a class the floor remembers. One outlier
	// in it moves no quantile, and two hundred waits later it is gone.
	window = 128

	// enough is how many sleeps it takes to believe them more than the guess.
	enough = 8

	// spare is how much longer Hybrid's margin is than the 99th percentile of
	// the window, which the next sleeps may exceed.
	spare = int64(5 * time.Microsecond)

	// settlePeriod is the shortest time between two sleeps that are learned.
	settlePeriod = int64(50 * time.Microsecond)

	// probePeriod is in how many waits that Hybrid spins from the start it
	// sleeps once, to see whether the floor is still what it was.
	probePeriod = 64
)

// The guess at the floor before anything is known: an idle Linux host's.
const (
	guessP50 = 60 * time.Microsecond
	guessP90 = 80 * time.Microsecond
	guessP99 = 100 * time.Microsecond
)

// A class learns the lateness of sleeps of about one length. Lateness grows
// with the length, so one figure for all cannot be right.
type class struct {
	upTo time.Duration // the longest sleep in it

	// What others read, without a lock.
	p50, p90, p99 atomic.Int64
	samples       atomic.Int64
	spunWhole     atomic.Int64 // waits since the last probe

	// noted is the lateness of the last sleep and 1, or 0 once it was learned.
	noted   atomic.Int64
	settled atomic.Int64 // when that was last done

	mu       sync.Mutex
	recent   [window]int64 // in order of arrival, a ring
	sorted   [window]int64 // the same, shortest first
	n, next  int
	contrary int // probes in a row that contradict the margin
}

var limits = [...]time.Duration{
	30 * time.Microsecond,
	100 * time.Microsecond,
	300 * time.Microsecond,
	time.Millisecond,
	3 * time.Millisecond,
	10 * time.Millisecond,
	30 * time.Millisecond,
	math.MaxInt64,
}

// A classSet is a floor as it is learned: the classes, shortest first.
type classSet [len(limits)]class

func newClassSet() *classSet {
	s := new(classSet)
	for i := range s {
		s[i].upTo = limits[i]
	}
	return s
}

// of returns the class of a sleep that takes ns.
func (s *classSet) of(ns int64) *class {
	for i := range s {
		if ns <= int64(s[i].upTo) {
			return &s[i]
		}
	}
	panic("unreachable: the last class has no end")
}

// figures returns what is known of the classes.
func (s *classSet) figures() []FloorClass {
	list := make([]FloorClass, len(s))
	for i := range s {
		list[i] = s[i].figures()
	}
	return list
}

// classes is the floor that the whole program shares. A Thread has its own.
var classes = newClassSet()

// note leaves a sleep's lateness to be learned by settle, when the next wait
// begins. Learning takes a tenth of a microsecond, which a sleeper that has
// just woken up does not have, and one that is about to sleep does.
func (c *class) note(late int64) { c.noted.Store(late + 1) }

// settle learns what was noted, for a crowd of sleepers only some of it.
func (c *class) settle(now int64) {
	if now-c.settled.Load() < settlePeriod || c.noted.Load() == 0 {
		return
	}
	if late := c.noted.Swap(0); late != 0 {
		c.settled.Store(now)
		c.learn(late - 1)
	}
}

// learn takes notice of a sleep's lateness.
func (c *class) learn(late int64) {
	// Where two goroutines have a sample at the same time, one will do.
	if c.mu.TryLock() {
		c.add(late)
		c.publish()
		c.mu.Unlock()
	}
}

// learnProbe takes notice of the lateness of a sleep that was made to see
// whether the margin is still right. Two in a row that are far below it say
// that the window belongs to another time.
func (c *class) learnProbe(late int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if late < c.margin()/4 {
		c.contrary++
		c.spunWhole.Store(probePeriod - 1) // look again at once
	} else {
		c.contrary = 0
	}
	if c.contrary == 2 {
		c.n, c.next, c.contrary = 0, 0, 0
	}
	c.add(late)
	c.publish()
}

func (c *class) add(late int64) {
	if c.n == window {
		i, _ := slices.BinarySearch(c.sorted[:c.n], c.recent[c.next])
		copy(c.sorted[i:], c.sorted[i+1:c.n])
		c.n--
	}
	i, _ := slices.BinarySearch(c.sorted[:c.n], late)
	copy(c.sorted[i+1:c.n+1], c.sorted[i:c.n])
	c.sorted[i] = late
	c.recent[c.next] = late
	c.n++
	c.next = (c.next + 1) % window
}

func (c *class) publish() {
	c.samples.Store(int64(c.n))
	c.p50.Store(c.quantile(0.5))
	c.p90.Store(c.quantile(0.9))
	c.p99.Store(c.quantile(0.99))
}

// quantile returns the lateness that the share q of the window does not
// exceed. The longest does not count: it may be an outlier.
func (c *class) quantile(q float64) int64 {
	return c.sorted[rankOf(q, c.n)]
}

func rankOf(q float64, n int) int {
	return max(0, min(int(math.Ceil(q*float64(n)))-1, n-2))
}

// replace has the class know the given samples and no others.
func (c *class) replace(late []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.next, c.contrary = 0, 0, 0
	for _, l := range late {
		c.add(l)
	}
	c.publish()
}

// samplesOf returns a windowful of samples that have the given quantiles.
func samplesOf(p50, p90, p99 time.Duration) []int64 {
	late := make([]int64, window)
	for i := range late {
		// The stride mixes them, so that the ring does not let go of one
		// quantile before the others.
		switch rank := i * 37 % window; {
		case rank <= rankOf(0.5, window):
			late[i] = int64(p50)
		case rank <= rankOf(0.9, window):
			late[i] = int64(p90)
		default:
			late[i] = int64(p99)
		}
	}
	return late
}

func (c *class) known() bool { return c.samples.Load() >= enough }

// figures returns what is known of the class.
func (c *class) figures() FloorClass {
	f := FloorClass{UpTo: c.upTo, P50: guessP50, P90: guessP90, P99: guessP99, Samples: int(c.samples.Load())}
	if f.Samples >= enough {
		// A writer may be between two of these.
		f.P50 = time.Duration(c.p50.Load())
		f.P90 = max(f.P50, time.Duration(c.p90.Load()))
		f.P99 = max(f.P90, time.Duration(c.p99.Load()))
	}
	return f
}

// advise returns the way for a wait of ns, by what is known now.
func (c *class) advise(ns int64) Method {
	f := c.figures()
	return advise(time.Duration(ns), f.P90, f.P99)
}

// margin returns how long before its deadline Hybrid has to end its sleep.
// Where the slowest percent is far from the rest it is not waited for: two
// sleeps that the host delayed by a millisecond would have the next hundred
// waits spin for a millisecond each.
func (c *class) margin() int64 {
	if c.known() {
		return min(c.p99.Load(), 4*c.p90.Load()) + spare
	}
	return int64(guessP99)
}

// plan returns how long Hybrid is to sleep in a wait of ns, and whether that
// sleep is a probe. A wait that is not much longer than the margin is spun
// from the start; but then nothing is learned, and a margin that a stretch of
// bad luck made too long would stay so. So one such wait in probePeriod
// sleeps for half of it.
func (c *class) plan(ns int64) (sleep int64, probe bool) {
	if m := c.margin(); m < ns-ns/4 {
		return ns - m, false
	}
	if c.spunWhole.Add(1) < probePeriod {
		return 0, false
	}
	c.spunWhole.Store(0)
	return ns / 2, true
}
