// Package report writes rows as text, CSV, JSON and the Go benchmark format,
// and draws pictures of them.
package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/precisewait/wait/lab/measure"
)

// A Column is one figure of a row. Its value is a string, an int, an int64, a
// float64, a [time.Duration], or nil where there is none.
type Column struct {
	Head string // in text, where durations are in microseconds
	Name string // in CSV, where they are in nanoseconds
	Of   func(measure.Row) any
	Key  bool // tells what the row is about, also of what is absent
}

// The columns.
var (
	Method   = Column{"method", "method", func(r measure.Row) any { return r.Method }, true}
	Request  = Column{"requested", "request_ns", func(r measure.Row) any { return Asked(r.Request) }, true}
	Sleepers = Column{"sleepers", "sleepers", func(r measure.Row) any { return r.Sleepers }, true}
	Waits    = Column{"waits", "waits", func(r measure.Row) any { return r.Waits }, false}
	Early    = Column{"early", "early", func(r measure.Row) any { return r.Early }, false}
	Missed   = Column{"missed", "missed", func(r measure.Row) any { return r.Missed }, false}
	Min      = late("min", func(l measure.Lateness) time.Duration { return l.Min })
	Mean     = late("mean", func(l measure.Lateness) time.Duration { return l.Mean })
	P50      = late("p50", func(l measure.Lateness) time.Duration { return l.P50 })
	P90      = late("p90", func(l measure.Lateness) time.Duration { return l.P90 })
	P99      = late("p99", func(l measure.Lateness) time.Duration { return l.P99 })
	P999     = late("p99.9", func(l measure.Lateness) time.Duration { return l.P999 })
	Max      = late("max", func(l measure.Lateness) time.Duration { return l.Max })
	Ratio    = Column{"ratio", "ratio", func(r measure.Row) any {
		return float64(r.Request+r.Lateness.P50) / float64(r.Request)
	}, false}
	CPU      = Column{"CPU/wait", "cpu_per_wait_ns", func(r measure.Row) any { return known(r.CPU) }, false}
	CPUs     = Column{"CPUs", "cpus_in_use", func(r measure.Row) any { return known(r.CPUs) }, false}
	Threads  = Column{"threads", "threads", func(r measure.Row) any { return r.Threads }, false}
	Switches = Column{"switches/wait", "switches_per_wait", func(r measure.Row) any { return known(r.Switches) }, false}
	absence  = Column{"absent", "absent", func(r measure.Row) any { return r.Absent }, true}
)

// Asked is a duration that somebody chose, and is shown as he would write it.
type Asked time.Duration

func late(head string, of func(measure.Lateness) time.Duration) Column {
	name := "late_" + strings.ReplaceAll(head, ".", "") + "_ns"
	return Column{head, name, func(r measure.Row) any { return of(r.Lateness) }, false}
}

func known[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// Text writes the rows as a table, with a gap where several of one request
// end, and below it what is absent, and why.
func Text(w io.Writer, columns []Column, rows []measure.Row) error {
	var table, absent bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range columns {
		fmt.Fprint(t, c.Head, "\t")
	}
	fmt.Fprintln(t)
	var last time.Duration
	alike := 0 // rows of the last request
	for _, r := range rows {
		if r.Absent != "" {
			if line := fmt.Sprintf("absent: %s: %s\n", r.Method, r.Absent); !strings.Contains(absent.String(), line) {
				absent.WriteString(line)
			}
		}
		if !r.Measured() {
			continue
		}
		if r.Request != last {
			if alike > 1 {
				fmt.Fprintln(t, strings.Repeat("\t", len(columns)))
			}
			last, alike = r.Request, 0
		}
		alike++
		for _, c := range columns {
			fmt.Fprint(t, shown(c.Of(r)), "\t")
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into memory
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	_, err := w.Write(absent.Bytes())
	return err
}

func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "unknown"
	case Asked:
		return time.Duration(v).String()
	case time.Duration:
		return Micros(v)
	case float64:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return fmt.Sprint(value)
}

// Micros shows a duration in microseconds, so that columns can be compared.
func Micros(d time.Duration) string { return fmt.Sprintf("%.1fus", float64(d)/1e3) }

// CSV writes the rows with a heading. What is not known is empty.
func CSV(w io.Writer, columns []Column, rows []measure.Row) error {
	columns = append(columns[:len(columns):len(columns)], absence)
	out := csv.NewWriter(w)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.Name
	}
	_ = out.Write(record) // the writer keeps its first error
	for _, r := range rows {
		for i, c := range columns {
			record[i] = ""
			if r.Measured() || c.Key {
				record[i] = exact(c.Of(r))
			}
		}
		_ = out.Write(record)
	}
	out.Flush()
	return out.Error()
}

func exact(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case Asked:
		return strconv.FormatInt(int64(v), 10)
	case time.Duration:
		return strconv.FormatInt(int64(v), 10)
	case float64:
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return fmt.Sprint(value)
}

// JSON writes all that was measured. Of no rows the list is empty.
func JSON(w io.Writer, r measure.Result) error {
	if r.Rows == nil {
		r.Rows = []measure.Row{}
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Benchmarks writes the rounds of each row, or the row if it has none, in the
// Go benchmark format, for benchstat.
func Benchmarks(w io.Writer, r measure.Result) error {
	_, err := fmt.Fprintf(w, "goos: %s\ngoarch: %s\npkg: github.com/precisewait/wait/lab\n", r.Host.System, r.Host.Architecture)
	if err != nil {
		return err
	}
	for _, row := range r.Rows {
		if !row.Measured() {
			continue
		}
		name := fmt.Sprintf("Benchmark%s%s/method=%s/request=%v", strings.ToUpper(r.Command[:1]), r.Command[1:],
			strings.ReplaceAll(row.Method, " ", "_"), row.Request)
		if row.Sleepers > 0 {
			name += fmt.Sprintf("/sleepers=%d", row.Sleepers)
		}
		rounds := row.Rounds
		if len(rounds) == 0 {
			rounds = []measure.Round{{P50: row.Lateness.P50, P99: row.Lateness.P99, CPU: row.CPU}}
		}
		for _, round := range rounds {
			fmt.Fprintf(w, "%s-%d\t%d\t%d p50-late-ns\t%d p99-late-ns", name, r.Host.GOMAXPROCS,
				max(row.Waits/int64(len(rounds)), 1), round.P50.Nanoseconds(), round.P99.Nanoseconds())
			if round.CPU != nil {
				fmt.Fprintf(w, "\t%d cpu-ns/wait", round.CPU.Nanoseconds())
			}
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
	}
	return nil
}

// Host returns one line on where it was measured.
func Host(h measure.Host) string {
	return fmt.Sprintf("%s/%s, %d CPUs, GOMAXPROCS %d, %s", h.System, h.Architecture, h.CPUs, h.GOMAXPROCS, h.Go)
}

// Histogram writes how many waits were so late, in steps of a factor of two.
func Histogram(w io.Writer, buckets []measure.Bucket) error {
	var steps []int64
	var first int
	for _, b := range buckets {
		i := 0
		for limit := time.Duration(100); limit < b.Late; limit *= 2 {
			i++
		}
		if len(steps) == 0 {
			first = i
		}
		for len(steps) <= i {
			steps = append(steps, 0)
		}
		steps[i] += b.Waits
	}
	most := int64(1)
	for _, n := range steps {
		most = max(most, n)
	}
	for i := first; i < len(steps); i++ {
		limit := time.Duration(100) << i
		bar := strings.Repeat("#", int((steps[i]*50+most-1)/most))
		line := fmt.Sprintf("%12s %9d %s", "<= "+Micros(limit), steps[i], bar)
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}
