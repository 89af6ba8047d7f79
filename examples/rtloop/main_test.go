package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRunShowsAHistogramOfAllTurns(t *testing.T) {
	for name, c := range map[string]config{
		"thread":     {period: time.Millisecond, length: 200 * time.Millisecond, busy: 2, cpu: -1},
		"time.Sleep": {period: time.Millisecond, length: 200 * time.Millisecond, cpu: -1, plain: true},
	} {
		var out strings.Builder
		require.NoError(t, run(t.Context(), c, &out), name)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		assert.Regexp(t, `^\d+ turns, \d+ missed, at most \S+ late$`, lines[0], name)
		require.Greater(t, len(lines), 1, name)
		for _, line := range lines[1:] {
			assert.Regexp(t, regexp.MustCompile(`^< +\S+ +\d+ #+$`), line, name)
		}
	}
}

func TestRunRefusesWhatCannotBe(t *testing.T) {
	for name, c := range map[string]config{
		"no period":        {length: time.Second},
		"no time":          {period: time.Millisecond, length: -1},
		"fewer than none":  {period: time.Millisecond, length: time.Second, busy: -1},
		"no such CPU":      {period: time.Millisecond, length: time.Second, cpu: 100_000},
		"no such priority": {period: time.Millisecond, length: time.Second, cpu: -1, priority: 100},
	} {
		var out strings.Builder
		assert.Error(t, run(t.Context(), c, &out), name)
		assert.Empty(t, out.String(), name)
	}
}

func TestHistogramCountsByPowersOfTwo(t *testing.T) {
	var h histogram
	for _, late := range []time.Duration{0, 999, time.Microsecond, 1999, 2 * time.Microsecond, time.Millisecond, time.Hour} {
		h.add(late)
	}
	got := map[string]string{}
	for _, line := range h.lines()[1:] {
		fields := strings.Fields(line)
		got[fields[1]] = fields[2]
	}
	assert.Equal(t, map[string]string{"1µs": "2", "2µs": "2", "4µs": "1", "1.024ms": "1", "8.388608s": "1"}, got)
	assert.Equal(t, "7 turns, 0 missed, at most 1h0m0s late", h.lines()[0])
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	start := time.Now()
	var out strings.Builder
	assert.NoError(t, run(ctx, config{period: time.Millisecond, length: time.Hour, cpu: -1}, &out))
	assert.Less(t, time.Since(start), time.Minute)
	assert.Contains(t, out.String(), "turns")
}
