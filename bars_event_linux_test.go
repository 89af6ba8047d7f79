package wait_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/precisewait/wait"
)

// handOvers takes n hand-overs of the time from a goroutine that is busy
// before and after each of them to one that waits for it, and returns what they
// took. busy is longer than a waiter needs to fall asleep.
func handOvers(n int, busy time.Duration, receive func() time.Time, send func(time.Time)) sample {
	s := sample{late: make([]time.Duration, 0, n)}
	ready, got := make(chan struct{}, 1), make(chan struct{}, 1)
	var sender sync.WaitGroup
	cpu := processCPU()
	sender.Go(func() {
		for range n {
			<-ready
			burn(busy)
			send(time.Now())
			for end := time.Now().Add(time.Second); len(got) == 0 && time.Now().Before(end); {
			}
			<-got
		}
	})
	for range n {
		ready <- struct{}{}
		at := receive()
		s.late = append(s.late, time.Since(at))
		got <- struct{}{}
	}
	sender.Wait()
	s.cpu = processCPU() - cpu
	return s
}

func burn(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// compareHandOvers reports ours against the rival, in turns.
func compareHandOvers(b *testing.B, ours, rival func() sample) {
	var p50, p99, rivalP50, rivalP99, ratio median
	for b.Loop() {
		a, z := ours(), rival()
		p50.add(micros(a.quantile(0.5)))
		p99.add(micros(a.quantile(0.99)))
		rivalP50.add(micros(z.quantile(0.5)))
		rivalP99.add(micros(z.quantile(0.99)))
		ratio.add(float64(a.quantile(0.5)) / float64(z.quantile(0.5)))
	}
	report(b, map[string]float64{
		"p50-us": p50.value(), "p99-us": p99.value(), "rival-p50-us": rivalP50.value(), "rival-p99-us": rivalP99.value(),
		"p50-ratio": ratio.value(),
	})
}

// A value that comes within the spin, against a plain receive.
func BenchmarkBarRecvSpin(b *testing.B) {
	const n, busy, spin = 500, 100 * time.Microsecond, 500 * time.Microsecond
	for _, timeout := range []time.Duration{0, 10 * time.Millisecond} {
		b.Run(fmt.Sprintf("timeout=%v", timeout), func(b *testing.B) {
			c := make(chan time.Time, 1)
			send := func(at time.Time) { c <- at }
			compareHandOvers(b, func() sample {
				return handOvers(n, busy, func() time.Time {
					for {
						if at, err := wait.RecvTimeout(c, spin, timeout); err == nil {
							return at
						}
					}
				}, send)
			}, func() sample {
				return handOvers(n, busy, func() time.Time { return <-c }, send)
			})
		})
	}
}

// A value that comes after the spin, against a plain receive, and against the
// same by hand: a spin, then a select with a timer that is used again. The CPU
// is that of the process, the sender included, less the spin, for each wait. Any
// timer that is set has a program's idle threads do more, so the plain
// receives have their turn first.
func BenchmarkBarRecvPark(b *testing.B) {
	const n, apart, spin = 300, time.Millisecond, 20 * time.Microsecond
	c := make(chan time.Time, 1)
	paced := func(receive func()) time.Duration {
		var sender sync.WaitGroup
		cpu := processCPU()
		sender.Go(func() {
			for range n {
				time.Sleep(apart)
				c <- time.Time{}
			}
		})
		for range n {
			receive()
		}
		sender.Wait()
		return (processCPU() - cpu) / n
	}
	for _, timeout := range []time.Duration{0, 10 * time.Millisecond, time.Second} {
		b.Run(fmt.Sprintf("timeout=%v", timeout), func(b *testing.B) {
			byHand := func() { spinThenReceive(c, spin) }
			if timeout > 0 {
				timer := time.NewTimer(timeout)
				defer timer.Stop()
				byHand = func() {
					for !spinThenSelect(c, spin, timer, timeout) {
					}
				}
			}
			var ours, plain, hand, ratio, handRatio median
			for b.Loop() {
				z := paced(func() { <-c })
				a := paced(func() {
					for { // a busy host may let the limit pass
						if _, err := wait.RecvTimeout(c, spin, timeout); err == nil {
							return
						}
					}
				})
				h := paced(byHand)
				ours.add(micros(a))
				plain.add(micros(z))
				hand.add(micros(h))
				ratio.add(float64(a-spin) / float64(z))
				handRatio.add(float64(a-spin) / float64(h-spin))
			}
			report(b, map[string]float64{
				"cpu-us": ours.value(), "rival-cpu-us": plain.value(), "spin-us": micros(spin), "cpu-ratio": ratio.value(),
				"by-hand-cpu-us": hand.value(), "by-hand-ratio": handRatio.value(),
			})
		})
	}
}

// spinFor tries c for d, and reports whether it received.
func spinFor(c <-chan time.Time, d time.Duration) bool {
	for start := time.Now(); ; {
		select {
		case <-c:
			return true
		default:
		}
		if time.Since(start) >= d {
			return false
		}
	}
}

func spinThenReceive(c <-chan time.Time, spin time.Duration) {
	if !spinFor(c, spin) {
		<-c
	}
}

func spinThenSelect(c <-chan time.Time, spin time.Duration, timer *time.Timer, timeout time.Duration) bool {
	if spinFor(c, spin) {
		return true
	}
	timer.Reset(timeout)
	select {
	case <-c:
		timer.Stop()
		return true
	case <-timer.C:
		return false
	}
}

// A waiter woken by an Event, against one woken by a channel.
func BenchmarkBarEvent(b *testing.B) {
	const n, busy = 500, 100 * time.Microsecond
	var at time.Time
	for _, c := range []struct {
		name string
		wait func(*wait.Event)
	}{
		{"Wait", (*wait.Event).Wait},
		{"WaitTimeout", func(e *wait.Event) { _ = e.WaitTimeout(time.Second) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var event wait.Event
			channel := make(chan struct{})
			compareHandOvers(b, func() sample {
				return handOvers(n, busy, func() time.Time {
					c.wait(&event)
					event.Clear()
					return at
				}, func(now time.Time) {
					at = now
					event.Set()
				})
			}, func() sample {
				return handOvers(n, busy, func() time.Time {
					<-channel
					return at
				}, func(now time.Time) {
					at = now
					channel <- struct{}{}
				})
			})
		})
	}
}

// A line is fitted to points by least squares.
type line struct{ n, x, y, xx, xy float64 }

func (l *line) add(x, y float64) {
	l.n++
	l.x += x
	l.y += y
	l.xx += x * x
	l.xy += x * y
}

func (l *line) slope() float64 { return (l.n*l.xy - l.x*l.y) / (l.n*l.xx - l.x*l.x) }

// A Pacer at 1 kHz, one second of it in each round, against a time.Ticker. The
// mean period is that of the line through the times of all ticks from the
// first to the last round: from the first and the last alone it would be off by
// what those two happened to be late.
func BenchmarkBarPacer(b *testing.B) {
	const period, n = time.Millisecond, 1000
	for _, m := range []wait.Method{wait.MethodHybrid, wait.MethodSleep} {
		b.Run(m.String(), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			pacer := wait.NewPacer(period, wait.PaceBy(m))
			var p50, p99, late, cpu, rivalP50, rivalCPU, ratio median
			var first time.Time
			var seconds float64
			var excess line // of the time over nominal, by index
			var missed int64
			for b.Loop() {
				var ours, rival sample
				before := processCPU()
				for k := range n {
					tick, err := pacer.Wait(ctx)
					now := time.Now()
					if err != nil {
						b.Fatal(err)
					}
					if k == 0 { // the rival's turn was before it
						if first.IsZero() {
							first = tick.Scheduled
						}
						continue
					}
					seconds = now.Sub(first).Seconds()
					excess.add(float64(tick.Index), float64(now.Sub(first)-time.Duration(tick.Index)*period))
					missed += tick.Missed
					ours.late = append(ours.late, mustNotBeEarly(now.Sub(tick.Scheduled)))
				}
				ours.cpu = processCPU() - before
				before = processCPU()
				ticker := time.NewTicker(period)
				began := time.Now()
				for range n {
					<-ticker.C
					rival.late = append(rival.late, time.Since(began)%period)
				}
				ticker.Stop()
				rival.cpu = processCPU() - before
				p50.add(micros(ours.quantile(0.5)))
				p99.add(micros(ours.quantile(0.99)))
				late.add(100 * ours.over(time.Microsecond))
				cpu.add(micros(ours.cpu) / n)
				rivalP50.add(micros(rival.quantile(0.5)))
				rivalCPU.add(micros(rival.cpu) / n)
				ratio.add(float64(ours.quantile(0.5)) / float64(rival.quantile(0.5)))
			}
			report(b, map[string]float64{
				"p50-us": p50.value(), "p99-us": p99.value(), "late-%": late.value(), "cpu-us": cpu.value(),
				"rival-p50-us": rivalP50.value(), "rival-cpu-us": rivalCPU.value(), "p50-ratio": ratio.value(),
				"period-ppm": math.Abs(excess.slope()) / float64(period) * 1e6, "seconds": seconds, "missed": float64(missed),
			})
		})
	}
}
