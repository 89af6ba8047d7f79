// Sleeptable measures on this host how long waits really take: each way to
// wait against each length, with the floor above it.
//
//	go run ./examples/sleeptable
//
// What matters is the lateness, the time between the deadline and the return.
// SleepRange may end anywhere between the request and a quarter more, and its
// lateness counts from the request. The CPU is that of the whole process, user
// and system, by wait.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/precisewait/wait"
)

// A method is a way to wait for d.
type method struct {
	name string
	wait func(d time.Duration)
}

var methods = []method{
	{"time.Sleep", time.Sleep},
	{"Sleep", wait.Sleep},
	{"SleepRange", func(d time.Duration) { wait.SleepRange(d, d+d/4) }},
	{"Hybrid", wait.Hybrid},
	{"Spin", wait.Spin},
}

var requests = []time.Duration{
	time.Microsecond,
	10 * time.Microsecond,
	100 * time.Microsecond,
	time.Millisecond,
	1500 * time.Microsecond,
	10 * time.Millisecond,
}

// A cell is what one method does with one request.
type cell struct {
	real   []time.Duration
	cpu    time.Duration
	hasCPU bool
}

func main() {
	rounds := flag.Int("rounds", 10, "how often each method has its turn")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Stdout, progressOn(os.Stderr), *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sleeptable:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, progress func(string), rounds int) error {
	if rounds < 1 || flag.NArg() > 0 {
		return errors.New("-rounds must be at least 1, and there are no arguments")
	}
	progress("calibrating the floor")
	floor, err := wait.Calibrate(ctx)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	fmt.Fprintf(out, "%v\n\n", floor)

	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "method\trequested\tmin\tp50\tp99\tmax\tlate p50\tlate p99\tratio\tCPU/wait\t")
	for _, request := range requests {
		cells := make([]cell, len(methods))
		for round := range rounds {
			progress(fmt.Sprintf("waiting %v: round %d of %d", request, round+1, rounds))
			for i, m := range methods {
				if err := ctx.Err(); err != nil {
					return err
				}
				cells[i].measure(m, request, waitsFor(request))
			}
		}
		for i, m := range methods {
			fmt.Fprintln(table, cells[i].row(m.name, request))
		}
		fmt.Fprintln(table, "\t\t\t\t\t\t\t\t\t\t")
	}
	progress("")
	return table.Flush()
}

// waitsFor returns how many waits to take in a round: as many as go into
// twenty milliseconds, but enough to have a 99th percentile in ten rounds.
func waitsFor(request time.Duration) int {
	return max(10, min(20, int(20*time.Millisecond/request)))
}

func (c *cell) measure(m method, request time.Duration, n int) {
	before, _ := processCPU()
	for range n {
		start := time.Now()
		m.wait(request)
		c.real = append(c.real, time.Since(start))
	}
	after, ok := processCPU()
	c.cpu, c.hasCPU = c.cpu+after-before, ok
}

func (c *cell) row(name string, request time.Duration) string {
	slices.Sort(c.real)
	n := len(c.real)
	p50, p99 := c.real[n/2], c.real[(n-1)*99/100]
	cpu := "unknown"
	if c.hasCPU {
		cpu = show(c.cpu / time.Duration(n))
	}
	return fmt.Sprintf("%s\t%v\t%s\t%s\t%s\t%s\t%s\t%s\t%.3f\t%s\t", name, request,
		show(c.real[0]), show(p50), show(p99), show(c.real[n-1]),
		show(p50-request), show(p99-request), float64(p50)/float64(request), cpu)
}

// show prints a duration in microseconds, so that columns can be compared.
func show(d time.Duration) string { return fmt.Sprintf("%.1fus", float64(d)/1e3) }

// progressOn returns a function that shows a line of progress: in place on a
// terminal, elsewhere one after the other and only every second. An empty
// line takes it away.
func progressOn(f *os.File) func(string) {
	if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		return func(line string) { fmt.Fprintf(f, "\r\x1b[K%s", line) }
	}
	var last time.Time
	return func(line string) {
		if line != "" && time.Since(last) > time.Second {
			fmt.Fprintln(f, line)
			last = time.Now()
		}
	}
}
