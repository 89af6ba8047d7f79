package measure

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A recorded subject is late by a constant, and tells when it had its turn.
type recorded struct {
	name    string
	late    time.Duration
	cpu     time.Duration
	openErr error
	fails   int // the turn that fails, from 1
	taken   *[]string
	turns   int
	closed  int
}

func (s *recorded) Describe() (string, Group) { return s.name, Programs }

func (s *recorded) Open(context.Context, time.Duration) (Turns, error) { return s, s.openErr }

func (s *recorded) Take(_ context.Context, late []time.Duration) ([]time.Duration, time.Duration, error) {
	*s.taken = append(*s.taken, s.name)
	if s.turns++; s.turns == s.fails {
		return nil, 0, errors.New("the program ended")
	}
	for i := range late {
		late[i] = s.late
	}
	return late, s.cpu, nil
}

func (s *recorded) Close() error { s.closed++; return nil }

func TestSubjectsTakeTurns(t *testing.T) {
	var taken []string
	steps := 0
	a := &recorded{name: "a", late: time.Microsecond, cpu: 40 * time.Microsecond, taken: &taken}
	b := &recorded{name: "b", late: time.Millisecond, cpu: -1, taken: &taken}
	absent := &recorded{name: "absent", openErr: errors.New("cc is not installed"), taken: &taken}
	p := Plan{
		Subjects: []Subject{a, b, absent}, Requests: []time.Duration{10 * time.Millisecond}, Rounds: 3,
		Step: func(string, time.Duration) { steps++ },
	}
	rows, err := Alternate(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "b", "a", "a", "b"}, taken)
	assert.Equal(t, p.Turns(), steps)
	require.Len(t, rows, 3)

	assert.EqualValues(t, 3*WaitsFor(10*time.Millisecond), rows[0].Waits)
	assert.Equal(t, time.Microsecond, rows[0].Lateness.P99)
	assert.Equal(t, 40*time.Microsecond/time.Duration(WaitsFor(10*time.Millisecond)), *rows[0].CPU)
	assert.Len(t, rows[0].Rounds, 3)
	assert.Nil(t, rows[1].CPU)
	assert.Equal(t, "cc is not installed", rows[2].Absent)
	assert.Equal(t, []int{1, 1, 0}, []int{a.closed, b.closed, absent.closed})
}

func TestSubjectThatFailsOnTheWayIsAbsent(t *testing.T) {
	var taken []string
	a := &recorded{name: "a", fails: 2, taken: &taken}
	b := &recorded{name: "b", taken: &taken}
	rows, err := Alternate(t.Context(), Plan{
		Subjects: []Subject{a, b}, Requests: []time.Duration{time.Millisecond}, Rounds: 3, Step: func(string, time.Duration) {},
	})
	require.NoError(t, err)
	assert.Equal(t, "the program ended", rows[0].Absent)
	assert.EqualValues(t, WaitsFor(time.Millisecond), rows[0].Waits)
	assert.Equal(t, 2, a.turns)
	assert.Equal(t, 3, b.turns)
	assert.Equal(t, 1, a.closed)
}

// With few waits the 99th percentile is the latest, as in the histogram.
func TestQuantilesOfARound(t *testing.T) {
	for _, n := range []int{5, 20} {
		c := contender{rec: NewRecorder(0)}
		var taken []time.Duration
		for i := range n {
			taken = append(taken, time.Duration(n-i))
		}
		c.add(taken, -1)
		l := c.rec.Lateness()
		assert.Equal(t, Round{P50: l.P50, P99: l.P99}, c.row.Rounds[0])
		assert.EqualValues(t, n, l.P99)
	}
}

func TestInterruptedTurnsTellWhatWasMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var taken []string
	a, b := &recorded{name: "a", taken: &taken}, &recorded{name: "b", taken: &taken}
	steps := 0
	rows, err := Alternate(ctx, Plan{
		Subjects: []Subject{a, b}, Requests: []time.Duration{time.Millisecond, time.Second}, Rounds: 100,
		Step: func(string, time.Duration) {
			if steps++; steps == 3 {
				cancel()
			}
		},
	})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	assert.Len(t, taken, 3)
	assert.Equal(t, time.Millisecond, rows[1].Request)
}
