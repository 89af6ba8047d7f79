package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/lab/measure"
	"github.com/precisewait/wait/lab/peers"
	"github.com/precisewait/wait/lab/report"
)

// longest is the longest request: whoever interrupts waits for it to end.
const longest = 10 * time.Second

// checkDurations returns an error for the first that is no length of a wait.
func checkDurations(flag string, durations ...time.Duration) error {
	if len(durations) == 0 {
		return fmt.Errorf("--%s needs a duration", flag)
	}
	for _, d := range durations {
		if d <= 0 || d > longest {
			return fmt.Errorf("--%s is %v; it must be above zero and at most %v", flag, d, longest)
		}
	}
	return nil
}

func checkCount(flag string, n, most int) error {
	if n < 1 || n > most {
		return fmt.Errorf("--%s is %d; it must be from 1 to %d", flag, n, most)
	}
	return nil
}

func (l *lab) result(ctx context.Context, command string, rows []measure.Row) measure.Result {
	return measure.Result{
		Command: command, Host: measure.ThisHost(), Rows: rows, Floor: l.floor,
		Interrupted: ctx.Err() != nil,
	}
}

func subjects(methods []measure.Method) (all []measure.Subject) {
	for _, m := range methods {
		all = append(all, m)
	}
	return all
}

func (l *lab) floorCommand() *cobra.Command {
	var save string
	var file *newFile
	c := &cobra.Command{
		Use:   "floor",
		Short: "What sleeping costs here in lateness: clock, tick and lateness by length",
		Long: `Calibrates the floor of this host: what a reading of the clock costs and how
fine it is, whether sleeps end on the grid of a tick, and how late they end by
their length. With --floor it shows a saved one instead.`,
		Args: cobra.NoArgs,
		RunE: l.measured(func([]string) (err error) {
			if save != "" {
				if file, err = createFile(save); err != nil {
					return failed(err)
				}
			}
			return nil
		}, func(c *cobra.Command) (measure.Result, error) {
			r := l.result(c.Context(), "floor", nil)
			if r.Floor == nil {
				f, err := wait.Calibrate(c.Context())
				if c.Context().Err() != nil { // it has installed nothing
					r.Interrupted = true
					return r, nil
				}
				if err != nil {
					return r, err
				}
				r.Floor = &f
			}
			r.Rows = floorRows(*r.Floor)
			if file != nil {
				e := json.NewEncoder(file)
				e.SetIndent("", "  ")
				return r, errors.Join(e.Encode(r.Floor), file.keep())
			}
			return r, nil
		}),
	}
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		defer func() {
			if file != nil {
				file.discard()
			}
		}()
		return run(c, args)
	}
	c.Flags().StringVar(&save, "save", "", "save the floor in this `file`, as JSON")
	return c
}

// floorRows are the classes of a floor in which sleeps were measured.
func floorRows(f wait.Floor) (rows []measure.Row) {
	for _, c := range f.Classes {
		if c.Samples > 0 {
			rows = append(rows, measure.Row{
				Method: "Sleep", Group: measure.Verbs, Request: c.UpTo, Waits: int64(c.Samples),
				Lateness: measure.Lateness{P50: c.P50, P90: c.P90, P99: c.P99},
			})
		}
	}
	return rows
}

// A turnsCommand is a command whose methods take turns.
type turnsCommand struct {
	name, short, long string
	methods           []string
	requests          []time.Duration
	rounds            int
	peers             bool
	margins           []time.Duration
}

func (l *lab) turns(t turnsCommand) *cobra.Command {
	var methods []measure.Method
	c := &cobra.Command{Use: t.name, Short: t.short, Long: t.long, Args: cobra.NoArgs}
	flags := c.Flags()
	flags.StringSliceVar(&t.methods, "methods", t.methods, "names and groups of methods")
	flags.DurationSliceVar(&t.requests, "requests", t.requests, "lengths of the waits")
	flags.IntVar(&t.rounds, "rounds", t.rounds, "turns of each method")
	if t.margins != nil {
		flags.DurationSliceVar(&t.margins, "margins", t.margins, "fixed margins to spin")
	}
	if t.name == "table" {
		flags.BoolVar(&t.peers, "peers", t.peers, "measure other programs too")
	}
	c.RunE = l.measured(func([]string) (err error) {
		if methods, err = measure.ParseMethods(t.methods); err != nil {
			return err
		}
		for _, m := range t.margins {
			if err := checkDurations("margins", m); err != nil {
				return err
			}
			methods = append(methods, measure.Margin(m))
		}
		return errors.Join(checkDurations("requests", t.requests...), checkCount("rounds", t.rounds, 10_000))
	}, func(c *cobra.Command) (measure.Result, error) {
		ctx := c.Context()
		all := subjects(methods)
		if t.peers {
			step, done := l.progress(-1)
			p, err := peers.Build(ctx, func(name string) { step("building " + name) })
			done()
			if err != nil {
				return measure.Result{}, err
			}
			defer p.Close()
			all = append(all, p.Subjects()...)
		}
		plan := measure.Plan{Subjects: all, Requests: t.requests, Rounds: t.rounds}
		step, done := l.progress(plan.Turns())
		plan.Step = func(name string, request time.Duration) { step(fmt.Sprintf("%s %v", name, request)) }
		rows, err := measure.Alternate(ctx, plan)
		done()
		return l.result(ctx, t.name, rows), err
	})
	return c
}

const turnsLong = `
The methods take turns within one run, in another order each round. Lateness
counts from the deadline; SleepRange may take a quarter longer than asked. The
CPU is that of the process, user and system, by wait.`

var usualRequests = []time.Duration{
	time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 1500 * time.Microsecond,
	10 * time.Millisecond,
}

func (l *lab) tableCommand() *cobra.Command {
	return l.turns(turnsCommand{
		name: "table", short: "Every way to wait against every length",
		long:    "Measures each method with each request: how long waits really take." + turnsLong,
		methods: []string{"all"}, requests: usualRequests, rounds: 10,
	})
}

func (l *lab) peersCommand() *cobra.Command {
	return l.turns(turnsCommand{
		name: "peers", short: "This package against programs in other languages, and cyclictest",
		long: `Builds a small program in each language whose compiler is installed, and
measures them in turns with methods of this process.` + turnsLong,
		methods:  []string{"time.Sleep", "Sleep", "Hybrid"},
		requests: []time.Duration{10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond},
		rounds:   10, peers: true,
	})
}

func (l *lab) paretoCommand() *cobra.Command {
	us := time.Microsecond
	return l.turns(turnsCommand{
		name: "pareto", short: "Lateness against CPU for every method and several margins",
		long: `Measures what every method pays for its punctuality: the 99th percentile of
lateness against the CPU of a wait. A margin is what a sleep leaves to a spin.` + turnsLong,
		methods: []string{"all"}, requests: []time.Duration{time.Millisecond}, rounds: 20,
		margins: []time.Duration{10 * us, 20 * us, 50 * us, 100 * us, 200 * us, 400 * us},
	})
}

// shortestPeriod is still far above what it takes to count a missed deadline.
const shortestPeriod = time.Microsecond

func (l *lab) jitterCommand() *cobra.Command {
	var method, load string
	var period, length time.Duration
	var found []measure.Method
	var beside measure.Load
	c := &cobra.Command{
		Use:   "jitter",
		Short: "A loop at a fixed rate, as cyclictest",
		Long: `Waits at a fixed rate for a time. Deadlines that pass while the loop is late
count too, with the lateness that they would have had (the correction for coordinated
omission). Loads: cooperative (8
goroutines that work for 50 us at a time), hog (goroutines that never yield),
gc (garbage and its collection), process (other processes that never sleep).`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&method, "method", "Sleep", "the way to wait")
	c.Flags().DurationVar(&period, "period", time.Millisecond, "from deadline to deadline")
	c.Flags().DurationVar(&length, "for", 5*time.Second, "how long to measure")
	c.Flags().StringVar(&load, "load", string(measure.NoLoad), "what to run beside it")
	c.RunE = l.measured(func([]string) (err error) {
		if found, err = measure.ParseMethods([]string{method}); err != nil {
			return err
		}
		if len(found) > 1 {
			return fmt.Errorf("--method %s is a group; jitter measures one method", method)
		}
		if beside, err = measure.ParseLoad(load); err != nil {
			return err
		}
		if err := checkDurations("period", period); err != nil {
			return err
		}
		if period < shortestPeriod {
			return fmt.Errorf("--period is %v; it must be at least %v", period, shortestPeriod)
		}
		if length < period {
			return fmt.Errorf("--for is %v; it must be at least the period, %v", length, period)
		}
		return nil
	}, func(c *cobra.Command) (measure.Result, error) {
		ctx := c.Context()
		self, err := os.Executable()
		if err != nil {
			return measure.Result{}, err
		}
		stop, err := beside.Start(ctx, []string{self, burnName})
		if err != nil {
			return measure.Result{}, err
		}
		live, done := l.live(found[0].Name)
		row, err := measure.FixedRate(ctx, found[0], period, length, live)
		done()
		err = errors.Join(err, stop())
		if beside.InProcess() {
			row.CPU, row.CPUs, row.Switches = nil, nil, nil
		}
		r := l.result(ctx, "jitter", []measure.Row{row})
		r.Load = beside
		return r, err
	})
	return c
}

// live returns a function that shows how a loop stands, without ever keeping
// it, and one that ends that.
func (l *lab) live(name string) (show func(measure.Live), done func()) {
	if !l.onTerminal() {
		return nil, func() {}
	}
	lines := make(chan measure.Live, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := range lines {
			fmt.Fprintf(l.errOut, "\r\x1b[K%s: %d waits, late by min %s act %s avg %s p99 %s max %s",
				name, s.Waits, report.Micros(s.Min), report.Micros(s.Act), report.Micros(s.Mean), report.Micros(s.P99), report.Micros(s.Max))
		}
		fmt.Fprint(l.errOut, "\r\x1b[K")
	}()
	return func(s measure.Live) {
			select {
			case lines <- s:
			default:
			}
		}, func() {
			close(lines)
			<-ended
		}
}

const burnName = "burn"

// burnCommand is the load of another process.
func burnCommand() *cobra.Command {
	return &cobra.Command{
		Use:    burnName,
		Short:  "Keep a CPU busy until standard input ends",
		Args:   cobra.NoArgs,
		Hidden: true,
		Run:    func(*cobra.Command, []string) { measure.Burn(os.Stdin) },
	}
}

// mostSamples is how many waits of a crowd are kept in memory.
const mostSamples = 1e8

func (l *lab) scaleCommand() *cobra.Command {
	var names []string
	var sleepers []int
	var request, length time.Duration
	var rate int
	var burst bool
	var methods []measure.Method
	c := &cobra.Command{
		Use:   "scale",
		Short: "From one sleeper to 100,000",
		Long: `Has many goroutines wait at once, with their deadlines spread evenly over the
request, or all at the same time. So that crowds of different sizes can be
compared, no more than --rate waits a second end: a larger crowd waits longer
each time. Methods that hold a thread for each sleeper are measured up to a
thousand.`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringSliceVar(&names, "methods", []string{"time.Sleep", "Sleep", "SleepRange", "clock_nanosleep:1ns"}, "names and groups of methods")
	flags.IntSliceVar(&sleepers, "sleepers", []int{1, 10, 100, 1000, 10_000, 100_000}, "sizes of the crowd")
	flags.DurationVar(&request, "request", 100*time.Millisecond, "length of the waits, at least")
	flags.DurationVar(&length, "for", time.Second, "how long each crowd waits again and again, at least once")
	flags.IntVar(&rate, "rate", 100_000, "the most waits that end in a second")
	flags.BoolVar(&burst, "burst", false, "all deadlines at once")
	c.RunE = l.measured(func([]string) (err error) {
		if methods, err = measure.ParseMethods(names); err != nil {
			return err
		}
		for _, n := range sleepers {
			if err := checkCount("sleepers", n, measure.MostSleepers); err != nil {
				return err
			}
			if err := checkDurations("request", spacedOut(request, n, rate)); rate > 0 && request > 0 && err != nil {
				return fmt.Errorf("%d sleepers at a --rate of %d would wait longer than %v each", n, rate, longest)
			}
			if all := float64(n) * max(1, length.Seconds()/max(spacedOut(request, n, rate), 1).Seconds()); all > mostSamples {
				return fmt.Errorf("%d sleepers would take %.0f waits, of which no more than %.0f can be kept; a shorter --for or a longer --request has fewer", n, all, mostSamples)
			}
		}
		return errors.Join(checkDurations("request", request), checkDurations("for", length), checkCount("rate", rate, 1e9))
	}, func(c *cobra.Command) (measure.Result, error) {
		ctx := c.Context()
		step, done := l.progress(len(sleepers) * len(methods))
		defer done()
		var rows []measure.Row
		for _, n := range sleepers {
			for _, m := range methods {
				if ctx.Err() != nil {
					continue
				}
				step(fmt.Sprintf("%d x %s", n, m.Name))
				each := spacedOut(request, n, rate)
				row, err := measure.Crowd(ctx, m, measure.Gathering{
					Sleepers: n, Request: each, Waits: max(1, int(length/each)), Burst: burst,
				})
				if err != nil {
					return l.result(ctx, "scale", rows), err
				}
				if row.Waits > 0 || row.Absent != "" {
					rows = append(rows, row)
				}
			}
		}
		return l.result(ctx, "scale", rows), nil
	})
	return c
}

// spacedOut returns the request, or what it takes instead for n sleepers not to
// end more waits a second than the rate.
func spacedOut(request time.Duration, n, rate int) time.Duration {
	if rate < 1 {
		return request
	}
	return max(request, time.Duration(float64(n)/float64(rate)*float64(time.Second)))
}

func (l *lab) phaseCommand() *cobra.Command {
	var method string
	var request, tick time.Duration
	var waits int
	var found []measure.Method
	c := &cobra.Command{
		Use:   "phase",
		Short: "Waits back to back against waits that begin at any phase of a tick",
		Long: `On a host whose timers are driven by a tick, waits back to back all begin in the
same phase to it, so they tell of that phase only. With work in between, a wait
of n takes anything from n to n and a tick. Where this host has no tick, or with
--tick, one is simulated, and --method is not used.`,
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&method, "method", "time.Sleep", "the way to wait")
	c.Flags().DurationVar(&request, "request", 3*time.Millisecond, "length of the waits")
	c.Flags().DurationVar(&tick, "tick", 4*time.Millisecond, "period of the tick that is simulated")
	c.Flags().IntVar(&waits, "waits", 200, "waits of each kind")
	c.RunE = l.measured(func([]string) (err error) {
		if found, err = measure.ParseMethods([]string{method}); err != nil {
			return err
		}
		if len(found) > 1 {
			return fmt.Errorf("--method %s is a group; phase measures one method", method)
		}
		return errors.Join(checkDurations("request", request), checkDurations("tick", tick), checkCount("waits", waits, 1_000_000))
	}, func(c *cobra.Command) (measure.Result, error) {
		ctx := c.Context()
		r := l.result(ctx, "phase", nil)
		if r.Floor == nil && !c.Flags().Changed("tick") {
			f, err := wait.Calibrate(ctx)
			if err != nil && ctx.Err() == nil {
				return r, err
			}
			r.Floor = &f
		}
		m := found[0]
		if r.Floor != nil && !c.Flags().Changed("tick") {
			r.Tick = r.Floor.Tick
		}
		if r.Tick == 0 {
			r.Tick, r.Simulated, m = tick, true, measure.OnTick(tick)
		}
		step, done := l.progress(-1)
		step(fmt.Sprintf("waiting %d times %v, twice", waits, request))
		rows, err := measure.Phase(ctx, m, request, r.Tick, waits)
		done()
		r.Rows, r.Interrupted = rows, ctx.Err() != nil
		return r, err
	})
	return c
}

func (l *lab) showCommand() *cobra.Command {
	var name string
	return &cobra.Command{
		Use:   "show FILE",
		Short: "Show again what a command wrote with --json",
		Long:  "Shows what another command wrote with --json: as text, in another form, or as a picture.",
		Args:  cobra.ExactArgs(1),
		RunE: l.measured(func(args []string) error {
			name = args[0]
			return nil
		}, func(*cobra.Command) (r measure.Result, err error) {
			b, err := os.ReadFile(name)
			if err != nil {
				return r, err
			}
			if err := json.Unmarshal(b, &r); err != nil {
				return r, fmt.Errorf("%s: %w", name, err)
			}
			if err := r.Sound(); err != nil {
				return measure.Result{}, fmt.Errorf("%s: %w", name, err)
			}
			return r, nil
		}),
	}
}
