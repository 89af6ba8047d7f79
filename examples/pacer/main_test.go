package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableHasEveryLoop(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out, 100*time.Millisecond))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3+len(loops))
	for i, l := range loops {
		assert.Contains(t, lines[3+i], l.name)
		assert.Regexp(t, ` \d+ +\d+( +[\d.]+us){3} +\d+ +[\d.]+us$`, lines[3+i])
	}
}

func TestOnlyBurstMissesNothing(t *testing.T) {
	for _, l := range loops {
		r, err := l.run(100 * time.Millisecond)
		require.NoError(t, err)
		if strings.Contains(l.name, "Burst") {
			assert.Zero(t, r.missed)
		} else {
			assert.GreaterOrEqual(t, r.missed, int64(18))
		}
	}
}
