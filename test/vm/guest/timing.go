//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/precisewait/wait"
)

// fineChecks are those of a guest whose kernel has high-resolution timers.
func fineChecks() []check {
	return []check{
		{"calibrate: no tick", calibrateFindsNoTick},
		{"verbs: none is early", noVerbIsEarly},
		{"hybrid: on time", hybridIsOnTime},
	}
}

// tickChecks are those of a guest whose kernel has none, at HZ=250.
func tickChecks() []check {
	return []check{
		{"calibrate: the tick", calibrateFindsTheTick},
		{"midband: on its tick", midBandIsOnItsTick},
		{"midband: the edge is not", edgesAreNot},
		{"verbs: none is early", noVerbIsEarly},
		{"hybrid: on time", hybridIsOnTime},
	}
}

// tick is that of the guest's kernel.
const tick = 4 * time.Millisecond

func calibrateFindsNoTick() (string, error) {
	floor, err := wait.Calibrate(context.Background())
	if err == nil && floor.Tick != 0 {
		err = fmt.Errorf("found %v", floor.Tick)
	}
	comment(floor.String())
	return fmt.Sprintf("1 ms is %v late at p50, %v at p99",
		floor.Lateness(time.Millisecond, 0.5), floor.Lateness(time.Millisecond, 0.99)), err
}

func calibrateFindsTheTick() (string, error) {
	var found []time.Duration
	for range 5 {
		floor, err := wait.Calibrate(context.Background())
		if err != nil {
			return "", err
		}
		found = append(found, floor.Tick)
	}
	if slices.Min(found) < tick-tick/50 || slices.Max(found) > tick+tick/50 {
		return "", fmt.Errorf("found %v", found)
	}
	return fmt.Sprintf("found %v", found), nil
}

// bands are the numbers of ticks that waits are tried to take.
var bands = []int{1, 2, 3, 5}

// landed waits n times for the request, back to back, and returns the share of
// waits that took k ticks.
func landed(k int, request time.Duration) float64 {
	const n = 100
	wait.Sleep(time.Microsecond) // until the next tick
	start, hits := time.Now(), 0
	for range n {
		wait.Sleep(request)
		now := time.Now()
		if math.Round(float64(now.Sub(start))/float64(tick)) == float64(k) {
			hits++
		}
		start = now
	}
	return float64(hits) / n
}

// midBandIsOnItsTick waits in the middle between two ticks.
func midBandIsOnItsTick() (string, error) {
	floor, err := wait.Calibrate(context.Background())
	if err != nil {
		return "", err
	}
	var figures []string
	for _, k := range bands {
		request := floor.MidBand(k)
		share := landed(k, request)
		figures = append(figures, fmt.Sprintf("%v %.0f %%", request, 100*share))
		if share < 0.95 {
			err = fmt.Errorf("%v takes %d ticks in %.0f %% only", request, k, 100*share)
		}
	}
	return "on their tick: " + strings.Join(figures, ", "), err
}

// edgesAreNot waits for whole ticks, which is what makes the middle worth it.
func edgesAreNot() (string, error) {
	var figures []string
	var err error
	for _, k := range bands {
		share := landed(k, tick*time.Duration(k))
		figures = append(figures, fmt.Sprintf("%v %.0f %%", tick*time.Duration(k), 100*share))
		if share >= 0.95 {
			err = fmt.Errorf("%v takes %d ticks in %.0f %%", tick*time.Duration(k), k, 100*share)
		}
	}
	return "on their tick: " + strings.Join(figures, ", "), err
}

// A verb is a way to wait.
type verb struct {
	name string
	wait func(time.Duration)
}

var verbs = []verb{
	{"Sleep", wait.Sleep},
	{"SleepUntil", func(d time.Duration) { wait.SleepUntil(time.Now().Add(d)) }},
	{"SleepContext", func(d time.Duration) { _ = wait.SleepContext(context.Background(), d) }},
	{"SleepRange", func(d time.Duration) { wait.SleepRange(d, d+d/4) }},
	{"Spin", wait.Spin},
	{"Hybrid", wait.Hybrid},
	{"HybridContext", func(d time.Duration) { _ = wait.HybridContext(context.Background(), d) }},
	{"For", wait.For},
	{"Thread.Sleep", onThread},
}

// onThread waits on a thread of its own.
func onThread(d time.Duration) {
	t, err := wait.LockThread()
	if err != nil {
		panic(err)
	}
	defer t.Close()
	t.Sleep(d)
}

// lateness waits n times and returns by how much the waits were late, shortest
// first; an early one comes first and is negative.
func lateness(n int, d time.Duration, by func(time.Duration)) []time.Duration {
	late := make([]time.Duration, n)
	for i := range late {
		start := time.Now()
		by(d)
		late[i] = time.Since(start) - d
	}
	slices.Sort(late)
	return late
}

func noVerbIsEarly() (string, error) {
	waits := 0
	var medians []string
	for _, v := range verbs {
		for _, d := range []time.Duration{
			time.Microsecond, 77 * time.Microsecond, 200 * time.Microsecond, time.Millisecond,
			tick - 1, tick, tick + 1, 3*tick + tick/2,
		} {
			late := lateness(10, d, v.wait)
			if late[0] < 0 {
				return "", fmt.Errorf("%s(%v) is %v early", v.name, d, -late[0])
			}
			waits += len(late)
			if d == time.Millisecond {
				medians = append(medians, fmt.Sprintf("%s %v", v.name, late[len(late)/2].Round(100*time.Nanosecond)))
			}
		}
	}
	return fmt.Sprintf("%d waits; late by, p50 of 1 ms: %s", waits, strings.Join(medians, ", ")), nil
}

func hybridIsOnTime() (string, error) {
	const limit = 50 * time.Microsecond
	var figures []string
	var err error
	for _, d := range []time.Duration{200 * time.Microsecond, time.Millisecond, tick, 10 * time.Millisecond, 25 * time.Millisecond} {
		lateness(20, d, wait.Hybrid) // learns
		late := lateness(100, d, wait.Hybrid)
		p50, p99 := late[len(late)/2], late[len(late)*99/100]
		figures = append(figures, fmt.Sprintf("%v %v/%v", d, p50, p99))
		if late[0] < 0 || p50 > limit {
			err = fmt.Errorf("Hybrid(%v) is late by %v to %v, p50 %v", d, late[0], late[len(late)-1], p50)
		}
	}
	return "late by, p50/p99: " + strings.Join(figures, ", "), err
}
