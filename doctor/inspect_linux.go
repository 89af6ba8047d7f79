package doctor

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Inspect reports on this host. It takes some milliseconds, and longer on a
// host with many CPUs.
func Inspect() Report {
	return host{calls: calls{
		slack:      threadSlack,
		resolution: clockResolution,
		clockCost:  clockCost,
		maxProcs:   runtime.GOMAXPROCS(0),
		arch:       runtime.GOARCH,
		goVersion:  runtime.Version(),
	}}.inspect()
}

// readers holds what reads each subject, by its name. With an error the
// finding is unknown.
var readers = map[string]func(host) (reading, error){
	timerSlack:     host.timerSlack,
	timers:         host.timers,
	tickRate:       host.tickRate,
	clockSource:    host.clockSource,
	preemption:     host.preemption,
	isolatedCPUs:   host.isolatedCPUs,
	ticklessCPUs:   host.ticklessCPUs,
	callbackFree:   host.callbackFree,
	nmiWatchdog:    host.nmiWatchdog,
	realTimeShare:  host.realTimeShare,
	idleStates:     host.idleStates,
	idleGovernor:   host.idleGovernor,
	freqGovernor:   host.frequencyGovernor,
	multithreading: host.multithreading,
	hypervisor:     host.hypervisor,
	stolenTime:     host.stolenTime,
	hugePages:      host.hugePages,
	swapping:       host.swapping,
	numaBalancing:  host.numaBalancing,
	cpuQuota:       host.cpuQuota,
	throttling:     host.throttling,
	priorityLimit:  host.priorityLimit,
	memoryLimit:    host.memoryLimit,
	fileLimit:      host.fileLimit,
	capabilities:   host.capabilities,
}

func threadSlack() (time.Duration, error) {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return time.Duration(ns), os.NewSyscallError("prctl(PR_GET_TIMERSLACK)", err)
}

func clockResolution() (time.Duration, error) {
	var res unix.Timespec
	err := unix.ClockGetres(unix.CLOCK_MONOTONIC, &res)
	return time.Duration(res.Nano()), os.NewSyscallError("clock_getres", err)
}

// clockCost returns what a reading of the monotonic clock takes: the best of
// some batches, since the host may take the CPU away during the others.
func clockCost() time.Duration {
	const (
		batches  = 5
		readings = 1000
	)
	best := time.Duration(1<<63 - 1)
	base := time.Now()
	for range batches {
		start := time.Since(base)
		for range readings - 1 {
			time.Since(base)
		}
		best = min(best, (time.Since(base)-start)/readings)
	}
	return best
}
