package clock_test

import (
	"math"
	"math/big"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/internal/clock"
)

const (
	year   = 365 * 24 * time.Hour
	bubble = int64(-30 * year) // about what Now is in a synctest bubble
)

func TestNowNeverGoesBack(t *testing.T) {
	last := clock.Now()
	for range 10_000 {
		now := clock.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestNowGoesOnAsTimeDoes(t *testing.T) {
	begin, before := time.Now(), clock.Now()
	time.Sleep(5 * time.Millisecond)
	after, elapsed := clock.Now(), time.Since(begin)
	assert.GreaterOrEqual(t, after-before, int64(5*time.Millisecond))
	assert.LessOrEqual(t, after-before, int64(elapsed))
}

func TestAfter(t *testing.T) {
	for _, tc := range []struct {
		name string
		now  int64
		d    time.Duration
		want int64
	}{
		{"adds", 5, 7, 12},
		{"takes zero as it is", 5, 0, 5},
		{"counts a negative duration as zero", 5, -1, 5},
		{"counts the most negative duration as zero", 5, math.MinInt64, 5},
		{"ends at Never", 5, math.MaxInt64, clock.Never},
		{"ends at Never one past it", 5, math.MaxInt64 - 4, clock.Never},
		{"reaches Never exactly", 5, math.MaxInt64 - 5, clock.Never},
		{"stops just before Never", 5, math.MaxInt64 - 6, clock.Never - 1},
		{"takes the largest duration at the start", 0, math.MaxInt64, clock.Never},
		{"stays at Never", clock.Never, 1, clock.Never},
		{"adds in a synctest bubble", bubble, time.Second, bubble + int64(time.Second)},
		{"takes the largest duration in a synctest bubble", bubble, math.MaxInt64, math.MaxInt64 + bubble},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, clock.After(tc.now, tc.d))
		})
	}
}

func FuzzAfter(f *testing.F) {
	values := []int64{math.MinInt64, bubble, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, now := range values {
		for _, d := range values {
			f.Add(now, d)
		}
	}
	f.Fuzz(func(t *testing.T, now, d int64) {
		want := new(big.Int).Add(big.NewInt(now), big.NewInt(max(d, 0)))
		if never := big.NewInt(clock.Never); want.Cmp(never) > 0 {
			want = never
		}
		assert.Equal(t, want.Int64(), clock.After(now, time.Duration(d)))
	})
}

func TestAtIsExactForAMonotonicTime(t *testing.T) {
	base := time.Now()
	before := clock.At(base)
	for _, d := range []time.Duration{0, 1, -1, time.Microsecond, -time.Hour, time.Hour, 100 * year, -100 * year} {
		assert.Equal(t, before+int64(d), clock.At(base.Add(d)), "%v from now", d)
	}
}

func TestAtOfNowIsNow(t *testing.T) {
	before := clock.Now()
	at := clock.At(time.Now())
	after := clock.Now()
	assert.GreaterOrEqual(t, at, before)
	assert.LessOrEqual(t, at, after)
}

func TestAtWithoutMonotonicReading(t *testing.T) {
	for _, d := range []time.Duration{time.Minute, -time.Minute, year, 100 * year} {
		exact := time.Now().Add(d)
		got := clock.At(exact.Round(0))
		if d < 0 {
			assert.Less(t, got, clock.Now(), "%v from now is not in the past", d)
			continue
		}
		// Only a step of the wall clock in between could make it more.
		assert.InDelta(t, clock.At(exact), got, float64(time.Second), "%v from now", d)
	}
}

func TestAtWithoutMonotonicReadingIsNotEarly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the wall clock need not keep in step with the monotonic one")
	}
	for range 2000 {
		wall := time.Now().Add(5 * time.Microsecond).Round(0)
		deadline := clock.At(wall)
		for clock.Now() < deadline {
		}
		require.False(t, time.Now().Round(0).Before(wall), "the wall clock has not reached the time")
	}
}

func TestAtOfTimesOutOfRange(t *testing.T) {
	now := clock.Now()
	for _, tc := range []struct {
		name string
		t    time.Time
		past bool
	}{
		{"the zero time", time.Time{}, true},
		{"the Unix epoch", time.Unix(0, 0), true},
		{"year -9999", time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC), true},
		{"the least Unix time", time.Unix(math.MinInt64, 0), true},
		{"year 9999", time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), false},
		{"year 9999 in another zone", time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", 3600)), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.past {
				assert.Less(t, clock.At(tc.t), clock.Now())
			} else {
				assert.Greater(t, clock.At(tc.t), now+int64(290*year))
			}
		})
	}
}

func TestTimeAndAtRoundTrip(t *testing.T) {
	for _, deadline := range []int64{0, 1, -1, clock.Now(), int64(time.Hour), int64(100 * year), int64(-100 * year)} {
		assert.Equal(t, deadline, clock.At(clock.Time(deadline)))
	}
}

func TestTimeOfNeverIsFarAway(t *testing.T) {
	assert.Greater(t, time.Until(clock.Time(clock.Never)), 290*year)
}

func TestFakeIsFalseOutsideABubble(t *testing.T) {
	assert.False(t, clock.Fake())
}

func TestFakeIsTrueInABubble(t *testing.T) {
	today := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, slept := range []time.Duration{0, time.Nanosecond, year, today, today + time.Hour, 100 * year, 200 * year} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(slept)
			assert.True(t, clock.Fake(), "after %v", slept)
		})
	}
}
