package measure

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/precisewait/wait"
)

// The names of the two rows of [Phase].
const (
	BackToBack = "back to back"
	Scrambled  = "scrambled"
)

// OnTick returns a method that ends as on a host whose timers are driven by a
// tick: with the first tick after the deadline. The ticks are those of this
// process's clock.
func OnTick(tick time.Duration) Method {
	return Method{"tick=" + tick.String(), Runtime, simple(func(_, deadline int64) {
		end := deadline + int64(tick) - 1
		wait.SleepUntil(at(end - end%int64(tick)))
	})}
}

// Phase takes n waits of the request in two ways: back to back, and with work
// before each, for a time up to the tick that is different each time. On a
// host with a tick the first are all in the same phase to it, and tell of one
// phase only; the second tell what a wait takes that begins at any time.
func Phase(ctx context.Context, m Method, request, tick time.Duration, n int) (rows []Row, err error) {
	w, err := m.open(request)
	if err != nil {
		return []Row{{Method: m.Name, Group: m.Group, Request: request, Absent: err.Error()}}, nil
	}
	defer func() { err = errors.Join(err, w.close()) }()
	random := rand.New(rand.NewPCG(1, 2)) // the same phases in every run
	for _, name := range []string{BackToBack, Scrambled} {
		rec := NewRecorder(0)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			if name == Scrambled {
				wait.Spin(time.Duration(random.Int64N(int64(tick))))
			}
			start := now()
			deadline := w.wait(start, start+int64(request))
			rec.Record(0, now()-deadline)
		}
		row := Row{Method: name, Group: m.Group, Request: request}
		rec.fill(&row)
		row.Buckets = rec.buckets(200)
		if row.Waits > 0 {
			rows = append(rows, row)
		}
	}
	return rows, nil
}
