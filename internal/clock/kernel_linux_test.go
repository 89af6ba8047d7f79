package clock_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait/internal/clock"
)

func kernelNow(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
	return ts.Nano()
}

func kernel(deadline int64) int64 {
	ts := clock.Kernel(deadline)
	return ts.Nano()
}

func TestKernelLiesBetweenReadingsOfTheKernelsClock(t *testing.T) {
	const offBy = int64(time.Millisecond) // only if every bracket met an interrupt
	for range 1000 {
		before := kernelNow(t)
		got := kernel(clock.Now())
		after := kernelNow(t)
		require.GreaterOrEqual(t, got, before, "a timer set to it would be early")
		require.LessOrEqual(t, got, after+offBy)
	}
}

func TestKernelIsNotEarly(t *testing.T) {
	for range 1000 {
		deadline := clock.Now() + 5000
		for want := kernel(deadline); kernelNow(t) < want; {
		}
		require.GreaterOrEqual(t, clock.Now(), deadline)
	}
}

func TestKernelAddsTheSameToEveryDeadline(t *testing.T) {
	offset := kernel(0)
	assert.Positive(t, offset, "the program started after the kernel")
	for _, deadline := range []int64{1, 999_999_999, int64(time.Second), int64(time.Hour), int64(60 * year)} {
		got := clock.Kernel(deadline)
		assert.Equal(t, deadline+offset, got.Nano())
		assert.Less(t, int64(got.Nsec), int64(time.Second))
	}
}

func TestKernelSaturates(t *testing.T) {
	for _, deadline := range []int64{clock.Never, clock.Never - 1, int64(69 * year)} {
		got := clock.Kernel(deadline)
		assert.EqualValues(t, math.MaxInt32, got.Sec)
		assert.Zero(t, got.Nsec)
	}
}

func TestKernelOfATimeBeforeTheStartIsPast(t *testing.T) {
	for _, deadline := range []int64{-1, math.MinInt64} {
		got := kernel(deadline)
		assert.Positive(t, got, "zero would disarm a timer")
		assert.LessOrEqual(t, got, kernelNow(t))
	}
}
