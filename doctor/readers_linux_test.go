package doctor

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A readerTest changes a recorded host and tells what a finding becomes.
type readerTest struct {
	name    string
	files   map[string]string // to write, by name on the host
	remove  []string          // patterns of files to remove
	verdict Verdict
	value   string // all of it
	why     string // a part of it
}

// runReaderTests runs the tests of a subject on a recorded host.
func runReaderTests(t *testing.T, hostName, subject string, tests []readerTest) {
	t.Helper()
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			h := openHost(t, hostName)
			for _, pattern := range c.remove {
				names := h.glob(pattern)
				require.NotEmpty(t, names, pattern)
				for _, name := range names {
					require.NoError(t, os.RemoveAll(h.path(name)))
				}
			}
			for name, content := range c.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
				require.NoError(t, os.WriteFile(h.path(name), []byte(content), 0o644))
			}
			f := h.find(subject)
			assert.Equal(t, c.verdict, f.Verdict, f.Why)
			assert.Equal(t, c.value, f.Value)
			assert.Contains(t, f.Why, c.why)
		})
	}
}

func TestTimerSlack(t *testing.T) {
	runReaderTests(t, "metal", timerSlack, []readerTest{
		{name: "worst thread counts", files: map[string]string{"/proc/2203/timerslack_ns": "40000\n"},
			verdict: Costs, value: "40µs at most, on 4 threads"},
		{name: "others than the first cannot be read", remove: []string{"/proc/220[234]"},
			verdict: Unknown, value: "1ns on 1 of 4 threads", why: "timerslack_ns: no such file"},
		{name: "none can be read", remove: []string{"/proc/220?/timerslack_ns"},
			verdict: Unknown, value: "1ns on 1 of 4 threads", why: "timerslack_ns: no such file"},
		{name: "threads cannot be listed", remove: []string{"/proc/2201/task"},
			verdict: Unknown, value: "1ns on this thread", why: "no such file"},
	})
}

func TestTimersByTheClocksResolution(t *testing.T) {
	for _, c := range []struct {
		resolution   time.Duration
		verdict      Verdict
		timers, rate string
		rateVerdict  Verdict
	}{
		{time.Nanosecond, Good, "high-resolution, 1ns", "HZ 1000", Good},
		{4 * time.Millisecond, Costs, "tick-driven, every 4ms", "HZ 250", Costs},
		{3333333 * time.Nanosecond, Costs, "tick-driven, every 3.333333ms", "HZ 300", Costs},
		{0, Unknown, "", "HZ 1000", Good},
	} {
		h := openHost(t, "metal")
		h.resolution = func() (time.Duration, error) { return c.resolution, nil }
		f := h.find(timers)
		assert.Equal(t, c.verdict, f.Verdict, c.resolution)
		assert.Equal(t, c.timers, f.Value)
		f = h.find(tickRate)
		assert.Equal(t, c.rateVerdict, f.Verdict, c.resolution)
		assert.Equal(t, c.rate, f.Value)
	}
}

func TestObservedHZ(t *testing.T) {
	for _, hz := range []int64{100, 250, 300, 1000} {
		for _, seconds := range []int64{20, 299, 400, 86400, 40_000_000} {
			list := fmt.Sprintf("now at %d nsecs\ncpu: 0\njiffies: %d\n", seconds*1e9+999_999, 1<<32+(seconds-300)*hz)
			got, err := observedHZ(list)
			require.NoError(t, err)
			assert.EqualValues(t, hz, got, "after %d s", seconds)
		}
	}
	for _, list := range []string{
		"", "now at 5 nsecs\n", "jiffies: 7\n",
		"now at 300000000000 nsecs\njiffies: 4294967296\n", // the moment that tells nothing
		"now at 400000000000 nsecs\njiffies: 4295000000\n",
		"now at 99999999999999999999 nsecs\njiffies: 1\n",
	} {
		_, err := observedHZ(list)
		assert.Error(t, err, list)
	}
}

func TestClockSource(t *testing.T) {
	current := "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	runReaderTests(t, "metal", clockSource, []readerTest{
		{name: "slow source", files: map[string]string{current: "hpet\n"},
			verdict: Costs, value: "hpet (available: tsc, hpet, acpi_pm), 18ns a reading"},
		{name: "source that is not known, but fast", files: map[string]string{current: "new\n"},
			verdict: Good, value: "new, 18ns a reading"},
		{name: "no source", files: map[string]string{current: "\n"},
			verdict: Unknown, value: "18ns a reading", why: "names no clock source"},
	})
	h := openHost(t, "metal")
	h.clockCost = func() time.Duration { return 900 * time.Nanosecond }
	f := h.find(clockSource)
	assert.Equal(t, Costs, f.Verdict)
	assert.Equal(t, "tsc (available: tsc, hpet, acpi_pm), 900ns a reading", f.Value)
}

func TestPreemption(t *testing.T) {
	const (
		version = "/proc/sys/kernel/version"
		debug   = "/sys/kernel/debug/sched/preempt"
		cmdline = "/proc/cmdline"
		config  = "/boot/config-6.11.0-19-generic"
	)
	runReaderTests(t, "laptop", preemption, []readerTest{
		{name: "asked of the scheduler", files: map[string]string{debug: "none voluntary full (lazy)\n"},
			verdict: Costs, value: "lazy"},
		{name: "as booted", files: map[string]string{cmdline: "quiet preempt=full -- preempt=none\n"},
			verdict: Good, value: "full, as booted"},
		{name: "not a parameter of the kernel", files: map[string]string{cmdline: "quiet -- preempt=full\n"},
			verdict: Costs, value: "voluntary, as built"},
		{name: "PREEMPT_RT by the version", files: map[string]string{version: "#1 SMP PREEMPT_RT Debian 6.1\n"},
			verdict: Good, value: "PREEMPT_RT"},
		{name: "PREEMPT RT of old", files: map[string]string{version: "#1 SMP PREEMPT RT Debian 4.19\n"},
			verdict: Good, value: "PREEMPT_RT"},
		{name: "no configuration", remove: []string{config},
			verdict: Unknown, why: `"#19~24.04.1-Ubuntu SMP PREEMPT_DYNAMIC Mon Feb 17 11:51:52 UTC 2", does not tell`},
		{name: "a model of the future", files: map[string]string{cmdline: "preempt=sometimes\n"},
			verdict: Unknown, value: "sometimes, as booted", why: "not known"},
		{name: "nothing is marked", files: map[string]string{debug: "none voluntary full\n"},
			verdict: Unknown, why: "no choice is marked"},
	})
}

func TestConfigFromProc(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, err := w.Write([]byte("#\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	runReaderTests(t, "laptop", tickRate, []readerTest{
		{name: "the running kernel's before that in /boot", files: map[string]string{"/proc/config.gz": z.String()},
			verdict: Good, value: "HZ 250"},
		{name: "cut short", files: map[string]string{"/proc/config.gz": z.String()[:z.Len()-9]},
			verdict: Unknown, why: "/proc/config.gz: unexpected EOF"},
		{name: "without the option", files: map[string]string{"/boot/config-6.11.0-19-generic": "#\nCONFIG_X=y\n"},
			verdict: Unknown, why: "no CONFIG_HZ"},
	})
}

func TestTicklessCPUs(t *testing.T) {
	file := cpuDir + "/nohz_full"
	runReaderTests(t, "metal", ticklessCPUs, []readerTest{
		{name: "none", files: map[string]string{file: "(null)\n"}, verdict: Costs, value: "none"},
		{name: "not built in", remove: []string{file},
			verdict: Costs, value: "none; 2-3 were asked for at boot, but the kernel has no such thing"},
		{name: "malformed", files: map[string]string{file: "2-\n"}, verdict: Unknown, why: "no list of CPUs"},
		{name: "neither file", remove: []string{file, "/proc/cmdline"}, verdict: Unknown, why: "/proc/cmdline"},
	})
}

func TestRCUCallbacks(t *testing.T) {
	const config = "/boot/config-6.11.0-19-generic"
	runReaderTests(t, "laptop", callbackFree, []readerTest{
		{name: "asked for", files: map[string]string{"/proc/cmdline": "rcu-nocbs=all\n"},
			verdict: Good, value: "moved off all (rcu_nocbs)"},
		{name: "tickless CPUs include it", files: map[string]string{cpuDir + "/nohz_full": "1-3\n"},
			verdict: Good, value: "moved off 1-3 (nohz_full)"},
		{name: "without a list it only allows it", files: map[string]string{"/proc/cmdline": "rcu_nocbs\n"},
			verdict: Costs, value: "moved off no CPU"},
		{name: "built in", files: map[string]string{config: "#\nCONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n"},
			verdict: Good, value: "moved off all CPUs, as built"},
	})
}

func TestRealTimeShare(t *testing.T) {
	const (
		runtime = "/proc/sys/kernel/sched_rt_runtime_us"
		release = "/proc/sys/kernel/osrelease"
		server  = "/sys/kernel/debug/sched/fair_server/cpu0/runtime"
	)
	runReaderTests(t, "metal", realTimeShare, []readerTest{
		{name: "limit", files: map[string]string{runtime: "950000\n"}, verdict: Costs, value: "950000 us of each 1000000 us"},
		{name: "all of it", files: map[string]string{runtime: "1000000\n"}, verdict: Good, value: "without limit"},
		{name: "fair server", files: map[string]string{server: "50000000\n"},
			verdict: Costs, value: "without limit, but the fair server may take 50ms of each period"},
		{name: "no fair server", files: map[string]string{server: "0\n", release: "6.12.1\n"}, verdict: Good, value: "without limit"},
		{name: "fair server that cannot be seen", files: map[string]string{release: "6.12.1\n"},
			verdict: Unknown, value: "without limit", why: "cannot be seen"},
		{name: "not a number", files: map[string]string{runtime: "much\n"}, verdict: Unknown, why: "not a valid int"},
	})
}

func TestIdleStates(t *testing.T) {
	const limit = "/dev/cpu_dma_latency"
	runReaderTests(t, "metal", idleStates, []readerTest{
		{name: "no limit", files: map[string]string{limit: "\x00\x94\x35\x77"}, verdict: Costs, value: "C6 is the deepest, left in 170µs"},
		{name: "limit that cannot be read", remove: []string{limit},
			verdict: Costs, value: "C6 is the deepest, left in 170µs, unless a limit is held that cannot be read"},
		{name: "limit of zero", files: map[string]string{limit: "\x00\x00\x00\x00"}, verdict: Good, value: "POLL is the deepest, left in 0s, with a limit of 0s"},
		{name: "deep states disabled on one CPU only", remove: []string{limit},
			files:   map[string]string{cpuDir + "/cpu0/cpuidle/state3/disable": "1\n"},
			verdict: Costs, value: "C6 is the deepest, left in 170µs, unless a limit is held that cannot be read"},
		{name: "no driver", remove: []string{cpuDir + "/cpu*/cpuidle"},
			files:   map[string]string{cpuDir + "/cpuidle/current_driver": "none\n"},
			verdict: Unknown, why: "lists no idle states (driver none)"},
		{name: "idle=poll", remove: []string{cpuDir + "/cpu*/cpuidle"}, files: map[string]string{"/proc/cmdline": "idle=poll\n"},
			verdict: Good, value: "none, idle CPUs spin (idle=poll)"},
		{name: "malformed", files: map[string]string{cpuDir + "/cpu1/cpuidle/state1/latency": "-1\n"},
			verdict: Unknown, why: "/cpu1/cpuidle/state1/latency"},
	})
}

func TestIdleGovernor(t *testing.T) {
	const (
		governor = cpuDir + "/cpuidle/current_governor"
		polls    = "/sys/module/haltpoll/parameters/guest_halt_poll_ns"
	)
	runReaderTests(t, "vm", idleGovernor, []readerTest{
		{name: "teo", files: map[string]string{governor: "teo\n"}, verdict: Good, value: "teo, driver haltpoll"},
		{name: "ladder", files: map[string]string{governor: "ladder\n"}, verdict: Costs, value: "ladder, driver haltpoll"},
		{name: "haltpoll that does not", files: map[string]string{polls: "0\n"}, verdict: Costs, value: "haltpoll, driver haltpoll, does not poll"},
		{name: "haltpoll that does not tell", remove: []string{polls}, verdict: Unknown, value: "haltpoll, driver haltpoll", why: "no such file"},
		{name: "file of old", remove: []string{governor}, files: map[string]string{governor + "_ro": "menu\n"}, verdict: Good, value: "menu, driver haltpoll"},
		{name: "governor of the future", files: map[string]string{governor: "new\n"}, verdict: Unknown, value: "new, driver haltpoll", why: "not known"},
		{name: "no driver", files: map[string]string{cpuDir + "/cpuidle/current_driver": "none\n"}, verdict: Unknown, why: "no idle driver"},
	})
}

func TestFrequencyGovernorsThatDiffer(t *testing.T) {
	runReaderTests(t, "metal", freqGovernor, []readerTest{{
		name:    "each with its CPUs",
		files:   map[string]string{cpuDir + "/cpu1/cpufreq/scaling_governor": "schedutil\n"},
		verdict: Costs,
		value:   "performance on CPUs 0,2-3 (driver intel_pstate), schedutil on CPUs 1 (driver intel_pstate)",
	}, {
		name:    "CPUs offline do not count",
		files:   map[string]string{cpuDir + "/cpu1/cpufreq/scaling_governor": "schedutil\n", cpuDir + "/offline": "1\n"},
		verdict: Good,
		value:   "performance on CPUs 0,2-3 (driver intel_pstate)",
	}})
}

func TestHypervisor(t *testing.T) {
	runReaderTests(t, "metal", hypervisor, []readerTest{
		{name: "Xen", files: map[string]string{"/sys/hypervisor/type": "xen\n"}, verdict: Costs, value: "xen"},
		{name: "processor that does not tell", files: map[string]string{"/proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd\n"},
			verdict: Unknown, value: "Dell Inc. PowerEdge R650xs", why: "has no flags"},
		{name: "firmware that does not tell", remove: []string{"/sys/class/dmi"}, verdict: Good, value: "none"},
	})
}

func TestSwapping(t *testing.T) {
	runReaderTests(t, "laptop", swapping, []readerTest{
		{name: "hardly", files: map[string]string{"/proc/sys/vm/swappiness": "1\n"}, verdict: Good, value: "1, 1280 of 8191 MiB of swap in use"},
		{name: "masked file", files: map[string]string{"/proc/swaps": ""}, verdict: Unknown, value: "60", why: "/proc/swaps holds no"},
	})
}

func TestHugePagesThatAreNotKnown(t *testing.T) {
	runReaderTests(t, "laptop", hugePages, []readerTest{
		{name: "mode of the future", files: map[string]string{"/sys/kernel/mm/transparent_hugepage/enabled": "always [new]\n"},
			verdict: Unknown, value: "new", why: "not known"},
	})
}

func TestCPUQuota(t *testing.T) {
	const (
		slice   = "/sys/fs/cgroup/system.slice"
		service = slice + "/loop.service"
	)
	runReaderTests(t, "metal", cpuQuota, []readerTest{
		{name: "own", files: map[string]string{service + "/cpu.max": "50000 100000\n"},
			verdict: Costs, value: "0.5 CPUs (50ms of each 100ms), GOMAXPROCS 4"},
		{name: "the ancestor's is tighter", files: map[string]string{service + "/cpu.max": "300000 100000\n", slice + "/cpu.max": "20000 10000\n"},
			verdict: Costs, value: "2 CPUs (20ms of each 10ms), GOMAXPROCS 4"},
		{name: "as much as GOMAXPROCS", files: map[string]string{service + "/cpu.max": "400000 100000\n"},
			verdict: Costs, value: "4 CPUs (400ms of each 100ms), GOMAXPROCS 4"},
		{name: "beyond GOMAXPROCS", files: map[string]string{service + "/cpu.max": "400001 100000\n"},
			verdict: Good, value: "4 CPUs (400.001ms of each 100ms), GOMAXPROCS 4"},
		{name: "malformed", files: map[string]string{service + "/cpu.max": "400000\n"}, verdict: Unknown, why: "not a quota and a period"},
		{name: "period of zero", files: map[string]string{service + "/cpu.max": "400000 0\n"}, verdict: Unknown, why: "period of zero"},
		{name: "outside of the namespace", files: map[string]string{"/proc/2201/cgroup": "0::/../other\n"}, verdict: Unknown, why: "not mounted here"},
		{name: "not there", remove: []string{slice}, verdict: Unknown, why: "no such file"},
		{name: "no cgroup", files: map[string]string{"/proc/2201/cgroup": ""}, verdict: Unknown, why: "names no cgroup"},
	})
	// Version 1, mounted at the cgroup itself, as in a container.
	runReaderTests(t, "vm", cpuQuota, []readerTest{{
		name: "version 1 in a container",
		files: map[string]string{
			"/proc/811/cgroup":     "4:cpu,cpuacct:/docker/abc\n",
			"/proc/811/mountinfo":  "32 31 0:29 /docker/abc /cg ro - cgroup cgroup rw,cpu,cpuacct\n",
			"/cg/cpu.cfs_quota_us": "25000\n", "/cg/cpu.cfs_period_us": "50000\n",
		},
		verdict: Costs, value: "0.5 CPUs (25ms of each 50ms), GOMAXPROCS 2",
	}})
}

func TestThrottling(t *testing.T) {
	const service = "/sys/fs/cgroup/system.slice/loop.service"
	runReaderTests(t, "metal", throttling, []readerTest{
		{name: "own", files: map[string]string{service + "/cpu.stat": "nr_periods 100\nnr_throttled 7\nthrottled_usec 350000\n"},
			verdict: Costs, value: "in 7 of 100 periods, for 350ms in all"},
		{name: "the ancestor", files: map[string]string{"/sys/fs/cgroup/system.slice/cpu.stat": "nr_periods 10\nnr_throttled 9\nthrottled_usec 1000\n"},
			verdict: Costs, value: "in 9 of 10 periods, for 1ms in all"},
		{name: "malformed", files: map[string]string{service + "/cpu.stat": "nr_throttled many\n"}, verdict: Unknown, why: "loop.service/cpu.stat"},
		{name: "quota that is not counted", remove: []string{"/sys/fs/cgroup/*/cpu.stat", "/sys/fs/cgroup/*/*/cpu.stat"},
			files: map[string]string{service + "/cpu.max": "1000 100000\n"}, verdict: Unknown, why: "no cpu.stat that counts"},
	})
	runReaderTests(t, "vm", throttling, []readerTest{
		{name: "version 1", files: map[string]string{"/sys/fs/cgroup/cpu,cpuacct/agents/one/cpu.stat": "nr_periods 3\nnr_throttled 2\nthrottled_time 7000000\n"},
			verdict: Costs, value: "in 2 of 3 periods, for 7ms in all"},
	})
}

func TestLimitsAndCapabilities(t *testing.T) {
	h := openHost(t, "laptop")
	status, err := h.read("/proc/self/status")
	require.NoError(t, err)
	with := func(mask string) map[string]string {
		return map[string]string{"/proc/5120/status": strings.Replace(status, "CapEff:\t0000000000000000", "CapEff:\t"+mask, 1)}
	}
	runReaderTests(t, "laptop", capabilities, []readerTest{
		{name: "CAP_SYS_NICE", files: with("0000000000800000"), verdict: Costs, value: "CAP_SYS_NICE, not CAP_IPC_LOCK"},
		{name: "CAP_IPC_LOCK", files: with("0000000000004000"), verdict: Costs, value: "CAP_IPC_LOCK, not CAP_SYS_NICE"},
		{name: "both", files: with("0000000000804000"), verdict: Good, value: "CAP_SYS_NICE and CAP_IPC_LOCK"},
		{name: "not told", files: map[string]string{"/proc/5120/status": "Name:\tapp\n"}, verdict: Unknown, why: "CapEff"},
	})
	runReaderTests(t, "laptop", priorityLimit, []readerTest{
		{name: "lifted", files: with("0000000000800000"), verdict: Good, value: "0, lifted by CAP_SYS_NICE"},
		{name: "capabilities cannot be read", remove: []string{"/proc/5120/status"}, verdict: Unknown, value: "0", why: "no such file"},
		{name: "not told", files: map[string]string{"/proc/5120/limits": "Limit\n"}, verdict: Unknown, why: "Max realtime priority"},
	})
	runReaderTests(t, "laptop", memoryLimit, []readerTest{
		{name: "lifted", files: with("0000000000004000"), verdict: Good, value: "8192 KiB, lifted by CAP_IPC_LOCK"},
	})
	limits, err := h.read("/proc/self/limits")
	require.NoError(t, err)
	runReaderTests(t, "laptop", fileLimit, []readerTest{
		{name: "few", files: map[string]string{"/proc/5120/limits": strings.ReplaceAll(limits, "1024  ", "32    ")}, verdict: Costs, value: "32"},
		{name: "unlimited", files: map[string]string{"/proc/5120/limits": strings.ReplaceAll(limits, "1024     ", "unlimited")}, verdict: Good, value: "unlimited"},
	})
}

func TestRanges(t *testing.T) {
	for want, cpus := range map[string][]int{"": nil, "0": {0}, "0-1": {0, 1}, "0,2-4,9": {0, 2, 3, 4, 9}} {
		assert.Equal(t, want, ranges(cpus))
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("100000 100000")
	f.Add("nr_periods 3\nnr_throttled 2\nthrottled_usec 7")
	f.Add("now at 400000000000 nsecs\njiffies: 4294992296\n")
	f.Add("always [madvise] never")
	f.Fuzz(func(t *testing.T, text string) {
		if q, err := parseQuota(text); err == nil {
			assert.Positive(t, q.period)
			assert.GreaterOrEqual(t, q.runtime, time.Duration(0))
		}
		if throttled, _, err := parseThrottles(text); err == nil {
			assert.GreaterOrEqual(t, throttled.stopped, time.Duration(0))
		}
		if hz, err := observedHZ(text); err == nil {
			assert.Positive(t, hz)
		}
		if word, err := chosen(text, "[]"); err == nil {
			assert.Contains(t, text, "["+word+"]")
		}
		configValue(text, "CONFIG_HZ")
	})
}
