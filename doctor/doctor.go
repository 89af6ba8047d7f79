// Package doctor tells what stands between this host and waits that end on
// time: the settings of the kernel, the hardware, the container and the
// process that make a sleep late or a spin stop.
//
// [Inspect] reads them from /proc, /sys and /dev, most of it without any
// privilege, and judges each. Some findings need root; without it they are
// unknown.
//
// # Contract
//
// Inspect only reads. It changes no setting, starts no load and leaves
// nothing open.
//
// Every report holds each finding once, in the same order, with all its
// texts. What cannot be read is [Unknown] and says why; nothing is guessed,
// and neither a missing nor a malformed file is an error or a panic.
//
// A finding that costs a wait something need not be changed: most of the
// changes cost somebody else throughput or power. It tells the price.
//
// Elsewhere than on Linux every finding is Unknown.
package doctor

// A Verdict is what a finding means for a wait.
type Verdict string

// The verdicts.
const (
	Good    Verdict = "good"    // costs a wait nothing that could be saved
	Costs   Verdict = "costs"   // makes waits late, always or at times
	Unknown Verdict = "unknown" // could not be read, or does not tell
)

// A Report is what was found on a host.
type Report struct {
	Host     Host      `json:"host"`
	Findings []Finding `json:"findings"`
}

// A Host is what was inspected. What could not be read is empty.
type Host struct {
	System       string `json:"system"`               // as GOOS
	Architecture string `json:"architecture"`         // as GOARCH
	Kernel       string `json:"kernel,omitempty"`     // uname -r
	Version      string `json:"version,omitempty"`    // uname -v
	CPUs         string `json:"cpus,omitempty"`       // those online, as in 0-3,6
	GOMAXPROCS   int    `json:"gomaxprocs,omitempty"` // how many goroutines run at once
	Go           string `json:"go"`                   // the version of Go
}

// A Finding is one thing that bears on how late waits end.
type Finding struct {
	// Name is the finding's own, the same in every report.
	Name string `json:"name"`

	Verdict Verdict `json:"verdict"`

	// Value is what was read, with its unit. It may hold a part where the
	// verdict is Unknown.
	Value string `json:"value,omitempty"`

	// Why is the reason where the verdict is Unknown, and empty otherwise.
	Why string `json:"why,omitempty"`

	// What says what the thing is, Cost what it costs a wait where it is not
	// good, and Change how to change it.
	What   string `json:"what"`
	Cost   string `json:"cost"`
	Change string `json:"change"`

	// Sources are the files and system calls that it was read from, or that it
	// is looked for in where the verdict is Unknown.
	Sources []string `json:"sources"`
}
