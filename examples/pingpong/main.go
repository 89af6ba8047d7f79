// Pingpong has one goroutine ask and another one answer over channels, and
// prints what the hand-over of the answer takes: when the asking goroutine
// parks, as a plain receive does, and when it spins for a while first.
//
//	go run ./examples/pingpong
//
// The one that answers works for a while before it does, and goes on working
// then, as a device or a busy server does. Were it to park at once, the runtime
// would switch to the other goroutine on the same processor in a fraction of a
// microsecond, and no spin could be better.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/precisewait/wait"
)

const limit = time.Second // for an answer

// A way is one way to wait for the answer.
type way struct {
	name string
	spin time.Duration // less than 0 for a plain receive
}

var ways = []way{
	{"<-ch", -1},
	{"RecvTimeout, no spin", 0},
	{"RecvTimeout, spin 20us", 20 * time.Microsecond},
	{"RecvTimeout, spin 200us", 200 * time.Microsecond},
}

// The other side works that long before it answers, after it has been woken
// itself, which takes some 100 us. So the longer spin catches the first two.
var works = []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, 500 * time.Microsecond}

func main() {
	if err := run(os.Stdout, 500); err != nil {
		fmt.Fprintln(os.Stderr, "pingpong:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, n int) error {
	fmt.Fprintf(out, "From the sending of an answer until the receiver has it; %d answers each.\n\n", n)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "receive by\tanswer after\tp50\tp99\tmax\tcaught in the spin\t")
	for _, work := range works {
		for _, w := range ways {
			before := wait.ReadStats().ReceivesCaught
			took, err := w.play(n, work)
			if err != nil {
				return err
			}
			caught := wait.ReadStats().ReceivesCaught - before
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d %%\t\n", w.name, show(work),
				show(took[n/2]), show(took[n*99/100]), show(took[n-1]), 100*caught/uint64(n))
		}
	}
	return table.Flush()
}

// play asks n times and returns what the hand-overs took, the shortest first.
func (w way) play(n int, work time.Duration) ([]time.Duration, error) {
	// With a buffer of one, the sender does not have to wait for the receiver.
	ping, pong := make(chan struct{}, 1), make(chan time.Time, 1)
	defer close(ping)
	go func() {
		for range ping {
			busy(work)
			pong <- time.Now()
			busy(work)
		}
	}()
	took := make([]time.Duration, n)
	for i := range took {
		ping <- struct{}{}
		sent, err := w.receive(pong)
		if err != nil {
			return nil, err
		}
		took[i] = time.Since(sent)
		busy(2 * work) // until the other side waits again
	}
	slices.Sort(took)
	return took, nil
}

func (w way) receive(pong <-chan time.Time) (time.Time, error) {
	if w.spin < 0 {
		return <-pong, nil
	}
	return wait.RecvTimeout(pong, w.spin, limit)
}

// busy keeps the CPU busy.
func busy(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

// show prints a duration in microseconds, so that columns can be compared.
func show(d time.Duration) string { return fmt.Sprintf("%.2fus", float64(d)/1e3) }
