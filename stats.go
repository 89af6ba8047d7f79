package wait

import (
	"sync/atomic"
	"time"

	"github.com/precisewait/wait/internal/park"
)

// Stats is what the package has done since the program started. The counts
// are read one after the other, so they may be off against each other by the
// waits that end meanwhile.
type Stats struct {
	// Waits begun, by the way they were done, those of Threads too. Those of
	// [For] and [Until] count as what they picked, the sleeps between polls as SleepRange.
	Sleeps, SleepRanges, Spins, Hybrids uint64

	// Waits on a synctest bubble's time do not count.
	Polls       uint64        // calls of the ReadPollTimeout family
	Spun        time.Duration // time spun by Spin, Hybrid, receives and the delays of atomic polls
	OverBudget  uint64        // spins that Hybrid or a receive left out because too many others were spinning
	Interrupted uint64        // times that a signal interrupted a Thread's sleep

	// Receives by RecvTimeout and RecvContext that spun, and those of them
	// whose value came while they did. Where hardly any does, the spin is too
	// short, or for nothing.
	ReceivesSpun, ReceivesCaught uint64

	Parked       int64        // goroutines asleep now, but for Threads and those that wait for an event
	AlarmsOpen   int64        // kernel timers that serve one sleeper at a time
	AlarmRings   uint64       // wake-ups by those
	BellRings    uint64       // wake-ups by the kernel timer that serves the crowd
	Shared       uint64       // ranges that joined a wake-up of the bell that was set already
	PerWakeup    float64      // sleeps that ended, by whatever it was, per wake-up by a kernel timer
	Wakeup       string       // what ends a sleep now: WakeupTimerfd or WakeupRuntime
	Refused      uint64       // kernel timers that the kernel refused to make or to set
	FloorByClass []FloorClass // the lateness of sleeps, by their length
}

// What ends a sleep, in [Stats] and [Floor].
const (
	WakeupTimerfd = "timerfd"       // a kernel timer on the runtime's poller
	WakeupRuntime = "runtime timer" // the runtime's timers alone

	WakeupNanosleep = "clock_nanosleep" // a Thread's system call
)

var counts struct {
	sleep, sleepRange, spin, hybrid, poll, overBudget, interrupted atomic.Uint64
	receivesSpun, receivesCaught                                   atomic.Uint64
	spun                                                           atomic.Int64
}

// ReadStats returns the counts so far. It never blocks.
func ReadStats() Stats {
	engine := park.ReadCounts()
	s := Stats{
		Sleeps:       counts.sleep.Load(),
		SleepRanges:  counts.sleepRange.Load(),
		Spins:        counts.spin.Load(),
		Hybrids:      counts.hybrid.Load(),
		Polls:        counts.poll.Load(),
		Spun:         time.Duration(counts.spun.Load()),
		OverBudget:   counts.overBudget.Load(),
		Interrupted:  counts.interrupted.Load(),
		ReceivesSpun: counts.receivesSpun.Load(),
		Parked:       engine.Parked,
		AlarmsOpen:   engine.Alarms,
		AlarmRings:   engine.AlarmRings,
		BellRings:    engine.BellRings,
		Shared:       engine.Shared,
		Refused:      engine.Failures,
		Wakeup:       wakeup(engine),
		FloorByClass: classes.figures(),

		ReceivesCaught: counts.receivesCaught.Load(),
	}
	if rings := s.AlarmRings + s.BellRings; rings > 0 {
		s.PerWakeup = float64(engine.Served) / float64(rings)
	}
	return s
}

func wakeup(engine park.Counts) string {
	if engine.RuntimeTimer {
		return WakeupRuntime
	}
	return WakeupTimerfd
}
