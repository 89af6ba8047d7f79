package doctor

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// littleSlack is a slack that no longer shows in the lateness of a sleep.
	littleSlack = time.Microsecond

	// finestTick is shorter than the tick of any kernel.
	finestTick = 100 * time.Microsecond

	// dearReading is a reading of the clock that is not one of a counter in
	// the processor, without a system call.
	dearReading = 150 * time.Nanosecond
)

// timerSlack reads the slack of all threads of the process. That of other
// threads than the caller's takes CAP_SYS_NICE; then it is the caller's alone.
func (h host) timerSlack() (reading, error) {
	slacks, threads, err := h.threadSlacks()
	if len(slacks) == 0 {
		own, callErr := h.slack()
		if callErr != nil {
			return reading{}, errors.Join(err, callErr)
		}
		slacks = append(slacks, own)
	}
	worst := slacks[0]
	for _, s := range slacks {
		worst = max(worst, s)
	}
	r := reading{verdict: Good, value: worst.String()}
	switch {
	case threads == 0:
		r.value += " on this thread"
	case len(slacks) < threads:
		r.value += fmt.Sprintf(" on %d of %d threads", len(slacks), threads)
	default:
		r.value += fmt.Sprintf(" at most, on %d threads", threads)
	}
	if worst > littleSlack {
		r.verdict = Costs
		return r, nil
	}
	return r, err
}

// threadSlacks returns the slacks that can be read, of how many threads, and
// why not all.
func (h host) threadSlacks() (slacks []time.Duration, threads int, err error) {
	self, err := h.self()
	if err != nil {
		return nil, 0, err
	}
	fs, err := h.proc()
	if err != nil {
		return nil, 0, err
	}
	all, err := fs.AllThreads(self.PID)
	if err != nil {
		return nil, 0, err
	}
	for _, thread := range all {
		text, readErr := h.read(fmt.Sprintf("/proc/%d/timerslack_ns", thread.PID))
		if readErr == nil {
			var ns uint64
			if ns, readErr = strconv.ParseUint(text, 10, 63); readErr == nil {
				slacks = append(slacks, time.Duration(ns))
			}
		}
		if readErr != nil {
			err = readErr
		}
	}
	return slacks, len(all), err
}

// timers tells by the clock's resolution what timers are driven by. To the
// kernel the two are one: 1 ns with high-resolution timers, else the tick.
func (h host) timers() (reading, error) {
	resolution, err := h.resolution()
	switch {
	case err != nil:
		return reading{}, err
	case resolution <= 0:
		return reading{}, fmt.Errorf("clock_getres returned %v", resolution)
	case resolution < finestTick:
		return reading{verdict: Good, value: fmt.Sprintf("high-resolution, %v", resolution)}, nil
	}
	return reading{verdict: Costs, value: fmt.Sprintf("tick-driven, every %v", resolution)}, nil
}

// tickRate tells HZ, as observed where that is possible.
func (h host) tickRate() (reading, error) {
	hz, source, err := h.hz()
	if err != nil {
		return reading{}, err
	}
	r := reading{verdict: Good, value: fmt.Sprintf("HZ %d", hz), sources: []string{source}}
	resolution, err := h.resolution()
	if err != nil {
		return r, fmt.Errorf("whether sleeps wait for the tick is not known: %w", err)
	}
	if resolution >= finestTick {
		r.verdict = Costs
	}
	return r, nil
}

// hz returns HZ and what told it.
func (h host) hz() (hz int, source string, err error) {
	if resolution, err := h.resolution(); err == nil && resolution >= finestTick {
		return int(math.Round(float64(time.Second) / float64(resolution))), "clock_getres(CLOCK_MONOTONIC)", nil
	}
	text, listErr := h.read("/proc/timer_list")
	if listErr == nil {
		if hz, listErr = observedHZ(text); listErr == nil {
			return hz, "/proc/timer_list", nil
		}
	}
	value, source, configErr := h.config("CONFIG_HZ")
	if configErr == nil {
		if hz, configErr = strconv.Atoi(value); configErr == nil && hz > 0 {
			return hz, source, nil
		}
		configErr = fmt.Errorf("%s holds no CONFIG_HZ", source)
	}
	return 0, "", fmt.Errorf("%w; %w", listErr, configErr)
}

var (
	timerListNow     = regexp.MustCompile(`(?m)^now at (\d+) nsecs`)
	timerListJiffies = regexp.MustCompile(`(?m)^jiffies: (\d+)`)
)

// observedHZ returns HZ by the ticks and the time that /proc/timer_list tells
// since the start. It fails unless that is a rate that a kernel can have.
func observedHZ(timerList string) (int, error) {
	now := timerListNow.FindStringSubmatch(timerList)
	jiffies := timerListJiffies.FindStringSubmatch(timerList)
	if now == nil || jiffies == nil {
		return 0, errors.New("/proc/timer_list holds no time and no jiffies")
	}
	ns, nsErr := strconv.ParseInt(now[1], 10, 64)
	ticks, ticksErr := strconv.ParseInt(jiffies[1], 10, 64)
	if err := errors.Join(nsErr, ticksErr); err != nil {
		return 0, fmt.Errorf("/proc/timer_list: %w", err)
	}
	// The count starts 300 seconds before it fills 32 bits, so that drivers
	// that cannot stand it are found out.
	seconds := float64(ns)/1e9 - 300
	rate := (float64(ticks) - 1<<32) / seconds
	for _, hz := range []int{24, 32, 48, 64, 100, 128, 200, 250, 256, 300, 500, 512, 1000, 1024, 1200} {
		if math.Abs(rate-float64(hz)) < float64(hz)/200 {
			return hz, nil
		}
	}
	return 0, fmt.Errorf("/proc/timer_list: %d jiffies after %v fit no HZ", ticks, time.Duration(ns))
}

// clockSources holds the clock sources whose readings are known to take no
// system call, and those that are known to be slow.
var clockSources = map[string]Verdict{
	"tsc":                         Good,
	"tsc-early":                   Good,
	"kvm-clock":                   Good,
	"hyperv_clocksource_tsc_page": Good,
	"arch_sys_counter":            Good,
	"riscv_clocksource":           Good,
	"hpet":                        Costs,
	"acpi_pm":                     Costs,
	"pit":                         Costs,
	"jiffies":                     Costs,
	"refined-jiffies":             Costs,
}

func (h host) clockSource() (reading, error) {
	cost := h.clockCost()
	var r reading
	if cost > 0 {
		r.value = fmt.Sprintf("%v a reading", cost)
	}
	fs, err := h.sys()
	if err != nil {
		return r, err
	}
	sources, err := fs.ClockSources()
	if err != nil {
		return r, err
	}
	if len(sources) == 0 || sources[0].Current == "" {
		return r, errors.New("the kernel names no clock source")
	}
	current, available := sources[0].Current, strings.Join(sources[0].Available, ", ")
	verdict, known := clockSources[current]
	switch {
	case cost > dearReading:
		verdict = Costs
	case cost > 0 && !known:
		verdict = Good
	case !known:
		return reading{value: current}, errors.New("what a reading takes was not measured, and is not known of this source")
	}
	value := current
	if verdict == Costs {
		value += " (available: " + available + ")"
	}
	if cost > 0 {
		value += ", " + r.value
	}
	return reading{verdict: verdict, value: value}, nil
}
