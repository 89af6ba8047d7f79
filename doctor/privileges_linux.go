package doctor

import (
	"errors"
	"fmt"
	"math"

	"github.com/prometheus/procfs"
)

// The numbers of the capabilities in the masks of /proc/PID/status.
const (
	capIPCLock = 14
	capSysNice = 23
)

const (
	// unlimited is how procfs returns a limit that is none.
	unlimited = math.MaxUint64

	// fewFiles is a limit that a small program reaches with the descriptors of
	// this module.
	fewFiles = 64
)

// privileges is what the process may do.
type privileges struct {
	limits           procfs.ProcLimits
	limitsErr        error
	sysNice, ipcLock bool // in effect
	capsErr          error
}

func (h host) privileges() privileges {
	self, err := h.self()
	if err != nil {
		return privileges{limitsErr: err, capsErr: err}
	}
	var p privileges
	if p.limits, p.limitsErr = self.Limits(); p.limitsErr == nil {
		p.limitsErr = errors.Join(
			h.holds("/proc/self/limits", "Max realtime priority"),
			h.holds("/proc/self/limits", "Max locked memory"),
			h.holds("/proc/self/limits", "Max open files"))
	}
	status, err := self.NewStatus()
	if err == nil {
		err = h.holds("/proc/self/status", "CapEff:")
	}
	p.capsErr = err
	p.sysNice = status.CapEff&(1<<capSysNice) != 0
	p.ipcLock = status.CapEff&(1<<capIPCLock) != 0
	return p
}

func (h host) priorityLimit() (reading, error) {
	p := h.privileges()
	return limitReading(p, fmt.Sprint(p.limits.RealtimePriority), p.limits.RealtimePriority > 0, p.sysNice, "CAP_SYS_NICE")
}

func (h host) memoryLimit() (reading, error) {
	p := h.privileges()
	value := "unlimited"
	if p.limits.LockedMemory != unlimited {
		value = fmt.Sprintf("%d KiB", p.limits.LockedMemory>>10)
	}
	return limitReading(p, value, p.limits.LockedMemory == unlimited, p.ipcLock, "CAP_IPC_LOCK")
}

// limitReading judges a limit that a capability lifts.
func limitReading(p privileges, value string, enough, lifted bool, capability string) (reading, error) {
	if p.limitsErr != nil {
		return reading{}, p.limitsErr
	}
	r := reading{verdict: Good, value: value}
	switch {
	case enough:
	case p.capsErr != nil:
		return r, p.capsErr
	case lifted:
		r.value += ", lifted by " + capability
	default:
		r.verdict = Costs
	}
	return r, nil
}

func (h host) fileLimit() (reading, error) {
	p := h.privileges()
	switch files := p.limits.OpenFiles; {
	case p.limitsErr != nil:
		return reading{}, p.limitsErr
	case files == unlimited:
		return reading{verdict: Good, value: "unlimited"}, nil
	case files < fewFiles:
		return reading{verdict: Costs, value: fmt.Sprint(files)}, nil
	default:
		return reading{verdict: Good, value: fmt.Sprint(files)}, nil
	}
}

func (h host) capabilities() (reading, error) {
	p := h.privileges()
	if p.capsErr != nil {
		return reading{}, p.capsErr
	}
	r := reading{verdict: Good}
	switch {
	case p.sysNice && p.ipcLock:
		r.value = "CAP_SYS_NICE and CAP_IPC_LOCK"
	case p.sysNice:
		r = reading{verdict: Costs, value: "CAP_SYS_NICE, not CAP_IPC_LOCK"}
	case p.ipcLock:
		r = reading{verdict: Costs, value: "CAP_IPC_LOCK, not CAP_SYS_NICE"}
	default:
		r = reading{verdict: Costs, value: "neither"}
	}
	// What a limit allows needs no capability.
	if r.verdict == Costs && p.limitsErr == nil &&
		(p.sysNice || p.limits.RealtimePriority > 0) && (p.ipcLock || p.limits.LockedMemory == unlimited) {
		r.verdict = Good
		r.value += ", but the limits allow as much"
	}
	return r, nil
}
