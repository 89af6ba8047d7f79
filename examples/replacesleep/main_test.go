package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

func TestEveryWayNoticesAfterTheJobIsDone(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			const length = 2 * time.Millisecond
			require.NoError(t, w.notice(length))
			assert.GreaterOrEqual(t, w.looks[0], 1)
			assert.GreaterOrEqual(t, w.noticed[0], length)
			assert.GreaterOrEqual(t, w.late[0], time.Duration(0))
		})
	}
}

func TestEveryWaySeesADoneJobAtTheFirstLook(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			looks, err := w.poll(start(0))
			require.NoError(t, err)
			assert.Equal(t, 1, looks)
		})
	}
}

func TestCountedTriesAreAllUsed(t *testing.T) {
	for _, w := range ways()[:2] {
		t.Run(w.name, func(t *testing.T) {
			began := time.Now()
			looks, err := w.poll(start(time.Hour))
			require.ErrorIs(t, err, errSlow)
			assert.Equal(t, int(allowed/interval), looks)
			assert.GreaterOrEqual(t, time.Since(began), allowed)
		})
	}
}

func TestReadPollTimeoutGivesUpByTheClock(t *testing.T) {
	began := time.Now()
	_, err := loopReplaced(start(time.Hour))
	require.ErrorIs(t, err, wait.ErrTimeout)
	assert.Greater(t, time.Since(began), allowed)
	var timeout wait.TimeoutError
	require.ErrorAs(t, err, &timeout)
	assert.Equal(t, running, timeout.Last)
}

func TestTableHasEveryWay(t *testing.T) {
	all := ways()
	for _, w := range all {
		w.looks, w.noticed, w.late = []int{3}, []time.Duration{5000}, []time.Duration{2000}
	}
	var out bytes.Buffer
	require.NoError(t, printTable(&out, all))
	for _, w := range all {
		assert.Contains(t, out.String(), w.name)
	}
}
