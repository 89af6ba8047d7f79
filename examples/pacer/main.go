// Pacer runs a control loop at 1 kHz for a second in each way to pace it, with
// work that twice takes too long, and prints how late the ticks were, how many
// were missed, and what the policy for missed ticks made of that.
//
//	go run ./examples/pacer
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/precisewait/wait"
)

const period = time.Millisecond

// A loop is one way to pace the work.
type loop struct {
	name string
	opts []wait.PacerOption
}

var loops = []loop{
	{"Sleep, Skip", nil},
	{"Hybrid, Skip", []wait.PacerOption{wait.PaceBy(wait.MethodHybrid)}},
	{"Hybrid, Burst", []wait.PacerOption{wait.PaceBy(wait.MethodHybrid), wait.OnMissed(wait.Burst)}},
	{"Hybrid, Delay", []wait.PacerOption{wait.PaceBy(wait.MethodHybrid), wait.OnMissed(wait.Delay)}},
}

// A result is what one loop saw.
type result struct {
	ticks, missed int64
	late          []time.Duration
	rate          float64 // ticks per second
	offGrid       time.Duration
}

func main() {
	if err := run(os.Stdout, time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "pacer:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, length time.Duration) error {
	fmt.Fprintf(out, "A loop of 1 kHz for %v; work that twice takes 10.3 ms.\n\n", length)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "paced by\tticks\tmissed\tlate p50\tp99\tmax\tticks/s\toff the grid\t")
	for _, l := range loops {
		r, err := l.run(length)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%.0f\t%s\t\n", l.name, r.ticks, r.missed,
			show(r.quantile(0.5)), show(r.quantile(0.99)), show(r.quantile(1)), r.rate, show(r.offGrid))
	}
	return table.Flush()
}

func (l loop) run(length time.Duration) (*result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	r := new(result)
	start := time.Now()
	var last wait.Tick
	for tick := range wait.NewPacer(period, l.opts...).Ticks(ctx) {
		r.ticks++
		r.missed += tick.Missed
		r.late = append(r.late, tick.Lateness)
		last = tick
		if r.ticks == 20 || r.ticks == 40 {
			work(period * 103 / 10) // far too long
		} else {
			work(period / 20)
		}
	}
	if r.ticks == 0 {
		return nil, fmt.Errorf("%s: no tick in %v", l.name, length)
	}
	r.rate = float64(r.ticks) / time.Since(start).Seconds()
	// A grid that was kept has its ticks at whole periods from the start.
	r.offGrid = last.Scheduled.Sub(start).Round(period/10) % period
	slices.Sort(r.late)
	return r, nil
}

func (r *result) quantile(q float64) time.Duration {
	return r.late[min(int(q*float64(len(r.late))), len(r.late)-1)]
}

// work keeps the CPU busy.
func work(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// show prints a duration in microseconds, so that columns can be compared.
func show(d time.Duration) string { return fmt.Sprintf("%.1fus", float64(d)/1e3) }
