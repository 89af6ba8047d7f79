package measure

import (
	"context"
	"errors"
	"math"
	"time"
)

// Live is how a loop stands.
type Live struct {
	Waits          int64
	Min, Act, Mean time.Duration
	P99, Max       time.Duration
}

// liveEvery is how often a loop tells how it stands.
const liveEvery = int64(200 * time.Millisecond)

// Points is how many points the series of a fixed-rate loop has at most.
const Points = 768

// FixedRate waits at a fixed rate for a time, as cyclictest(8) does: each
// deadline is a period after the one before. Deadlines that pass while the
// loop is late are not waited for, but they count, each with the lateness
// that it would have had.
//
// Five times a second, live is told how it stands, right after a wake-up, unless
// it is nil. It must not block.
func FixedRate(ctx context.Context, m Method, period, length time.Duration, live func(Live)) (row Row, err error) {
	row = Row{Method: m.Name, Group: m.Group, Request: period}
	w, err := m.open(period)
	if err != nil {
		row.Absent = err.Error()
		return row, nil
	}
	defer func() { err = errors.Join(err, w.close()) }()
	rec := NewRecorder(Points)
	used := startMeter()
	fixedRate(ctx, w, int64(period), int64(length), rec, live)
	rec.fill(&row)
	used.read(&row, row.Waits-row.Missed) // what was missed has cost nothing
	row.Buckets = rec.buckets(200)
	return row, nil
}

func fixedRate(ctx context.Context, w waiter, period, length int64, rec *Recorder, live func(Live)) {
	start := now()
	end, next, told := start+min(length, math.MaxInt64-start), start+period, start
	for next <= end && ctx.Err() == nil {
		due := w.wait(now(), next)
		t := now()
		next = due + period*(1+rec.RecordPaced(t-start, t-due, period, (end-due)/period))
		if live != nil && t-told >= liveEvery {
			told = t
			l := rec.Lateness()
			live(Live{rec.Waits(), l.Min, rec.Last(), l.Mean, l.P99, l.Max})
		}
	}
}
