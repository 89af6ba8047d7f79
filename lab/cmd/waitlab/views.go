package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/precisewait/wait/lab/measure"
	"github.com/precisewait/wait/lab/report"
)

// A view is how the result of a command is shown.
type view struct {
	columns []report.Column
	above   func(measure.Result) string
	below   func(io.Writer, measure.Result) error
	panels  func(measure.Result) []report.Panel
}

// views are those of all commands, by their names.
var views = map[string]view{
	"floor": {
		columns: []report.Column{report.Method, {Head: "up to", Name: "request_ns", Of: upTo, Key: true}, report.P50, report.P90, report.P99, report.Waits},
		above:   floorAbove,
		panels: func(r measure.Result) []report.Panel {
			return []report.Panel{againstRequest("Floor: how late sleeps end", r, func(measure.Row) string { return "" },
				[]quantile{{"p50", p50}, {"p90", p90}, {"p99", p99}})}
		},
	},
	"table":  turnsView,
	"peers":  turnsView,
	"pareto": {columns: paretoColumns, panels: paretoPanels},
	"jitter": {
		columns: []report.Column{
			report.Method, {Head: "period", Name: "request_ns", Of: report.Request.Of, Key: true}, report.Waits, report.Missed, report.Early,
			report.Min, report.Mean, report.P50, report.P99, report.P999, report.Max, report.CPU,
		},
		above:  jitterAbove,
		below:  func(w io.Writer, r measure.Result) error { return histograms(w, r.Rows) },
		panels: jitterPanels,
	},
	"scale": {
		columns: []report.Column{
			report.Method, report.Request, report.Sleepers, report.Waits, report.P50, report.P99, report.Max,
			report.CPU, report.CPUs, report.Threads, report.Switches,
		},
		panels: scalePanels,
	},
	"phase": {
		columns: []report.Column{report.Method, report.Request, report.Waits, report.Min, report.P50, report.P90, report.Max, report.Mean},
		above:   phaseAbove,
		below:   phaseBelow,
		panels:  phasePanels,
	},
}

var turnsView = view{
	columns: []report.Column{
		report.Method, report.Request, report.Waits, report.Early, report.Min, report.P50, report.P90, report.P99, report.Max,
		report.Ratio, report.CPU,
	},
	panels: turnsPanels,
}

var paretoColumns = []report.Column{report.Method, report.Request, report.Waits, report.P50, report.P90, report.P99, report.Max, report.CPU}

// write writes a result as text.
func (v view) write(w io.Writer, r measure.Result) error {
	fmt.Fprintln(w, report.Host(r.Host))
	if v.above != nil {
		fmt.Fprintln(w, v.above(r))
	}
	if r.Interrupted {
		fmt.Fprintln(w, "interrupted: this is what was measured until then")
	}
	fmt.Fprintln(w)
	if err := report.Text(w, v.columns, r.Rows); err != nil {
		return err
	}
	if v.below == nil || len(r.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return v.below(w, r)
}

func upTo(r measure.Row) any {
	if r.Request == math.MaxInt64 {
		return "longer"
	}
	return report.Asked(r.Request)
}

func floorAbove(r measure.Result) string {
	f := r.Floor
	if f == nil {
		return "floor: not known"
	}
	text := fmt.Sprintf("sleeps end by %s\nruler: clock step %v, a reading costs %v; a lateness below %v means nothing",
		f.Wakeup, f.ClockStep, f.ClockCost, max(f.ClockStep, f.ClockCost))
	if f.ClockStep >= time.Millisecond {
		text += "\nthe clock itself ticks: no figure here is finer than its step"
	}
	if f.Tick > 0 {
		return text + fmt.Sprintf("\ntick: sleeps end on a grid of %v; for 3 ticks ask for %v", f.Tick, f.MidBand(3))
	}
	return text + "\ntick: none, sleeps end at any time"
}

func jitterAbove(r measure.Result) string {
	if r.Load == "" || r.Load == measure.NoLoad {
		return "beside it: nothing"
	}
	return "beside it: the load " + string(r.Load)
}

func histograms(w io.Writer, rows []measure.Row) error {
	for _, row := range rows {
		if row.Measured() {
			if err := report.Histogram(w, row.Buckets); err != nil {
				return err
			}
		}
	}
	return nil
}

func phaseAbove(r measure.Result) string {
	if r.Simulated {
		return fmt.Sprintf("tick: %v, simulated", r.Tick)
	}
	return fmt.Sprintf("tick: %v", r.Tick)
}

// phaseBelow says what a uniform distribution over the tick would be.
func phaseBelow(w io.Writer, r measure.Result) error {
	for _, row := range r.Rows {
		if row.Method != measure.Scrambled {
			continue
		}
		_, err := fmt.Fprintf(w, "%s, a wait of %v takes %s on average; anything from %v to %v alike would be %s\n",
			row.Method, row.Request, report.Micros(row.Request+row.Lateness.Mean), row.Request, row.Request+r.Tick,
			report.Micros(row.Request+r.Tick/2))
		return err
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// A quantile is drawn as one line for each method.
type quantile struct {
	name string
	of   func(measure.Lateness) time.Duration
}

func p50(l measure.Lateness) time.Duration { return l.P50 }
func p90(l measure.Lateness) time.Duration { return l.P90 }
func p99(l measure.Lateness) time.Duration { return l.P99 }

// againstRequest draws quantiles of lateness against the request, a line for
// each name and quantile.
func againstRequest(title string, r measure.Result, name func(measure.Row) string, quantiles []quantile) report.Panel {
	var s lines
	for _, row := range r.Rows {
		if !row.Measured() || row.Request == math.MaxInt64 {
			continue
		}
		for _, q := range quantiles {
			s.add(strings.TrimSpace(name(row)+" "+q.name), report.XY{X: micros(row.Request), Y: micros(q.of(row.Lateness))})
		}
	}
	return report.Panel{Title: title, X: "requested, us", Y: "late, us", LogX: true, LogY: true, Series: s}
}

// lines are series, in the order in which they were begun.
type lines []report.Series

func (l *lines) add(name string, p report.XY) *report.Series {
	for i := range *l {
		if s := &(*l)[i]; s.Name == name {
			s.Points = append(s.Points, p)
			return s
		}
	}
	*l = append(*l, report.Series{Name: name, Points: []report.XY{p}})
	return &(*l)[len(*l)-1]
}

func methodOf(r measure.Row) string { return r.Method }

func turnsPanels(r measure.Result) []report.Panel {
	return []report.Panel{
		againstRequest("Half of the waits are at most so late", r, methodOf, []quantile{{"", p50}}),
		againstRequest("99 of 100 waits are at most so late", r, methodOf, []quantile{{"", p99}}),
	}
}

// paretoPanels draws one panel for each request.
func paretoPanels(r measure.Result) (panels []report.Panel) {
	at := map[time.Duration]int{}
	groups := map[time.Duration]*lines{}
	for _, row := range r.Rows {
		if !row.Measured() || row.CPU == nil {
			continue
		}
		if groups[row.Request] == nil {
			at[row.Request], groups[row.Request] = len(panels), &lines{}
			panels = append(panels, report.Panel{
				Title: fmt.Sprintf("99 of 100 waits of %v are at most so late", row.Request),
				X:     "CPU for each wait, us", Y: "late, us", LogX: true, LogY: true,
			})
		}
		s := groups[row.Request].add(string(row.Group), report.XY{X: micros(*row.CPU), Y: micros(row.Lateness.P99)})
		s.Labels = append(s.Labels, row.Method)
	}
	for request, i := range at {
		panels[i].Series = *groups[request]
	}
	return panels
}

func jitterPanels(r measure.Result) []report.Panel {
	time := report.Panel{Title: "Lateness over time", X: "s", Y: "late, us", LogY: true}
	cdf := report.Panel{Title: "Lateness: distribution", X: "late, us", Y: "% of waits", LogX: true}
	for _, row := range r.Rows {
		s := report.Series{Name: row.Method, Dots: true}
		for _, p := range row.Series {
			s.Points = append(s.Points, report.XY{X: p.At.Seconds(), Y: micros(p.Late)})
		}
		time.Series = append(time.Series, s)
		cdf.Series = append(cdf.Series, distribution(row, 0))
	}
	return []report.Panel{time, cdf}
}

// distribution is the share of waits that took at most so long beyond from.
func distribution(row measure.Row, from time.Duration) report.Series {
	var late []float64
	var waits []int64
	for _, b := range row.Buckets {
		late, waits = append(late, micros(from+b.Late)), append(waits, b.Waits)
	}
	return report.Series{Name: row.Method, Points: report.Stairs(late, waits)}
}

func scalePanels(r measure.Result) []report.Panel {
	panel := func(title, y string, of func(measure.Row) (float64, bool)) report.Panel {
		var s lines
		for _, row := range r.Rows {
			if v, ok := of(row); ok && row.Measured() {
				s.add(row.Method, report.XY{X: float64(row.Sleepers), Y: v})
			}
		}
		return report.Panel{Title: title, X: "sleepers", Y: y, LogX: true, LogY: true, Series: s}
	}
	return []report.Panel{
		panel("99 of 100 waits are at most so late", "late, us", func(row measure.Row) (float64, bool) {
			return micros(row.Lateness.P99), true
		}),
		panel("CPU for each wait", "us", func(row measure.Row) (float64, bool) {
			if row.CPU == nil {
				return 0, false
			}
			return micros(*row.CPU), true
		}),
	}
}

func phasePanels(r measure.Result) []report.Panel {
	p := report.Panel{
		Title: fmt.Sprintf("Waits on a tick of %v", r.Tick), X: "took, us", Y: "% of waits",
	}
	for _, row := range r.Rows {
		if row.Measured() {
			p.Series = append(p.Series, distribution(row, row.Request))
		}
	}
	return []report.Panel{p}
}
