package wait_test

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/precisewait/wait"
)

// threadSleep is the way of a Thread that is locked for each round.
func threadSleep(opts ...wait.ThreadOption) way {
	var th *wait.Thread
	return way{
		name: "Thread.Sleep",
		wait: func(d time.Duration) { th.Sleep(d) },
		with: func(round func()) {
			var err error
			if th, err = wait.LockThread(opts...); err != nil {
				panic(err)
			}
			round()
			if err := th.Close(); err != nil {
				panic(err)
			}
		},
	}
}

// hogs are goroutines that never yield, as many as there are Ps.
type hogs struct {
	stop atomic.Bool
	done sync.WaitGroup
	work []atomic.Int64 // of each, a count in a loop
}

func startHogs() *hogs {
	h := &hogs{work: make([]atomic.Int64, runtime.GOMAXPROCS(0)*8)} // a cache line each
	for i := range runtime.GOMAXPROCS(0) {
		h.done.Go(func() {
			mine := &h.work[i*8]
			for n := int64(0); !h.stop.Load(); n++ {
				mine.Store(n)
			}
		})
	}
	return h
}

func (h *hogs) end() {
	h.stop.Store(true)
	h.done.Wait()
}

func (h *hogs) total() (sum int64) {
	for i := range h.work {
		sum += h.work[i].Load()
	}
	return sum
}

// BenchmarkBarThreadBusy has a Thread sleep beside goroutines that never
// yield, and counts what they get done meanwhile: of what they get done alone,
// and against what a C program that sleeps as often leaves them.
func BenchmarkBarThreadBusy(b *testing.B) {
	b.Run("lateness", func(b *testing.B) {
		h := startHogs()
		compare(b, threadSleep(wait.OwnProcessor()), timeSleep, func(w way) sample {
			n := 500
			if w.name == timeSleep.name {
				n = 50 // of 20 ms each
			}
			return alone(w, time.Millisecond, n)
		})
		h.end()
	})
	b.Run("throughput", func(b *testing.B) {
		const n = 2000 // a Thread is kept: to lock and to close it stops the world, once each
		c, w := cProgram(b), threadSleep(wait.OwnProcessor())
		h := startHogs()
		perSecond := func(during func()) float64 {
			work, start := h.total(), time.Now()
			during()
			return float64(h.total()-work) / time.Since(start).Seconds()
		}
		undisturbed := func() float64 { return perSecond(func() { time.Sleep(n * time.Millisecond) }) }
		var ours, rival median
		before := undisturbed()
		for b.Loop() {
			besideThread := perSecond(func() { alone(w, time.Millisecond, n) })
			between := undisturbed()
			besideC := perSecond(func() { c(time.Millisecond, n) })
			after := undisturbed()
			ours.add(2 * besideThread / (before + between))
			rival.add(2 * besideC / (between + after))
			before = after
		}
		h.end()
		report(b, map[string]float64{"throughput-ratio": ours.value(), "rival-throughput-ratio": rival.value()})
	})
}

// cProgram builds testdata/nanosleep.c and returns a function that runs it.
func cProgram(b *testing.B) func(d time.Duration, n int) sample {
	b.Helper()
	program := filepath.Join(b.TempDir(), "nanosleep")
	if out, err := exec.Command("cc", "-O2", "-o", program, "testdata/nanosleep.c").CombinedOutput(); err != nil {
		b.Fatalf("a C compiler is needed to build the rival: %v\n%s", err, out)
	}
	return func(d time.Duration, n int) (s sample) {
		out, err := exec.Command(program, fmt.Sprint(d.Nanoseconds()), fmt.Sprint(n)).Output()
		if err != nil {
			b.Fatal(err)
		}
		for field := range bytes.FieldsSeq(out) {
			ns, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			s.late = append(s.late, time.Duration(ns))
		}
		s.cpu = s.late[n]
		s.late = s.late[:n]
		return s
	}
}

func BenchmarkBarThreadIdle(b *testing.B) {
	const n = 5000 // after LockThread the runtime's monitor looks every 20 us for some milliseconds
	c := cProgram(b)
	for name, opts := range map[string][]wait.ThreadOption{"own": {wait.OwnProcessor()}, "shared": nil} {
		b.Run(name, func(b *testing.B) {
			compare(b, threadSleep(opts...), way{name: "C clock_nanosleep"}, func(w way) sample {
				if w.wait == nil {
					return c(time.Millisecond, n)
				}
				return alone(w, time.Millisecond, n)
			})
		})
	}
}

// BenchmarkBarThreadGCStop collects garbage while four Threads sleep, and in
// turns while four goroutines do, with as many Ps.
func BenchmarkBarThreadGCStop(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	beside := func(sleeper func(ready *sync.WaitGroup, stop *atomic.Bool)) (longest, overMs float64) {
		var stop atomic.Bool
		var ready, sleepers sync.WaitGroup
		ready.Add(4)
		for range 4 {
			sleepers.Go(func() { sleeper(&ready, &stop) })
		}
		ready.Wait()
		runtime.GC() // starts the workers of the new Ps
		time.Sleep(40 * time.Millisecond)
		before := stops()
		for range 50 {
			runtime.GC()
			time.Sleep(3 * time.Millisecond)
		}
		after := stops()
		stop.Store(true)
		sleepers.Wait()
		return longestStop(before, after), stopsOver(before, after, time.Millisecond)
	}
	thread := func(ready *sync.WaitGroup, stop *atomic.Bool) {
		th, err := wait.LockThread(wait.OwnProcessor())
		if err != nil {
			panic(err)
		}
		defer th.Close()
		ready.Done()
		for !stop.Load() {
			th.Sleep(20 * time.Millisecond)
		}
	}
	goroutine := func(ready *sync.WaitGroup, stop *atomic.Bool) {
		ready.Done()
		for !stop.Load() {
			time.Sleep(20 * time.Millisecond)
		}
	}
	var longest, rival median
	var most, rivalMost, over, rivalOver float64
	for b.Loop() {
		l, o := beside(thread)
		longest.add(l)
		most, over = max(most, l), over+o
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 4)
		l, o = beside(goroutine)
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 4)
		rival.add(l)
		rivalMost, rivalOver = max(rivalMost, l), rivalOver+o
	}
	report(b, map[string]float64{
		"stop-us": longest.value(), "max-stop-us": most, "over-1ms": over,
		"rival-stop-us": rival.value(), "rival-max-stop-us": rivalMost, "rival-over-1ms": rivalOver,
	})
}

// BenchmarkBarThreadRealTime runs against cyclictest(8), of the package
// rt-tests, one after the other.
func BenchmarkBarThreadRealTime(b *testing.B) {
	cyclictest, err := exec.LookPath("cyclictest")
	if err != nil {
		b.Skip("cyclictest is not installed (Debian package rt-tests)")
	}
	const n = 1000
	rival := func() (s sample) {
		out, err := exec.Command(cyclictest, "-t1", "-p80", "-i1000", "-q", "-h2000", "-l"+fmt.Sprint(n)).CombinedOutput()
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) { // "000063 000412": that many were so many us late
			var us, times int
			if _, err := fmt.Sscanf(line, "%d %d", &us, &times); err == nil {
				s.late = append(s.late, slices.Repeat([]time.Duration{time.Duration(us) * time.Microsecond}, times)...)
			}
		}
		if len(s.late) < n/2 {
			b.Fatalf("no histogram in\n%s", out)
		}
		return s
	}
	w := threadSleep(wait.RealTime(80), wait.LockMemory(), wait.OwnProcessor())
	compare(b, w, way{name: "cyclictest"}, func(w way) sample {
		if w.wait == nil {
			return rival()
		}
		return onGrid(w, time.Millisecond, n)
	})
}

// onGrid takes n waits to the times of a grid, as cyclictest does.
func onGrid(w way, period time.Duration, n int) sample {
	s := sample{late: make([]time.Duration, 0, n)}
	w.with(func() {
		next := time.Now()
		for range n {
			next = next.Add(period)
			if rest := time.Until(next); rest > 0 {
				w.wait(rest)
			}
			s.late = append(s.late, mustNotBeEarly(time.Since(next)))
		}
	})
	return s
}

// BenchmarkThreadOptions tells what each option changes on this host, for 1 ms
// on an idle machine and beside a goroutine on every CPU that never yields: it
// prints the figures of docs/tuning.md. An option that the host refuses is
// left out.
func BenchmarkThreadOptions(b *testing.B) {
	all := []struct {
		name string
		opts []wait.ThreadOption
	}{
		{"OwnProcessor", nil},
		{"OnCPU", []wait.ThreadOption{wait.OnCPU(runtime.NumCPU() - 1)}},
		{"ShortSlice", []wait.ThreadOption{wait.ShortSlice()}},
		{"RealTime", []wait.ThreadOption{wait.RealTime(80)}},
		{"LockMemory", []wait.ThreadOption{wait.LockMemory()}},
		{"CPULatency", []wait.ThreadOption{wait.CPULatency(0)}},
	}
	ways := map[string]way{
		"slack 50us":      {wait: clockNanosleep, with: func(round func()) { round() }},
		"slack 1ns":       nanosleep,
		"no OwnProcessor": threadSleep(),
	}
	for _, o := range all {
		opts := append(o.opts, wait.OwnProcessor())
		th, err := wait.LockThread(opts...)
		if err != nil {
			b.Logf("%s: %v", o.name, err)
			continue
		}
		if err := th.Close(); err != nil {
			b.Fatal(err)
		}
		ways[o.name] = threadSleep(opts...)
	}
	for _, beside := range []string{"idle", "busy"} {
		type figures struct{ p50, p99, max, cpu median }
		got := map[string]*figures{}
		b.Run(beside, func(b *testing.B) {
			var h *hogs
			if beside == "busy" {
				h = startHogs()
			}
			for b.Loop() {
				for name, w := range ways {
					if beside == "busy" && !strings.Contains("OwnProcessor OnCPU ShortSlice RealTime LockMemory CPULatency", name) {
						continue // would wait for a P, which says nothing about the kernel
					}
					s := alone(w, time.Millisecond, 300)
					f := got[name]
					if f == nil {
						f = new(figures)
						got[name] = f
					}
					f.p50.add(micros(s.quantile(0.5)))
					f.p99.add(micros(s.quantile(0.99)))
					f.max.add(micros(s.quantile(1)))
					f.cpu.add(micros(s.cpu) / 300)
				}
			}
			if h != nil {
				h.end()
			}
			for _, name := range slices.Sorted(maps.Keys(got)) {
				f := got[name]
				b.Logf("%-16s late p50 %6.1f p99 %6.1f max %7.1f us, CPU %6.1f us", name, f.p50.value(), f.p99.value(), f.max.value(), f.cpu.value())
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
