package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"
)

const (
	// MostSleepers is how many there may be at once.
	MostSleepers = 1_000_000

	// MostThreads is how many there may be by a method that holds a thread
	// each. The Go runtime ends a program that has 10,000.
	MostThreads = 1000
)

// A Gathering is what [Crowd] does.
type Gathering struct {
	Sleepers int
	Request  time.Duration
	Waits    int  // by each sleeper
	Burst    bool // all deadlines at once, instead of evenly over the request
}

// Crowd has many sleepers wait at once.
func Crowd(ctx context.Context, m Method, g Gathering) (Row, error) {
	row := Row{Method: m.Name, Group: m.Group, Request: g.Request, Sleepers: g.Sleepers}
	if m.HoldsThread() && g.Sleepers > MostThreads {
		row.Absent = fmt.Sprintf("holds a thread for each sleeper; measured up to %d", MostThreads)
		return row, nil
	}
	probe, err := m.open(g.Request)
	if err != nil {
		row.Absent = err.Error()
		return row, nil
	}
	if err := probe.close(); err != nil {
		return row, err
	}

	all := make([]time.Duration, g.Sleepers*g.Waits)
	taken := make([]int, g.Sleepers)
	errs := make([]error, g.Sleepers)
	var start int64
	short := false // of what a sleeper needs
	gate := make(chan struct{})
	var ready, done sync.WaitGroup
	ready.Add(g.Sleepers)
	for i := range g.Sleepers {
		late := all[i*g.Waits : (i+1)*g.Waits]
		done.Go(func() {
			if m.HoldsThread() {
				runtime.LockOSThread() // for good, so that its thread ends and is not counted again
			}
			w, err := m.open(g.Request)
			errs[i] = err
			ready.Done()
			<-gate
			if err != nil {
				return
			}
			if short {
				errs[i] = w.close()
				return
			}
			first := int64(g.Request)
			if !g.Burst {
				first += int64(g.Request) * int64(i) / int64(g.Sleepers)
			}
			w.wait(now(), start+first)
			for taken[i] < g.Waits && ctx.Err() == nil {
				begin := now()
				deadline := w.wait(begin, begin+int64(g.Request))
				late[taken[i]] = time.Duration(now() - deadline)
				taken[i]++
			}
			errs[i] = w.close()
		})
	}
	ready.Wait()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		short = true
		row.Absent = fmt.Sprintf("for %d sleepers: %v", g.Sleepers, errs[i])
		clear(errs)
		close(gate)
		done.Wait()
		return row, errors.Join(errs...)
	}
	release := quiet()
	defer release()
	stop := make(chan struct{})
	peak := make(chan int)
	go func() { peak <- mostThreads(stop) }()
	used := startMeter()
	start = now()
	close(gate)
	done.Wait()

	rec := NewRecorder(0)
	for i, n := range taken {
		for _, l := range all[i*g.Waits:][:n] {
			rec.Record(0, int64(l))
		}
	}
	rec.fill(&row)
	used.read(&row, row.Waits+int64(g.Sleepers)) // the first waits cost too
	close(stop)
	row.Threads = <-peak
	return row, errors.Join(errs...)
}

// mostThreads returns how many threads the process had at most until stop is
// closed, as seen ten times a second.
func mostThreads(stop <-chan struct{}) int {
	sample := []metrics.Sample{{Name: "/sched/threads/total:threads"}}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	most := 0
	for {
		metrics.Read(sample)
		most = max(most, int(sample[0].Value.Uint64()))
		select {
		case <-tick.C:
		case <-stop:
			return most
		}
	}
}
