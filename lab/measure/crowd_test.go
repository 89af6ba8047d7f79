package measure

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

func method(t *testing.T, name string) Method {
	t.Helper()
	found, err := ParseMethods([]string{name})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func TestCrowdTakesAllWaits(t *testing.T) {
	for _, name := range []string{"Sleep", "time.Ticker", "Thread.Sleep"} {
		for _, burst := range []bool{false, true} {
			row, err := Crowd(t.Context(), method(t, name), Gathering{Sleepers: 20, Request: 5 * time.Millisecond, Waits: 3, Burst: burst})
			require.NoError(t, err)
			assert.Empty(t, row.Absent, name)
			assert.EqualValues(t, 60, row.Waits, name)
			assert.Zero(t, row.Early, name)
			assert.Positive(t, row.Threads, name)
			assert.Equal(t, 20, row.Sleepers, name)
		}
	}
}

func TestDeadlinesOfACrowdAreSpreadUnlessTheyAreABurst(t *testing.T) {
	const n, request = 10, 20 * time.Millisecond
	for _, burst := range []bool{false, true} {
		var mu sync.Mutex
		var first []int64
		m := Method{Name: "noted", open: func(time.Duration) (waiter, error) {
			begun := false
			return waiter{to(func(_, deadline int64) {
				if !begun {
					begun = true
					mu.Lock()
					defer mu.Unlock()
					first = append(first, deadline)
				}
			}), func() error { return nil }}, nil
		}}
		_, err := Crowd(t.Context(), m, Gathering{Sleepers: n, Request: request, Waits: 1, Burst: burst})
		require.NoError(t, err)
		slices.Sort(first)
		require.Len(t, first, n)
		want := int64(request) * (n - 1) / n
		if burst {
			want = 0
		}
		assert.Equal(t, want, first[n-1]-first[0])
	}
}

func TestCrowdOfThreadsIsBounded(t *testing.T) {
	row, err := Crowd(t.Context(), method(t, "Thread.Sleep"), Gathering{Sleepers: MostThreads + 1, Request: time.Millisecond, Waits: 1})
	require.NoError(t, err)
	assert.Contains(t, row.Absent, "holds a thread")
	assert.Zero(t, row.Waits)
}

// Descriptors may run out in the middle of a crowd.
func TestCrowdThatCannotBeHadIsAbsent(t *testing.T) {
	var opened, closed atomic.Int64
	m := Method{Name: "scarce", open: func(time.Duration) (waiter, error) {
		if opened.Add(1) > 5 {
			return waiter{}, errors.New("too many open files")
		}
		return waiter{to(func(int64, int64) {}), func() error { closed.Add(1); return nil }}, nil
	}}
	row, err := Crowd(t.Context(), m, Gathering{Sleepers: 20, Request: time.Millisecond, Waits: 1})
	require.NoError(t, err)
	assert.Equal(t, "for 20 sleepers: too many open files", row.Absent)
	assert.Zero(t, row.Waits)
	assert.EqualValues(t, 5, closed.Load())
}

func TestInterruptedCrowdTellsWhatWasMeasured(t *testing.T) {
	ctx, m := stopping(t, 20)
	row, err := Crowd(ctx, m, Gathering{Sleepers: 5, Request: 2 * time.Millisecond, Waits: 100_000})
	require.NoError(t, err)
	assert.Positive(t, row.Waits)
	assert.LessOrEqual(t, row.Waits, int64(20))
}

func TestWaitsEndWithATick(t *testing.T) {
	const tick = 2 * time.Millisecond
	w, err := OnTick(tick).open(0)
	require.NoError(t, err)
	for range 20 {
		start := now()
		wait.Spin(time.Duration(start % 700_000)) // another phase each time
		start = now()
		deadline := start + 300_000
		w.wait(start, deadline)
		end := now()
		assert.GreaterOrEqual(t, end, deadline)
		assert.Positive(t, end/int64(tick)-(deadline-1)/int64(tick), "a tick must have passed")
	}
}

func TestPhaseTakesBothKinds(t *testing.T) {
	rows, err := Phase(t.Context(), OnTick(time.Millisecond), 500*time.Microsecond, time.Millisecond, 30)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	for i, name := range []string{BackToBack, Scrambled} {
		assert.Equal(t, name, rows[i].Method)
		assert.EqualValues(t, 30, rows[i].Waits)
		assert.Zero(t, rows[i].Early)
		assert.NotEmpty(t, rows[i].Buckets)
	}
}

func TestInterruptedPhaseTellsWhatWasMeasured(t *testing.T) {
	ctx, m := stopping(t, 5)
	rows, err := Phase(ctx, m, time.Millisecond, time.Millisecond, 1_000_000)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.EqualValues(t, 5, rows[0].Waits)
}
