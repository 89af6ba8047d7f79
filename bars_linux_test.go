package wait_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/precisewait/wait"
)

// The benchmarks here compare ways to wait within one run. Each iteration is
// a round in which every way has its turn; what is reported is the median of
// the rounds, of lateness in microseconds and of the ratio to the rival, the
// last way. An idle machine and
//
//	go test -run '^$' -bench Bar -benchtime 5x .
//
// print the figures in the README.

func init() { children["first"] = firstChild }

// A way is one way to wait, with what it needs around a round of waits.
type way struct {
	name string
	wait func(time.Duration)
	with func(round func())
}

var (
	timeSleep = way{name: "time.Sleep", wait: time.Sleep}
	sleep     = way{name: "Sleep", wait: wait.Sleep}
	hybrid    = way{name: "Hybrid", wait: wait.Hybrid}
	spin      = way{name: "Spin", wait: wait.Spin}
	nanosleep = way{name: "clock_nanosleep", wait: clockNanosleep, with: onThreadWithoutSlack}
)

func clockNanosleep(d time.Duration) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	at = unix.NsecToTimespec(at.Nano() + int64(d))
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &at, nil) == unix.EINTR {
	}
}

func onThreadWithoutSlack(round func()) {
	restore, err := wait.SetTimerSlack(1)
	if err != nil {
		panic(err)
	}
	round()
	if err := restore(); err != nil {
		panic(err)
	}
}

// A sample is the lateness of many waits and the CPU that they cost.
type sample struct {
	late []time.Duration
	cpu  time.Duration // of the process, user and system
	wall time.Duration
}

func (s *sample) quantile(q float64) time.Duration {
	if !slices.IsSorted(s.late) {
		slices.Sort(s.late)
	}
	return s.late[min(int(q*float64(len(s.late))), len(s.late)-1)]
}

// over is the share of waits more than d late.
func (s *sample) over(d time.Duration) float64 {
	n := 0
	for _, l := range s.late {
		if l > d {
			n++
		}
	}
	return float64(n) / float64(len(s.late))
}

func processCPU() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// alone takes n waits of d in one goroutine.
func alone(w way, d time.Duration, n int) sample {
	s := sample{late: make([]time.Duration, 0, n)}
	round := func() {
		begin, cpu := time.Now(), processCPU()
		for range n {
			start := time.Now()
			w.wait(d)
			s.late = append(s.late, mustNotBeEarly(time.Since(start)-d))
		}
		s.cpu, s.wall = processCPU()-cpu, time.Since(begin)
	}
	if w.with != nil {
		w.with(round)
	} else {
		round()
	}
	return s
}

func mustNotBeEarly(late time.Duration) time.Duration {
	if late < 0 {
		panic(fmt.Sprintf("a wait ended %v early", -late))
	}
	return late
}

// crowd takes each waits of d in every one of n goroutines. Their first
// deadlines are spread evenly over d, or all the same.
func crowd(w way, d time.Duration, n, each int, spread bool) sample {
	all := make([]time.Duration, n*each)
	var ready, done sync.WaitGroup
	var start time.Time
	gate := make(chan struct{})
	ready.Add(n)
	for i := range n {
		late := all[i*each : (i+1)*each]
		done.Go(func() {
			ready.Done()
			<-gate
			if spread {
				first := d + d*time.Duration(i)/time.Duration(n)
				w.wait(first - time.Since(start))
			}
			for k := range late {
				from := time.Now()
				w.wait(d)
				late[k] = mustNotBeEarly(time.Since(from) - d)
			}
		})
	}
	ready.Wait()
	runtime.GC()
	begin, cpu := time.Now(), processCPU()
	start = begin
	close(gate)
	done.Wait()
	return sample{all, processCPU() - cpu, time.Since(begin)}
}

// median collects a figure over the rounds.
type median struct{ values []float64 }

func (m *median) add(v float64) { m.values = append(m.values, v) }

func (m *median) value() float64 {
	slices.Sort(m.values)
	return m.values[len(m.values)/2]
}

// compare runs rounds of ours against the rival and reports both.
func compare(b *testing.B, ours, rival way, take func(way) sample) {
	type row struct{ p50, p99, max, cpu median }
	var us, them, ratio row
	add := func(r *row, s sample) {
		r.p50.add(micros(s.quantile(0.5)))
		r.p99.add(micros(s.quantile(0.99)))
		r.max.add(micros(s.quantile(1)))
		r.cpu.add(micros(s.cpu) / float64(len(s.late)))
	}
	for b.Loop() {
		a, z := take(ours), take(rival)
		add(&us, a)
		add(&them, z)
		ratio.p50.add(float64(a.quantile(0.5)) / float64(z.quantile(0.5)))
		ratio.p99.add(float64(a.quantile(0.99)) / float64(z.quantile(0.99)))
		ratio.cpu.add(float64(a.cpu) / float64(max(z.cpu, 1))) // a rival may not tell its own
	}
	report(b, map[string]float64{
		"p50-us": us.p50.value(), "p99-us": us.p99.value(), "max-us": us.max.value(), "cpu-us": us.cpu.value(),
		"rival-p50-us": them.p50.value(), "rival-p99-us": them.p99.value(), "rival-max-us": them.max.value(), "rival-cpu-us": them.cpu.value(),
		"p50-ratio": ratio.p50.value(), "p99-ratio": ratio.p99.value(), "cpu-ratio": ratio.cpu.value(),
	})
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

func report(b *testing.B, metrics map[string]float64) {
	b.ReportMetric(0, "ns/op") // a round's length says nothing
	b.ReportMetric(float64(threads(b)), "threads")
	for unit, v := range metrics {
		b.ReportMetric(v, unit)
	}
}

func threads(tb testing.TB) int {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		tb.Fatal(err)
	}
	return len(list)
}

func BenchmarkBarSleepIdle(b *testing.B) {
	for _, d := range []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		b.Run(d.String(), func(b *testing.B) {
			compare(b, sleep, timeSleep, func(w way) sample { return alone(w, d, 200) })
		})
	}
}

func BenchmarkBarSleepNanosleep(b *testing.B) {
	for _, d := range []time.Duration{50 * time.Microsecond, time.Millisecond} {
		b.Run(d.String(), func(b *testing.B) {
			compare(b, sleep, nanosleep, func(w way) sample { return alone(w, d, 300) })
		})
	}
}

func BenchmarkBarSleepBusy(b *testing.B) {
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range 8 {
		busy.Go(func() {
			for !stop.Load() {
				for start := time.Now(); time.Since(start) < 50*time.Microsecond; {
				}
				runtime.Gosched()
			}
		})
	}
	compare(b, sleep, timeSleep, func(w way) sample { return alone(w, time.Millisecond, 200) })
	stop.Store(true)
	busy.Wait()
}

func BenchmarkBarCrowd(b *testing.B) {
	for _, c := range []struct {
		n, each int
		d       time.Duration
		spread  bool
	}{
		{100, 50, 10 * time.Millisecond, true},
		{1000, 50, 10 * time.Millisecond, true},
		{10000, 6, 100 * time.Millisecond, true},
		{10000, 6, 100 * time.Millisecond, false},
	} {
		shape := "burst"
		if c.spread {
			shape = "spread"
		}
		b.Run(fmt.Sprintf("%dx%v/%s", c.n, c.d, shape), func(b *testing.B) {
			compare(b, sleep, timeSleep, func(w way) sample { return crowd(w, c.d, c.n, c.each, c.spread) })
		})
	}
}

// A process's first wait opens what it needs.
func BenchmarkBarFirstRange(b *testing.B) {
	var late median
	for b.Loop() {
		var us float64
		if _, err := fmt.Sscan(runChild(b, "first"), &us); err != nil {
			b.Fatal(err)
		}
		late.add(us)
	}
	report(b, map[string]float64{"past-max-us": late.value()})
}

func firstChild() {
	const max = 1100 * time.Microsecond
	start := time.Now()
	wait.SleepRange(time.Millisecond, max)
	fmt.Println(micros(time.Since(start) - max))
}

func BenchmarkBarSleepRangeShared(b *testing.B) {
	sleepRange := way{name: "SleepRange", wait: func(d time.Duration) { wait.SleepRange(d, 2*d) }}
	var perWakeup, perSwitch, over median
	for b.Loop() {
		before, switches := wait.ReadStats(), voluntarySwitches()
		s := crowd(sleepRange, time.Millisecond, 100, 200, false)
		after := wait.ReadStats()
		perWakeup.add(float64(len(s.late)) / float64(after.AlarmRings+after.BellRings-before.AlarmRings-before.BellRings))
		perSwitch.add(float64(len(s.late)) / float64(voluntarySwitches()-switches))
		over.add(100 * s.over(1400*time.Microsecond)) // 400 us past max
	}
	report(b, map[string]float64{"waits/wakeup": perWakeup.value(), "waits/switch": perSwitch.value(), "late-%": over.value()})
}

func voluntarySwitches() int64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return int64(r.Nvcsw)
}

// A cancelled wait returns as soon as a select on the same context would.
func BenchmarkBarCancel(b *testing.B) {
	cancelled := func(wait func(context.Context)) sample {
		var s sample
		for range 100 {
			ctx, cancel := context.WithCancel(b.Context())
			at := make(chan time.Time, 1)
			time.AfterFunc(time.Millisecond, func() {
				at <- time.Now()
				cancel()
			})
			wait(ctx)
			s.late = append(s.late, time.Since(<-at))
		}
		return s
	}
	var ours, rival, ratio median
	for b.Loop() {
		a := cancelled(func(ctx context.Context) { _ = wait.SleepContext(ctx, time.Second) })
		z := cancelled(func(ctx context.Context) {
			timer := time.NewTimer(time.Second)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		})
		ours.add(micros(a.quantile(0.5)))
		rival.add(micros(z.quantile(0.5)))
		ratio.add(float64(a.quantile(0.5)) / float64(z.quantile(0.5)))
	}
	report(b, map[string]float64{"p50-us": ours.value(), "rival-p50-us": rival.value(), "p50-ratio": ratio.value()})
}

func BenchmarkBarHybridIdle(b *testing.B) {
	for _, c := range []struct {
		d time.Duration
		n int
	}{{200 * time.Microsecond, 1000}, {time.Millisecond, 500}, {10 * time.Millisecond, 100}} {
		b.Run(c.d.String(), func(b *testing.B) {
			alone(hybrid, c.d, 128) // learns the floor
			var p50, p99, late, cpu, host median
			for b.Loop() {
				s, z := alone(hybrid, c.d, c.n), alone(spin, c.d, c.n)
				p50.add(micros(s.quantile(0.5)))
				p99.add(micros(s.quantile(0.99)))
				late.add(100 * s.over(time.Microsecond))
				cpu.add(micros(s.cpu) / float64(c.n))
				host.add(100 * z.over(time.Microsecond))
			}
			report(b, map[string]float64{
				"p50-us": p50.value(), "p99-us": p99.value(), "late-%": late.value(), "cpu-us": cpu.value(),
				"spin-late-%": host.value(),
			})
		})
	}
}

func BenchmarkBarHybridCrowd(b *testing.B) {
	var cpus, ratio, p50, rival median
	for b.Loop() {
		h := crowd(hybrid, 10*time.Millisecond, 200, 50, false)
		s := crowd(sleep, 10*time.Millisecond, 200, 50, false)
		cpus.add(float64(h.cpu) / float64(h.wall))
		p50.add(micros(h.quantile(0.5)))
		rival.add(micros(s.quantile(0.5)))
		ratio.add(float64(h.quantile(0.5)) / float64(s.quantile(0.5)))
	}
	report(b, map[string]float64{"cpus": cpus.value(), "p50-us": p50.value(), "rival-p50-us": rival.value(), "p50-ratio": ratio.value()})
}

func BenchmarkBarSpin(b *testing.B) {
	bare := way{name: "bare loop", wait: func(d time.Duration) {
		for start := time.Now(); time.Since(start) < d; {
		}
	}}
	compare(b, spin, bare, func(w way) sample { return alone(w, 2*time.Microsecond, 20000) })
}

func BenchmarkBarPollAtomic(b *testing.B) {
	const polls = 100000
	var reg atomic.Uint32
	var ours, hand, ratio median
	for b.Loop() {
		var n, m int
		start := time.Now()
		_, err := wait.ReadPollTimeoutAtomic(reg.Load, func(v uint32) bool { n++; return v != 0 || n == polls }, 0, time.Minute)
		a := time.Since(start)
		if err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		for deadline := time.Minute; ; {
			m++
			if v := reg.Load(); v != 0 || m == polls {
				break
			}
			if time.Since(start) > deadline {
				b.Fatal("timeout")
			}
		}
		z := time.Since(start)
		ours.add(float64(a) / polls)
		hand.add(float64(z) / polls)
		ratio.add(float64(a) / float64(z))
	}
	report(b, map[string]float64{"ns/poll": ours.value(), "rival-ns/poll": hand.value(), "ratio": ratio.value()})
}

func BenchmarkBarGCStop(b *testing.B) {
	var ours, rival median
	stopOf := func(w way) float64 {
		debug.SetGCPercent(-1)
		defer debug.SetGCPercent(100)
		var stop atomic.Bool
		var sleeper sync.WaitGroup
		sleeper.Go(func() {
			for !stop.Load() {
				w.wait(20 * time.Millisecond)
			}
		})
		before := stops()
		for range 50 {
			runtime.GC()
			time.Sleep(3 * time.Millisecond)
		}
		after := stops()
		stop.Store(true)
		sleeper.Wait()
		return longestStop(before, after)
	}
	for b.Loop() {
		ours.add(stopOf(sleep))
		rival.add(stopOf(timeSleep))
	}
	report(b, map[string]float64{"stop-us": ours.value(), "rival-stop-us": rival.value(), "ratio": ours.value() / rival.value()})
}

// longestStop returns the longest stop between two readings, in us.
func longestStop(before, after *metrics.Float64Histogram) float64 {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > before.Counts[i] {
			return after.Buckets[i] * 1e6
		}
	}
	return 0
}

// stopsOver returns how many stops between two readings were longer than d.
func stopsOver(before, after *metrics.Float64Histogram, d time.Duration) (n float64) {
	for i := range after.Counts {
		if after.Buckets[i] >= d.Seconds() {
			n += float64(after.Counts[i] - before.Counts[i])
		}
	}
	return n
}

func stops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	h := s[0].Value.Float64Histogram()
	return &metrics.Float64Histogram{Counts: slices.Clone(h.Counts), Buckets: h.Buckets}
}
