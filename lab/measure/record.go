package measure

import (
	"math/bits"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latest is the longest lateness that a Recorder tells from longer ones.
const latest = int64(time.Hour)

// A Recorder keeps the lateness of waits: a histogram with three significant
// digits and, if it was made for it, the course over time. To record a sample
// allocates nothing. It belongs to one goroutine.
type Recorder struct {
	histogram     *hdrhistogram.Histogram
	early, missed int64
	min, max, sum int64
	last          int64

	// series holds the latest of each stride of samples. When it is full,
	// pairs become one and the stride twice as long.
	series  []Point
	stride  int
	pending Point
	held    int // samples in pending
}

// NewRecorder returns an empty Recorder whose series has at most the given
// number of points, which may be 0.
func NewRecorder(points int) *Recorder {
	return &Recorder{
		histogram: hdrhistogram.New(1, latest, 3),
		series:    make([]Point, 0, max(0, points-1)&^1), // and the pending one
		stride:    1,
	}
}

// Record keeps a wait that ended at the time at, so late. One that was early
// counts as not late, and as early.
func (r *Recorder) Record(at, late int64) {
	r.count(late)
	if cap(r.series) > 0 {
		r.draw(at, late)
	}
}

// RecordPaced is Record for the wait of a loop with a fixed period, which by a
// wait that is later than the period misses further deadlines, of which most
// were still to come. They count too, each with the time that had passed
// since: left out, the slowest moments would be those with the fewest samples
// ("coordinated omission"). It returns how many were missed.
func (r *Recorder) RecordPaced(at, late, period, most int64) (missed int64) {
	r.Record(at, late)
	for late -= period; late >= 0 && missed < most; late -= period {
		r.count(late)
		missed++
	}
	r.missed += missed
	return missed
}

func (r *Recorder) count(late int64) {
	r.last = late
	if late < 0 {
		r.early++
	}
	if n := r.histogram.TotalCount(); n == 0 || late < r.min {
		r.min = late
	}
	r.max = max(r.max, late)
	r.sum += late
	_ = r.histogram.RecordValue(min(max(late, 0), latest)) // refuses only what is outside of that
}

func (r *Recorder) draw(at, late int64) {
	if r.held == 0 || late > int64(r.pending.Late) {
		r.pending = Point{time.Duration(at), time.Duration(late)}
	}
	if r.held++; r.held < r.stride {
		return
	}
	r.held = 0
	if len(r.series) == cap(r.series) {
		r.thin()
	}
	r.series = append(r.series, r.pending)
}

// thin keeps the later one of each pair of points.
func (r *Recorder) thin() {
	half := r.series[:0]
	for i := 0; i+1 < len(r.series); i += 2 {
		a, b := r.series[i], r.series[i+1]
		if b.Late > a.Late {
			a = b
		}
		half = append(half, a)
	}
	r.series = half
	r.stride *= 2
}

// Waits returns how many waits were recorded, the missed ones included.
func (r *Recorder) Waits() int64 { return r.histogram.TotalCount() }

// Last returns the lateness that was recorded last.
func (r *Recorder) Last() time.Duration { return time.Duration(r.last) }

// Lateness returns the quantiles so far.
func (r *Recorder) Lateness() Lateness {
	n := r.Waits()
	if n == 0 {
		return Lateness{}
	}
	at := func(percent float64) time.Duration {
		return time.Duration(min(max(r.histogram.ValueAtQuantile(percent), r.min), r.max))
	}
	return Lateness{
		Min: time.Duration(r.min), Max: time.Duration(r.max), Mean: time.Duration(r.sum / n),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
	}
}

// fill puts into a row what was recorded.
func (r *Recorder) fill(row *Row) {
	row.Waits, row.Early, row.Missed, row.Lateness = r.Waits(), r.early, r.missed, r.Lateness()
	row.Series = append([]Point(nil), r.series...)
	if r.held > 0 {
		row.Series = append(row.Series, r.pending)
	}
}

// buckets returns the distribution in about n buckets with about as many waits
// each, but for the latest one percent, which has finer ones. None goes beyond
// a power of two of 100 ns, the steps of a coarse histogram.
func (r *Recorder) buckets(n int) []Bucket {
	var out []Bucket
	var pending Bucket
	var seen int64
	total := r.Waits()
	flush := func() {
		if pending.Waits > 0 {
			out = append(out, pending)
		}
		pending = Bucket{}
	}
	for _, bar := range r.histogram.Distribution() {
		if bar.Count == 0 {
			continue
		}
		late := time.Duration(min(bar.To, max(r.max, 0)))
		if octave(late) != octave(pending.Late) {
			flush()
		}
		pending.Late = late
		pending.Waits += bar.Count
		seen += bar.Count
		if pending.Waits >= total/int64(n) || seen > total-total/100 {
			flush()
		}
	}
	flush()
	return out
}

// octave is the power of two of 100 ns that late is at most.
func octave(late time.Duration) int { return bits.Len64(uint64((late - 1) / 100)) }
