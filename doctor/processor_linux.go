package doctor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shallow is the exit latency up to which an idle state does not show in the
// lateness of a sleep: what a wake-up takes anyhow.
const shallow = 10 * time.Microsecond

// An idleState is a state that is enabled on some CPU.
type idleState struct {
	name string
	exit time.Duration
}

func (h host) idleStates() (reading, error) {
	// With idle=poll the kernel loads no idle driver, so that no state is listed.
	if idle, _, err := h.parameter("idle"); err == nil && idle == "poll" {
		return reading{verdict: Good, value: "none, idle CPUs spin (idle=poll)", sources: []string{"/proc/cmdline"}}, nil
	}
	states, err := h.enabledStates()
	if err != nil {
		return reading{}, err
	}
	limit, limitErr := h.latencyLimit()
	worst, allowed := worstState(states, limit)
	if !allowed {
		return reading{verdict: Good, value: fmt.Sprintf("none, the limit of %v rules out all", limit)}, nil
	}
	r := reading{verdict: Good, value: fmt.Sprintf("%s is the deepest, left in %v", worst.name, worst.exit)}
	switch {
	case limit < noLatencyLimit:
		r.value += fmt.Sprintf(", with a limit of %v", limit)
	case limitErr != nil && worst.exit > shallow:
		r.value += ", unless a limit is held that cannot be read"
	}
	if worst.exit > shallow {
		r.verdict = Costs
	}
	return r, nil
}

// enabledStates returns the states that are enabled on any CPU.
func (h host) enabledStates() ([]idleState, error) {
	dirs := h.glob(cpuDir + "/cpu[0-9]*/cpuidle/state[0-9]*")
	if len(dirs) == 0 {
		driver, err := h.read(cpuDir + "/cpuidle/current_driver")
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the kernel lists no idle states (driver %s)", driver)
	}
	var states []idleState
	for _, dir := range dirs {
		disabled, err := h.read(dir + "/disable")
		if err != nil {
			return nil, err
		}
		if disabled != "0" {
			continue
		}
		name, err := h.read(dir + "/name")
		if err != nil {
			return nil, err
		}
		text, err := h.read(dir + "/latency")
		if err != nil {
			return nil, err
		}
		us, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s/latency: %w", dir, err)
		}
		states = append(states, idleState{name, time.Duration(us) * time.Microsecond})
	}
	if len(states) == 0 {
		return nil, errors.New("every idle state is disabled")
	}
	return states, nil
}

// worstState returns the state that takes longest to leave among those that
// the limit allows, and whether there is one.
func worstState(states []idleState, limit time.Duration) (worst idleState, ok bool) {
	for _, s := range states {
		if s.exit <= limit && (!ok || s.exit > worst.exit) {
			worst, ok = s, true
		}
	}
	return worst, ok
}

// noLatencyLimit is what the kernel takes for "no limit".
const noLatencyLimit = 2_000_000_000 * time.Microsecond

// latencyLimit returns the limit on exit latencies that is in force. To open
// the file for reading asks for no limit, and so changes none.
func (h host) latencyLimit() (time.Duration, error) {
	const file = "/dev/cpu_dma_latency"
	b := make([]byte, 4)
	f, err := os.Open(h.path(file))
	if err != nil {
		return noLatencyLimit, err
	}
	defer f.Close()
	if _, err := f.Read(b); err != nil {
		return noLatencyLimit, err
	}
	us := int32(binary.NativeEndian.Uint32(b))
	if us < 0 {
		return noLatencyLimit, fmt.Errorf("%s holds %d", file, us)
	}
	return time.Duration(us) * time.Microsecond, nil
}

func (h host) idleGovernor() (reading, error) {
	driver, err := h.read(cpuDir + "/cpuidle/current_driver")
	if err != nil {
		return reading{}, err
	}
	if driver == "none" || driver == "" {
		return reading{}, errors.New("no idle driver is loaded, so that no governor picks anything")
	}
	governor, err := h.read(cpuDir + "/cpuidle/current_governor")
	if errors.Is(err, os.ErrNotExist) { // before Linux 5.8, unless asked for at boot
		governor, err = h.read(cpuDir + "/cpuidle/current_governor_ro")
	}
	if err != nil {
		return reading{}, err
	}
	r := reading{verdict: Good, value: governor + ", driver " + driver}
	switch governor {
	case "menu", "teo":
		return r, nil
	case "ladder":
		r.verdict = Costs
		return r, nil
	case "haltpoll":
		return h.haltPolling(r)
	}
	return r, fmt.Errorf("what the governor %q does is not known", governor)
}

// haltPolling judges the governor that polls, by how long it does.
func (h host) haltPolling(r reading) (reading, error) {
	const file = "/sys/module/haltpoll/parameters/guest_halt_poll_ns"
	text, err := h.read(file)
	if err != nil {
		return r, err
	}
	ns, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	if ns == 0 {
		r.verdict = Costs
		r.value += ", does not poll"
		return r, nil
	}
	r.value += fmt.Sprintf(", polls up to %v", time.Duration(ns))
	return r, nil
}

func (h host) frequencyGovernor() (reading, error) {
	fs, err := h.sys()
	if err != nil {
		return reading{}, err
	}
	if err := h.checkList(cpuDir + "/offline"); err != nil {
		return reading{}, err
	}
	frequencies, err := fs.SystemCpufreq()
	if err != nil {
		return reading{}, err
	}
	type control struct{ governor, driver string }
	cpus := make(map[control][]int)
	for _, f := range frequencies {
		if f.Name == "" { // this CPU has no frequency driver
			continue
		}
		cpu, err := strconv.Atoi(f.Name)
		if err != nil {
			return reading{}, err
		}
		c := control{f.Governor, f.Driver}
		cpus[c] = append(cpus[c], cpu)
	}
	if len(cpus) == 0 {
		return reading{}, errors.New("no CPU has a frequency driver: the firmware or the host sets the frequency")
	}
	r := reading{verdict: Good}
	var parts []string
	for c, list := range cpus {
		if c.governor != "performance" {
			r.verdict = Costs
		}
		slices.Sort(list)
		parts = append(parts, fmt.Sprintf("%s on CPUs %s (driver %s)", c.governor, ranges(list), c.driver))
	}
	slices.Sort(parts)
	r.value = strings.Join(parts, ", ")
	return r, nil
}

func (h host) multithreading() (reading, error) {
	const file = cpuDir + "/smt/active"
	active, err := h.read(file)
	if err != nil {
		return reading{}, err
	}
	r := reading{verdict: Good, value: "not active"}
	switch active {
	case "0":
	case "1":
		r = reading{verdict: Costs, value: "active"}
	default:
		return reading{}, fmt.Errorf("%s holds %q", file, active)
	}
	if control, err := h.read(cpuDir + "/smt/control"); err == nil {
		r.value += ", control " + control
	}
	return r, nil
}

// hypervisor tells by what a hypervisor shows of itself. That there is none
// only an x86 processor tells; elsewhere silence tells nothing.
func (h host) hypervisor() (reading, error) {
	if kind, err := h.read("/sys/hypervisor/type"); err == nil && kind != "" {
		return reading{verdict: Costs, value: kind, sources: []string{"/sys/hypervisor/type"}}, nil
	}
	maker := h.machine()
	flags, err := h.cpuFlags()
	if err != nil {
		return reading{value: maker}, err
	}
	if !slices.Contains(flags, "hypervisor") {
		return reading{verdict: Good, value: strings.TrimSuffix("none, "+maker, ", ")}, nil
	}
	return reading{verdict: Costs, value: strings.TrimSuffix("yes, "+maker, ", ")}, nil
}

// machine returns the maker and the name of the machine, as far as the
// firmware tells them.
func (h host) machine() string {
	fs, err := h.sys()
	if err != nil {
		return ""
	}
	dmi, err := fs.DMIClass()
	if err != nil {
		return ""
	}
	var parts []string
	for _, part := range []*string{dmi.SystemVendor, dmi.ProductName} {
		if part != nil && *part != "" {
			parts = append(parts, *part)
		}
	}
	return strings.Join(parts, " ")
}

// cpuFlags returns the flags of the first x86 processor. procfs reads them
// only in a program that was built for x86, and a recorded tree need not be
// from the like.
func (h host) cpuFlags() ([]string, error) {
	const file = "/proc/cpuinfo"
	text, err := h.read(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			return strings.Fields(value), nil
		}
	}
	return nil, fmt.Errorf("%s has no flags, so that it does not tell", file)
}

func (h host) stolenTime() (reading, error) {
	fs, err := h.proc()
	if err != nil {
		return reading{}, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return reading{}, err
	}
	// The time of guests is in that of user and nice already.
	t := stat.CPUTotal
	total := t.User + t.Nice + t.System + t.Idle + t.Iowait + t.IRQ + t.SoftIRQ + t.Steal
	if total <= 0 {
		return reading{}, errors.New("/proc/stat holds no time of the CPUs")
	}
	if t.Steal <= 0 {
		return reading{verdict: Good, value: "0"}, nil
	}
	return reading{verdict: Costs, value: fmt.Sprintf("%.2f s since boot, %.2g %% of all CPU time", t.Steal, 100*t.Steal/total)}, nil
}
