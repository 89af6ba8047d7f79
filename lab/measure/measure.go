// Package measure measures how late waits end, and what they cost.
//
// One thing is common to all of it: a [Method] is asked for waits of some
// length, the request, and each wait gives a sample, its lateness: the time
// from its deadline to its return. Samples are kept by a [Recorder] and told
// as a [Row]. What differs is who waits: methods that take turns
// ([Alternate]), one loop at a fixed rate ([FixedRate]), many sleepers at once
// ([Crowd]), or one sleeper at any phase of a tick ([Phase]).
package measure

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/precisewait/wait"
)

// A Result is all that one command has measured.
type Result struct {
	Command     string        `json:"command"`
	Host        Host          `json:"host"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Load        Load          `json:"load,omitempty"`
	Tick        time.Duration `json:"tick_ns,omitempty"` // of the host, or simulated
	Simulated   bool          `json:"simulated,omitempty"`
	Floor       *wait.Floor   `json:"floor,omitempty"`
	Rows        []Row         `json:"rows"`
}

// Sound returns an error for a result that no command has measured, and that
// could not be shown.
func (r Result) Sound() error {
	for _, row := range r.Rows {
		if row.Request <= 0 || row.Waits < 0 || row.Sleepers < 0 {
			return fmt.Errorf("%q waits %d times %v, with %d sleepers", row.Method, row.Waits, row.Request, row.Sleepers)
		}
		var all int64
		for _, b := range row.Buckets {
			if b.Waits <= 0 || b.Late < 0 || int64(b.Late) > 2*latest { // a bucket may end beyond the latest
				return fmt.Errorf("%q has a bucket of %d waits up to %v late", row.Method, b.Waits, b.Late)
			}
			if all += b.Waits; all > row.Waits {
				return fmt.Errorf("%q has more than its %d waits in its buckets", row.Method, row.Waits)
			}
		}
	}
	return nil
}

// A Host is where it was measured.
type Host struct {
	System       string `json:"system"`
	Architecture string `json:"architecture"`
	CPUs         int    `json:"cpus"`
	GOMAXPROCS   int    `json:"gomaxprocs"`
	Go           string `json:"go"`
}

// ThisHost returns the host that this is.
func ThisHost() Host {
	return Host{
		System:       runtime.GOOS,
		Architecture: runtime.GOARCH,
		CPUs:         runtime.NumCPU(),
		GOMAXPROCS:   runtime.GOMAXPROCS(0),
		Go:           runtime.Version(),
	}
}

// A Row is what one method did with one request.
type Row struct {
	Method   string        `json:"method"`
	Group    Group         `json:"group,omitempty"`
	Request  time.Duration `json:"request_ns"`
	Sleepers int           `json:"sleepers,omitempty"`

	// Absent is why there are no figures, or, if it has waited, no more.
	Absent string `json:"absent,omitempty"`

	Waits    int64    `json:"waits"`
	Early    int64    `json:"early"`            // waits that ended before their deadline
	Missed   int64    `json:"missed,omitempty"` // deadlines of a fixed-rate loop that passed during another wait
	Lateness Lateness `json:"lateness"`

	// CPU is user and system time of the process by wait, where it is known.
	CPU      *time.Duration `json:"cpu_per_wait_ns,omitempty"`
	CPUs     *float64       `json:"cpus_in_use,omitempty"`
	Threads  int            `json:"threads,omitempty"`           // of the process, at most
	Switches *float64       `json:"switches_per_wait,omitempty"` // voluntary context switches of the process

	Rounds  []Round  `json:"rounds,omitempty"`
	Series  []Point  `json:"series,omitempty"`
	Buckets []Bucket `json:"buckets,omitempty"`
}

// Measured reports whether the row has figures.
func (r Row) Measured() bool { return r.Absent == "" || r.Waits > 0 }

// A Lateness is how late waits ended.
type Lateness struct {
	Min  time.Duration `json:"min_ns"`
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`
	Mean time.Duration `json:"mean_ns"`
}

// A Round is one turn of a method among others.
type Round struct {
	P50 time.Duration  `json:"p50_ns"`
	P99 time.Duration  `json:"p99_ns"`
	CPU *time.Duration `json:"cpu_per_wait_ns,omitempty"`
}

// A Point is the latest of the waits that ended about some time after the
// start.
type Point struct {
	At   time.Duration `json:"at_ns"`
	Late time.Duration `json:"late_ns"`
}

// A Bucket is how many waits were up to so late, and later than those of the
// bucket before.
type Bucket struct {
	Late  time.Duration `json:"late_ns"`
	Waits int64         `json:"waits"`
}

// epoch is where the clock of all measurements begins. It is the monotonic
// clock, and time.Since(epoch) its cheapest reading.
var epoch = time.Now()

func now() int64 { return int64(time.Since(epoch)) }

// A meter reads what the process has used since it was started.
type meter struct {
	usage usage
	at    int64
}

func startMeter() meter {
	u, _ := readUsage()
	return meter{u, now()}
}

// read adds to a row what was used since, by so many waits.
func (m meter) read(row *Row, waits int64) {
	u, ok := readUsage()
	wall := now() - m.at
	if !ok || waits == 0 || wall <= 0 {
		return
	}
	cpu := u.cpu - m.usage.cpu
	perWait := cpu / time.Duration(waits)
	cpus := float64(cpu) / float64(wall)
	switches := float64(u.switches-m.usage.switches) / float64(waits)
	row.CPU, row.CPUs, row.Switches = &perWait, &cpus, &switches
}

// quiet collects garbage, and puts off the next collection until release is
// called: it would show in the figures.
func quiet() (release func()) {
	runtime.GC()
	percent := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(percent) }
}
