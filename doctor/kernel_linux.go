package doctor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// models holds the preemption models and what they are for a wait.
var models = map[string]Verdict{
	"PREEMPT_RT":        Good,
	"full":              Good,
	"lazy":              Costs,
	"voluntary":         Costs,
	"none":              Costs,
	"voluntary or none": Costs,
}

// A model is a preemption model, and what told it.
type model struct{ name, how, source string }

func (h host) preemption() (reading, error) {
	m, err := h.preemptionModel()
	if err != nil {
		return reading{}, err
	}
	r := reading{value: m.name + m.how, sources: []string{m.source}}
	verdict, known := models[m.name]
	if !known {
		return r, fmt.Errorf("%s: the model %q is not known", m.source, m.name)
	}
	r.verdict = verdict
	return r, nil
}

// preemptionModel returns the model from the first that knows it: the
// scheduler itself, which only root may ask; else how the kernel was built
// and, if that left it open, booted.
func (h host) preemptionModel() (model, error) {
	const (
		realTime  = "/sys/kernel/realtime"
		scheduler = "/sys/kernel/debug/sched/preempt"
		built     = "/proc/sys/kernel/version"
	)
	if text, err := h.read(realTime); err == nil && text == "1" {
		return model{"PREEMPT_RT", "", realTime}, nil
	}
	version, err := h.read(built)
	if err != nil {
		return model{}, err
	}
	if versionSays(version, "PREEMPT_RT") {
		return model{"PREEMPT_RT", "", built}, nil
	}
	text, err := h.read(scheduler)
	if err == nil {
		name, err := chosen(text, "()")
		return model{name, "", scheduler}, err
	}
	if versionSays(version, "PREEMPT_DYNAMIC") {
		name, ok, cmdErr := h.parameter("preempt")
		if cmdErr != nil {
			return model{}, fmt.Errorf("%w; %w", err, cmdErr)
		}
		if ok {
			return model{name, ", as booted", "/proc/cmdline"}, nil
		}
	}
	m, configErr := h.builtModel()
	switch {
	case configErr == nil:
		return m, nil
	case strings.HasPrefix(version, "#") && !strings.Contains(version, "PREEMPT"):
		return model{"voluntary or none", ", as built", built}, nil
	}
	return model{}, fmt.Errorf("%w; %w; the version, %q, does not tell", err, configErr, version)
}

// builtModel returns the model that the kernel was built with.
func (h host) builtModel() (model, error) {
	source := ""
	for _, option := range []struct{ name, model string }{
		{"CONFIG_PREEMPT", "full"},
		{"CONFIG_PREEMPT_LAZY", "lazy"},
		{"CONFIG_PREEMPT_VOLUNTARY", "voluntary"},
		{"CONFIG_PREEMPT_NONE", "none"},
	} {
		var value string
		var err error
		if value, source, err = h.config(option.name); err != nil {
			return model{}, err
		}
		if value == "y" {
			return model{option.model, ", as built", source}, nil
		}
	}
	return model{}, fmt.Errorf("%s names no model", source)
}

func versionSays(version, word string) bool {
	// Kernels with the real-time patch of old write PREEMPT RT.
	version = strings.ReplaceAll(version, "PREEMPT RT", "PREEMPT_RT")
	for w := range strings.FieldsSeq(version) {
		if w == word {
			return true
		}
	}
	return false
}

func (h host) isolatedCPUs() (reading, error) {
	fs, err := h.sys()
	if err != nil {
		return reading{}, err
	}
	if err := h.checkList(cpuDir + "/isolated"); err != nil {
		return reading{}, err
	}
	isolated, err := fs.IsolatedCPUs()
	if err != nil {
		return reading{}, err
	}
	cpus := make([]int, len(isolated))
	for i, cpu := range isolated {
		cpus[i] = int(cpu)
	}
	return goodIfAny(ranges(cpus)), nil
}

// ticklessCPUs reads the file, which a kernel without CONFIG_NO_HZ_FULL does
// not have. Such a kernel, and one that was not asked, has no tickless CPUs.
func (h host) ticklessCPUs() (reading, error) {
	const file = cpuDir + "/nohz_full"
	text, err := h.read(file)
	switch {
	case err == nil && (text == "" || text == "(null)"):
		return goodIfAny(""), nil
	case err == nil && !cpuList.MatchString(text):
		return reading{}, noList(file, text)
	case err == nil:
		return goodIfAny(text), nil
	case !errors.Is(err, os.ErrNotExist):
		return reading{}, err
	}
	asked, ok, cmdErr := h.parameter("nohz_full")
	if cmdErr != nil {
		return reading{}, fmt.Errorf("%w; %w", err, cmdErr)
	}
	r := goodIfAny("")
	if ok {
		r.value += "; " + asked + " were asked for at boot, but the kernel has no such thing"
	}
	return r, nil
}

// callbackFree tells from the command line, and from the tickless CPUs, which
// are always of them; without either, the kernel may still have been built to
// take in all.
func (h host) callbackFree() (reading, error) {
	const boot = "/proc/cmdline"
	var cpus []string
	value, ok, err := h.parameter("rcu_nocbs")
	if err != nil {
		return reading{}, err
	}
	if ok && value != "" {
		cpus = append(cpus, value+" (rcu_nocbs)")
	}
	if tickless, err := h.read(cpuDir + "/nohz_full"); err == nil && cpuList.MatchString(tickless) {
		cpus = append(cpus, tickless+" (nohz_full)")
	}
	if len(cpus) > 0 {
		return reading{
			verdict: Good,
			value:   "moved off " + strings.Join(cpus, " and "),
			sources: []string{boot, cpuDir + "/nohz_full"},
		}, nil
	}
	value, source, err := h.config("CONFIG_RCU_NOCB_CPU_DEFAULT_ALL")
	switch {
	case err != nil:
		return reading{}, fmt.Errorf("not asked for at boot, but it may be the kernel's default: %w", err)
	case value == "y":
		return reading{verdict: Good, value: "moved off all CPUs, as built", sources: []string{boot, source}}, nil
	}
	return reading{verdict: Costs, value: "moved off no CPU", sources: []string{boot, source}}, nil
}

// goodIfAny judges a list of CPUs that it is good to have.
func goodIfAny(cpus string) reading {
	if cpus == "" {
		return reading{verdict: Costs, value: "none"}
	}
	return reading{verdict: Good, value: cpus}
}

func (h host) nmiWatchdog() (reading, error) {
	return h.offIsGood("kernel.nmi_watchdog")
}

// offIsGood judges a sysctl that costs something unless it is 0.
func (h host) offIsGood(name string) (reading, error) {
	value, err := h.sysctl(name)
	if err != nil {
		return reading{}, err
	}
	if value == 0 {
		return reading{verdict: Good, value: "0"}, nil
	}
	return reading{verdict: Costs, value: fmt.Sprint(value)}, nil
}

func (h host) realTimeShare() (reading, error) {
	runtime, err := h.sysctl("kernel.sched_rt_runtime_us")
	if err != nil {
		return reading{}, err
	}
	if runtime < 0 {
		return h.fairServer()
	}
	period, err := h.sysctl("kernel.sched_rt_period_us")
	if err != nil {
		return reading{value: fmt.Sprintf("%d us", runtime)}, err
	}
	if runtime >= period {
		return h.fairServer()
	}
	return reading{verdict: Costs, value: fmt.Sprintf("%d us of each %d us", runtime, period)}, nil
}

// fairServer judges a host whose sysctl sets real-time threads no limit. The
// fair server may still set one; only root can see it.
func (h host) fairServer() (reading, error) {
	const dir = "/sys/kernel/debug/sched/fair_server"
	r := reading{verdict: Good, value: "without limit"}
	files := h.glob(dir + "/cpu[0-9]*/runtime")
	for _, file := range files {
		text, err := h.read(file)
		if err != nil {
			return r, err
		}
		ns, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return r, fmt.Errorf("%s: %w", file, err)
		}
		if ns > 0 {
			return reading{verdict: Costs, value: fmt.Sprintf("without limit, but the fair server may take %v of each period", time.Duration(ns))}, nil
		}
	}
	if len(files) > 0 {
		return r, nil
	}
	release, err := h.read("/proc/sys/kernel/osrelease")
	if err != nil {
		return r, err
	}
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		return r, fmt.Errorf("the release %q is no version", release)
	}
	if major > 6 || major == 6 && minor >= 12 {
		return r, fmt.Errorf("%s cannot be seen, where the fair server's share is", dir)
	}
	return r, nil
}
