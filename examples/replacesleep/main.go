// Replacesleep takes a poll loop as it is often found, built on time.Sleep and
// a count of tries, and replaces it in two steps: first the sleep, then the
// loop.
//
//	go run ./examples/replacesleep
//
// For each it prints how many looks it took to notice that a job was done,
// after what time, how late that was against the instant at which the job
// really was done, and the CPU of the process: more looks cost more of it, and
// a longer interval gives it back. The last column is how long the loop waits
// for a job that takes for ever, where 50 ms were meant.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/precisewait/wait"
)

const (
	interval = 100 * time.Microsecond // between two looks
	allowed  = 50 * time.Millisecond  // for the job
)

var errSlow = errors.New("job not done in time")

// before is the loop to be replaced. It takes allowed/interval tries for a
// time-out, as if a sleep took what was asked for; it does not, and the looks
// themselves are not counted at all. After the last sleep it gives up without
// another look.
func before(j job) (looks int, err error) {
	for range allowed / interval {
		looks++
		if j.state() == done {
			return looks, nil
		}
		time.Sleep(interval)
	}
	return looks, errSlow
}

// sleepReplaced is the same loop with the one word changed. It notices sooner
// and gives up sooner, but a count of tries is still no clock.
func sleepReplaced(j job) (looks int, err error) {
	for range allowed / interval {
		looks++
		if j.state() == done {
			return looks, nil
		}
		wait.Sleep(interval)
	}
	return looks, errSlow
}

// loopReplaced has no loop any more. The time-out is a time, there is a look
// after it, and what was read last comes back with the error.
func loopReplaced(j job) (looks int, err error) {
	look := func() state { looks++; return j.state() }
	_, err = wait.ReadPollTimeout(look, func(s state) bool { return s == done }, interval, allowed)
	return looks, err
}

// A way is one of the three, and what it was seen to do.
type way struct {
	name string
	poll func(job) (looks int, err error)

	looks         []int
	noticed, late []time.Duration
	gaveUp        time.Duration
	cpu           time.Duration
	hasCPU        bool
}

func ways() []*way {
	return []*way{
		{name: "time.Sleep, tries counted", poll: before},
		{name: "wait.Sleep, tries counted", poll: sleepReplaced},
		{name: "wait.ReadPollTimeout", poll: loopReplaced},
	}
}

type state int32

const (
	running state = iota
	done
)

// A job is done a while after its start. It goes by the clock and not by a
// goroutine of its own: one that ended here would wake the program, and every
// due time.Sleep with it, which no job elsewhere, and no device, does.
type job struct{ end time.Time }

func start(length time.Duration) job { return job{time.Now().Add(length)} }

func (j job) state() state {
	if time.Now().Before(j.end) {
		return running
	}
	return done
}

func main() {
	if err := run(os.Stdout, 40); err != nil {
		fmt.Fprintln(os.Stderr, "replacesleep:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, rounds int) error {
	all := ways()
	for round := range rounds {
		// Every way gets the same jobs, and turn by turn, so that what else
		// happens on the host meets all of them. Jobs end at uneven times:
		// an even one would always meet the same point between two looks.
		length := 2*time.Millisecond + time.Duration(round*617%2000)*time.Microsecond
		for _, w := range all {
			if err := w.notice(length); err != nil {
				return err
			}
		}
	}
	for _, w := range all {
		if err := w.giveUp(); err != nil {
			return err
		}
	}
	return printTable(out, all)
}

// notice polls a job of the given length.
func (w *way) notice(length time.Duration) error {
	cpu, _ := processCPU()
	began := time.Now()
	j := start(length)
	looks, err := w.poll(j)
	end := time.Now()
	after, ok := processCPU()
	if err != nil {
		return fmt.Errorf("%s: job of %v: %w", w.name, length, err)
	}
	w.looks = append(w.looks, looks)
	w.noticed = append(w.noticed, end.Sub(began))
	w.late = append(w.late, end.Sub(j.end))
	w.cpu, w.hasCPU = w.cpu+after-cpu, ok
	return nil
}

// giveUp polls a job that takes for ever.
func (w *way) giveUp() error {
	began := time.Now()
	if _, err := w.poll(start(time.Hour)); err == nil {
		return fmt.Errorf("%s: took a job for done that was not", w.name)
	}
	w.gaveUp = time.Since(began)
	return nil
}

func printTable(out io.Writer, all []*way) error {
	fmt.Fprintf(out, "A look every %v, for at most %v; medians of %d jobs of 2 to 4 ms.\n\n", interval, allowed, len(all[0].late))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "poll by\tlooks\tnoticed after\tlate p50\tlate max\tCPU/job\tgave up after\t")
	for _, w := range all {
		cpu := "unknown"
		if w.hasCPU {
			cpu = show(w.cpu / time.Duration(len(w.late)))
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", w.name, median(w.looks),
			show(median(w.noticed)), show(median(w.late)), show(slices.Max(w.late)), cpu, show(w.gaveUp))
	}
	return table.Flush()
}

func median[T int | time.Duration](list []T) T {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// show prints a duration in microseconds, so that columns can be compared.
func show(d time.Duration) string { return fmt.Sprintf("%.0fus", float64(d)/1e3) }
