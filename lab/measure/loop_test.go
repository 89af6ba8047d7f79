package measure

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

func TestFixedRateCountsEveryDeadline(t *testing.T) {
	const period, n = time.Millisecond, 50
	stalled := false
	w := waiter{wait: to(func(start, deadline int64) {
		wait.SpinUntil(at(deadline))
		if !stalled && deadline-start > 0 {
			stalled = true
			wait.Spin(5*period + period/2)
		}
	})}
	rec := NewRecorder(Points)
	fixedRate(t.Context(), w, int64(period), int64(n*period), rec, nil)
	assert.EqualValues(t, n, rec.Waits(), "a stall must take no deadline away")
	assert.GreaterOrEqual(t, rec.missed, int64(5))
	assert.GreaterOrEqual(t, rec.Lateness().Max, 5*period)
}

func TestLongestLoopDoesNotWrap(t *testing.T) {
	ctx, m := stopping(t, 3)
	row, err := FixedRate(ctx, m, time.Millisecond, math.MaxInt64, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 3, row.Waits-row.Missed)
}

// The CPU is by the waits that there were, whatever they have missed.
func TestMissedDeadlinesCostNothing(t *testing.T) {
	m := Method{Name: "busy", open: simple(func(_, deadline int64) { wait.SpinUntil(at(deadline + int64(20*time.Millisecond))) })}
	row, err := FixedRate(t.Context(), m, time.Millisecond, 100*time.Millisecond, nil)
	require.NoError(t, err)
	require.NotNil(t, row.CPU)
	cpu := *row.CPUs * float64(100*time.Millisecond) // about
	assert.InEpsilon(t, cpu/float64(row.Waits-row.Missed), float64(*row.CPU), 0.5)
}

func TestFixedRateKeepsToTheGridOfATicker(t *testing.T) {
	m, err := parseMethod("time.Ticker")
	require.NoError(t, err)
	row, err := FixedRate(t.Context(), m[0], 2*time.Millisecond, 40*time.Millisecond, nil)
	require.NoError(t, err)
	assert.Zero(t, row.Early)
	assert.InDelta(t, 20, row.Waits, 1, "the grid of the ticker is another one")
}

func TestFixedRateTellsHowItStands(t *testing.T) {
	var seen []Live
	m, err := parseMethod("Sleep")
	require.NoError(t, err)
	_, err = FixedRate(t.Context(), m[0], 10*time.Millisecond, 500*time.Millisecond, func(l Live) { seen = append(seen, l) })
	require.NoError(t, err)
	require.NotEmpty(t, seen)
	assert.Positive(t, seen[0].Waits)
	assert.GreaterOrEqual(t, seen[0].Max, seen[0].P99)
}

// stopping returns a method that ends its context with the given wait.
func stopping(t *testing.T, wait int) (context.Context, Method) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	var waits atomic.Int64
	return ctx, Method{Name: "stopping", open: simple(func(now, deadline int64) {
		time.Sleep(time.Duration(deadline - now))
		if waits.Add(1) == int64(wait) {
			cancel()
		}
	})}
}

func TestFixedRateEndsWithItsContext(t *testing.T) {
	ctx, m := stopping(t, 5)
	row, err := FixedRate(ctx, m, time.Millisecond, time.Hour, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 5, row.Waits-row.Missed)
	assert.NotEmpty(t, row.Buckets)
}

// withArray is fixedRate, but keeps the samples in a plain array.
func withArray(w waiter, period int64, late []int64) {
	next := now() + period
	for i := range late {
		due := w.wait(now(), next)
		t := now()
		late[i] = t - due
		next = due + period
	}
}

// BenchmarkJitterAgainstArray takes turns between the loop of jitter and the
// same one with a plain array; the ratio is the median of the rounds.
//
//	go test -run '^$' -bench JitterAgainstArray -benchtime 21x ./measure
func BenchmarkJitterAgainstArray(b *testing.B) {
	const period, n = int64(time.Millisecond), 500
	m, err := parseMethod("Thread.Sleep")
	require.NoError(b, err)
	w, err := m[0].open(time.Millisecond)
	require.NoError(b, err)
	defer func() { require.NoError(b, w.close()) }()
	late := make([]int64, n)
	withArray(w, period, late) // learns
	defer quiet()()
	var ours, array, ratios []float64
	for b.Loop() {
		rec := NewRecorder(Points)
		first := len(ratios)%2 == 0
		if first {
			withArray(w, period, late)
		}
		fixedRate(b.Context(), w, period, n*period, rec, func(Live) {})
		if !first {
			withArray(w, period, late)
		}
		slices.Sort(late)
		a, z := float64(rec.Lateness().P99), float64(late[(n-1)*99/100])
		ours, array, ratios = append(ours, a/1e3), append(array, z/1e3), append(ratios, a/z)
	}
	b.ReportMetric(0, "ns/op")
	for unit, values := range map[string][]float64{"p99-us": ours, "array-p99-us": array, "p99-ratio": ratios} {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], unit)
	}
}
