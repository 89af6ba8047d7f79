package doctor

import (
	"fmt"
	"strings"
)

// String returns the report as text, what costs something first. JSON is by
// encoding/json.
func (r Report) String() string {
	var b strings.Builder
	b.WriteString(r.Host.String())
	var parts []string
	for _, v := range []Verdict{Costs, Unknown, Good} {
		parts = append(parts, fmt.Sprintf("%d %s", len(r.with(v)), headings[v]))
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(parts, ", "))
	for _, v := range []Verdict{Costs, Unknown, Good} {
		found := r.with(v)
		if len(found) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(headings[v]))
		for _, f := range found {
			f.write(&b)
		}
	}
	return b.String()
}

var headings = map[Verdict]string{
	Costs:   "cost a wait something",
	Unknown: "unknown",
	Good:    "good",
}

func (r Report) with(v Verdict) []Finding {
	var found []Finding
	for _, f := range r.Findings {
		if f.Verdict == v {
			found = append(found, f)
		}
	}
	return found
}

// String returns the host on one line.
func (h Host) String() string {
	s := h.System + "/" + h.Architecture
	if h.Kernel != "" {
		s += " " + h.Kernel
	}
	if h.CPUs != "" {
		s += ", CPUs " + h.CPUs
	}
	if h.GOMAXPROCS > 0 {
		s += fmt.Sprintf(", GOMAXPROCS %d", h.GOMAXPROCS)
	}
	return s + ", " + h.Go
}

// write writes the finding. A good one is a line: its cost and its change are
// those of a worse value.
func (f Finding) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s", f.Name)
	if f.Value != "" {
		fmt.Fprintf(b, ": %s", f.Value)
	}
	b.WriteByte('\n')
	for _, line := range []struct {
		label, text string
		when        bool
	}{
		{"why", f.Why, f.Verdict == Unknown},
		{"what", f.What, f.Verdict != Good},
		{"cost", f.Cost, f.Verdict != Good},
		{"change", f.Change, f.Verdict != Good},
		{"read", strings.Join(f.Sources, ", "), true},
	} {
		if line.when {
			writeWrapped(b, line.label, line.text)
		}
	}
}

// writeWrapped writes a text behind its label, in lines of at most width
// bytes where the words allow it.
func writeWrapped(b *strings.Builder, label, text string) {
	const (
		width  = 79
		indent = 9
	)
	fmt.Fprintf(b, "  %-*s", indent-2, label)
	column := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > width:
			fmt.Fprintf(b, "\n%*s", indent, "")
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	b.WriteByte('\n')
}
