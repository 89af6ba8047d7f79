package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTableHasEveryWayForEveryAnswer(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out, 20))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3+len(works)*len(ways))
	for i, line := range lines[3:] {
		assert.Contains(t, line, ways[i%len(ways)].name)
		assert.Regexp(t, `( +[\d.]+us){4} +\d+ %$`, strings.TrimSpace(line))
	}
}

func TestEveryAnswerIsReceivedAfterItWasSent(t *testing.T) {
	for _, w := range ways {
		took, err := w.play(20, 10*time.Microsecond)
		require.NoError(t, err)
		assert.Len(t, took, 20)
		assert.GreaterOrEqual(t, took[0], time.Duration(0))
	}
}
