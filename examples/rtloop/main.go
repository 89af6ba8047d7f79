// Rtloop runs a control loop at 1 kHz on a thread of its own, beside goroutines
// that never yield, and shows live how late its turns begin.
//
//	go run ./examples/rtloop
//	go run ./examples/rtloop -for 1m -busy 0
//	go run ./examples/rtloop -priority 80 -cpu 1 -lock   # as root
//	go run ./examples/rtloop -plain                      # by time.Sleep, to compare
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/bits"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait"
)

// A config is what the command line asks for.
type config struct {
	period, length time.Duration
	busy           int
	cpu, priority  int
	lock, plain    bool
}

func main() {
	var c config
	flag.DurationVar(&c.period, "period", time.Millisecond, "`time` from one turn to the next")
	flag.DurationVar(&c.length, "for", 5*time.Second, "how `long` to run")
	flag.IntVar(&c.busy, "busy", runtime.GOMAXPROCS(0), "`number` of goroutines that never yield")
	flag.IntVar(&c.cpu, "cpu", -1, "keep the thread on this CPU")
	flag.IntVar(&c.priority, "priority", 0, "run it under SCHED_FIFO with this `priority`")
	flag.BoolVar(&c.lock, "lock", false, "keep the memory of the process in RAM")
	flag.BoolVar(&c.plain, "plain", false, "sleep by time.Sleep, without a thread")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rtloop:", err)
		os.Exit(1)
	}
}

// run runs the loop until it is over or ctx is done, and shows its histogram.
func run(ctx context.Context, c config, out io.Writer) error {
	if c.period <= 0 || c.length <= 0 || c.busy < 0 {
		return fmt.Errorf("a period of %v for %v beside %d goroutines cannot be", c.period, c.length, c.busy)
	}
	ctx, cancel := context.WithTimeout(ctx, c.length)
	defer cancel()

	var others sync.WaitGroup
	for range c.busy {
		others.Go(func() { // works, and never yields
			for n := uint64(1); ctx.Err() == nil; {
				for range 1 << 16 {
					n = n*6364136223846793005 + 1
				}
			}
		})
	}
	var h histogram
	failed := make(chan error, 1)
	go func() { failed <- loop(ctx, c, &h) }()
	err := show(&h, failed, out)
	cancel()
	others.Wait()
	return err
}

// loop takes a turn at each time of the grid, on its own thread.
func loop(ctx context.Context, c config, h *histogram) error {
	sleepUntil := func(t time.Time) { time.Sleep(time.Until(t)) }
	if !c.plain {
		thread, err := lockThread(c)
		if err != nil {
			return err
		}
		defer thread.Close()
		sleepUntil = thread.SleepUntil
	}
	next := time.Now()
	for ctx.Err() == nil {
		next = next.Add(c.period)
		sleepUntil(next)
		late := time.Since(next)
		h.add(late)
		if missed := late / c.period; missed > 0 { // keep the phase
			h.missed.Add(int64(missed))
			next = next.Add(missed * c.period)
		}
	}
	return nil
}

func lockThread(c config) (*wait.Thread, error) {
	opts := []wait.ThreadOption{wait.OwnProcessor()}
	if c.cpu >= 0 {
		opts = append(opts, wait.OnCPU(c.cpu))
	}
	if c.priority != 0 {
		opts = append(opts, wait.RealTime(c.priority))
	}
	if c.lock {
		opts = append(opts, wait.LockMemory())
	}
	if runtime.GOOS != "linux" && len(opts) == 1 {
		opts = nil // nothing was asked for, and there is nothing to be had
	}
	return wait.LockThread(opts...)
}

// A histogram counts turns by their lateness: below 1 us, below 2 us, and so
// on by powers of two. Adding to it is cheap, and reading it disturbs nobody.
type histogram struct {
	counts [24]atomic.Int64
	missed atomic.Int64 // turns that were left out
	worst  atomic.Int64 // in ns
}

func (h *histogram) add(late time.Duration) {
	i := min(bits.Len64(uint64(late/time.Microsecond)), len(h.counts)-1)
	h.counts[i].Add(1)
	if int64(late) > h.worst.Load() { // only the loop writes
		h.worst.Store(int64(late))
	}
}

// lines returns the histogram, a line for each count that is not zero.
func (h *histogram) lines() []string {
	var counts [len(h.counts)]int64
	var total, most int64
	for i := range counts {
		counts[i] = h.counts[i].Load()
		total += counts[i]
		most = max(most, counts[i])
	}
	list := []string{fmt.Sprintf("%d turns, %d missed, at most %v late", total, h.missed.Load(), time.Duration(h.worst.Load()))}
	for i, n := range counts {
		if n > 0 {
			list = append(list, fmt.Sprintf("< %7v %8d %s", time.Duration(1<<i)*time.Microsecond, n, strings.Repeat("#", int(1+n*50/most))))
		}
	}
	return list
}

// show draws the histogram four times a second on a terminal, elsewhere only
// once the loop has ended.
func show(h *histogram, ended <-chan error, out io.Writer) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	drawn := 0
	draw := func() {
		if drawn > 0 {
			fmt.Fprintf(out, "\x1b[%dA\x1b[J", drawn) // up, and clear from there
		}
		lines := h.lines()
		fmt.Fprintln(out, strings.Join(lines, "\n"))
		drawn = len(lines)
	}
	for {
		select {
		case <-tick.C:
			if isTerminal(out) {
				draw()
			}
		case err := <-ended:
			if err == nil {
				draw()
			}
			return err
		}
	}
}

func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
