package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestQuantilesAreThoseOfTheSortedSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	r := NewRecorder(0)
	var all []int64
	for range 10_000 {
		late := int64(1000 * random.ExpFloat64() * random.ExpFloat64() * 50)
		all = append(all, late)
		r.Record(0, late)
	}
	slices.Sort(all)
	l := r.Lateness()
	assert.Equal(t, time.Duration(all[0]), l.Min)
	assert.Equal(t, time.Duration(all[len(all)-1]), l.Max)
	for _, c := range []struct {
		rank int
		got  time.Duration
	}{{5000, l.P50}, {9000, l.P90}, {9900, l.P99}, {9990, l.P999}} {
		assert.InEpsilon(t, all[c.rank-1], int64(c.got), 0.002, c.rank)
	}
	assert.EqualValues(t, 10_000, r.Waits())
}

func TestEarlyWaitsAreCounted(t *testing.T) {
	r := NewRecorder(0)
	r.Record(0, -44_000)
	r.Record(0, 1000)
	var row Row
	r.fill(&row)
	assert.EqualValues(t, 1, row.Early)
	assert.Equal(t, -44*time.Microsecond, row.Lateness.Min)
	assert.EqualValues(t, 2, row.Waits)
}

func TestNothingRecordedIsNothingLate(t *testing.T) {
	assert.Zero(t, NewRecorder(10).Lateness())
	assert.Empty(t, NewRecorder(10).buckets(10))
}

func TestMissedDeadlinesCount(t *testing.T) {
	for _, c := range []struct {
		late, missed int64
		max, min     time.Duration
	}{
		{0, 0, 0, 0},
		{999, 0, 999, 999},
		{1000, 1, 1000, 0},
		{2500, 2, 2500, 500},
	} {
		r := NewRecorder(0)
		assert.Equal(t, c.missed, r.RecordPaced(0, c.late, 1000, 100), c.late)
		assert.Equal(t, c.missed+1, r.Waits(), c.late)
		assert.Equal(t, c.max, r.Lateness().Max, c.late)
		assert.Equal(t, c.min, r.Lateness().Min, c.late)
	}
}

func TestNoMoreAreMissedThanWereToCome(t *testing.T) {
	r := NewRecorder(0)
	assert.EqualValues(t, 3, r.RecordPaced(0, 10_000, 1000, 3))
	assert.EqualValues(t, 4, r.Waits())
	assert.Equal(t, time.Duration(7000), r.Lateness().Min)
}

func TestLatenessBeyondTheHistogramIsItsEnd(t *testing.T) {
	r := NewRecorder(0)
	r.Record(0, 10*latest)
	assert.EqualValues(t, 1, r.Waits())
	assert.Equal(t, time.Duration(10*latest), r.Lateness().Max)
}

func TestSeriesKeepsTheLatestAndIsBounded(t *testing.T) {
	const points = 64
	r := NewRecorder(points)
	for i := range int64(100_000) {
		late := i % 100
		if i == 77_777 {
			late = 5000
		}
		r.Record(i, late)
	}
	var row Row
	r.fill(&row)
	assert.LessOrEqual(t, len(row.Series), points)
	assert.GreaterOrEqual(t, len(row.Series), points/2-1)
	assert.Contains(t, row.Series, Point{At: 77_777, Late: 5000})
	assert.True(t, slices.IsSortedFunc(row.Series, func(a, b Point) int { return int(a.At - b.At) }))
}

func TestSeriesHoldsTheLastWaits(t *testing.T) {
	r := NewRecorder(4)
	for i := range int64(9) {
		r.Record(i, 1)
	}
	r.Record(9, 5000)
	var row Row
	r.fill(&row)
	assert.Contains(t, row.Series, Point{At: 9, Late: 5000})
}

func TestBucketsHoldEveryWait(t *testing.T) {
	r := NewRecorder(0)
	for i := range int64(1000) {
		r.Record(0, i*i)
	}
	buckets := r.buckets(50)
	assert.LessOrEqual(t, len(buckets), 80)
	var n int64
	for i, b := range buckets {
		n += b.Waits
		if i > 0 {
			assert.Greater(t, b.Late, buckets[i-1].Late)
		}
	}
	assert.EqualValues(t, 1000, n)
	assert.Equal(t, r.Lateness().Max, buckets[len(buckets)-1].Late)
}

func TestRecordAllocatesNothing(t *testing.T) {
	r := NewRecorder(1000)
	at := int64(0)
	require.Zero(t, testing.AllocsPerRun(10_000, func() {
		at += 1000
		r.RecordPaced(at, at%3000, 1000, 100)
	}))
}

// BenchmarkRecord is what a sample costs, with its place in the series.
func BenchmarkRecord(b *testing.B) {
	b.ReportAllocs()
	r := NewRecorder(Points)
	at := int64(0)
	for b.Loop() {
		at += 1000
		r.RecordPaced(at, 40_000+at%20_000, 1_000_000, 100)
	}
}
