package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the reports on the recorded hosts anew")

// A recorded host is the files in the directory of its name in testdata, the
// process that inspects it, and what it answers besides. Each file is there
// as the kernel writes it, cut down to what is looked at; what only root may
// read is missing where the process is not root.
type recorded struct {
	name       string
	pid        string
	maxProcs   int
	slack      time.Duration
	resolution time.Duration
	clockCost  time.Duration
}

var hosts = []recorded{
	{"metal", "2201", 4, time.Nanosecond, time.Nanosecond, 18 * time.Nanosecond},        // tuned
	{"laptop", "5120", 2, 50 * time.Microsecond, time.Nanosecond, 21 * time.Nanosecond}, // as it came, not root
	{"container", "1", 8, 50 * time.Microsecond, time.Nanosecond, 26 * time.Nanosecond}, // with a quota, not root
	{"vm", "811", 2, 50 * time.Microsecond, time.Nanosecond, 38 * time.Nanosecond},      // cgroup version 1, root
	{"missing", "1", 1, 50 * time.Microsecond, time.Nanosecond, 0 * time.Nanosecond},    // has no files at all
}

// open returns the recorded host, in a directory where its files may be
// changed.
func (r recorded) open(t testing.TB) host {
	root := t.TempDir()
	if r.name != "missing" {
		require.NoError(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", r.name))))
		require.NoError(t, os.Symlink(r.pid, filepath.Join(root, "proc/self")))
	}
	return host{root: root, calls: calls{
		slack:      func() (time.Duration, error) { return r.slack, nil },
		resolution: func() (time.Duration, error) { return r.resolution, nil },
		clockCost:  func() time.Duration { return r.clockCost },
		maxProcs:   r.maxProcs,
		arch:       "amd64",
		goVersion:  "go1.26.0",
	}}
}

func openHost(t testing.TB, name string) host {
	for _, r := range hosts {
		if r.name == name {
			return r.open(t)
		}
	}
	require.Fail(t, "no such host", name)
	return host{}
}

// refuseCalls makes the host refuse everything that is not a file.
func (h host) refuseCalls() host {
	h.slack = func() (time.Duration, error) { return 0, os.NewSyscallError("prctl", syscall.ENOSYS) }
	h.resolution = func() (time.Duration, error) { return 0, os.NewSyscallError("clock_getres", syscall.ENOSYS) }
	h.clockCost = func() time.Duration { return 0 }
	return h
}

func TestReportsOnRecordedHosts(t *testing.T) {
	for _, r := range hosts[:4] {
		t.Run(r.name, func(t *testing.T) {
			report := r.open(t).inspect()
			var asJSON bytes.Buffer
			e := json.NewEncoder(&asJSON)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			require.NoError(t, e.Encode(report))
			compare(t, r.name+".txt", report.String())
			compare(t, r.name+".json", asJSON.String())
		})
	}
}

// compare compares got with what is saved, or saves it with -update.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// The verdicts stand here once more, and the values that they depend on, so
// that saving wrong reports does not make them right.
func TestVerdictsOnRecordedHosts(t *testing.T) {
	found := inspectAll(t)
	for _, c := range []struct {
		subject                      string
		metal, laptop, container, vm Verdict
	}{
		{timerSlack, Good, Costs, Costs, Costs},
		{timers, Good, Good, Good, Good},
		{tickRate, Good, Good, Unknown, Good},
		{clockSource, Good, Good, Good, Good},
		{preemption, Good, Costs, Costs, Good},
		{isolatedCPUs, Good, Costs, Costs, Costs},
		{ticklessCPUs, Good, Costs, Costs, Costs},
		{callbackFree, Good, Costs, Unknown, Unknown},
		{nmiWatchdog, Good, Costs, Unknown, Good},
		{realTimeShare, Good, Costs, Costs, Costs},
		{idleStates, Good, Costs, Unknown, Good},
		{idleGovernor, Good, Good, Unknown, Good},
		{freqGovernor, Good, Costs, Unknown, Unknown},
		{multithreading, Good, Costs, Costs, Good},
		{hypervisor, Good, Good, Costs, Costs},
		{stolenTime, Good, Good, Good, Costs},
		{hugePages, Good, Costs, Good, Costs},
		{swapping, Good, Costs, Good, Good},
		{numaBalancing, Good, Good, Unknown, Costs},
		{cpuQuota, Good, Good, Costs, Good},
		{throttling, Good, Good, Costs, Good},
		{priorityLimit, Good, Costs, Costs, Good},
		{memoryLimit, Good, Costs, Costs, Good},
		{fileLimit, Good, Good, Good, Good},
		{capabilities, Good, Costs, Costs, Good},
	} {
		for name, want := range map[string]Verdict{"metal": c.metal, "laptop": c.laptop, "container": c.container, "vm": c.vm} {
			f := found[name][c.subject]
			assert.Equal(t, want, f.Verdict, "%s of %s: %s %s", c.subject, name, f.Value, f.Why)
		}
	}
}

func TestValuesOnRecordedHosts(t *testing.T) {
	found := inspectAll(t)
	for _, c := range []struct{ host, subject, value string }{
		{"metal", timerSlack, "1ns at most, on 4 threads"},
		{"metal", tickRate, "HZ 1000"},
		{"metal", preemption, "PREEMPT_RT"},
		{"metal", isolatedCPUs, "2-3"},
		{"metal", ticklessCPUs, "2-3"},
		{"metal", callbackFree, "moved off 2-3 (rcu_nocbs) and 2-3 (nohz_full)"},
		{"metal", idleStates, "C1 is the deepest, left in 1µs, with a limit of 2µs"},
		{"metal", freqGovernor, "performance on CPUs 0-3 (driver intel_pstate)"},
		{"metal", hypervisor, "none, Dell Inc. PowerEdge R650xs"},
		{"metal", priorityLimit, "99"},
		{"metal", memoryLimit, "unlimited"},
		{"metal", capabilities, "neither, but the limits allow as much"},
		{"metal", cpuQuota, "none"},
		{"laptop", timerSlack, "50µs on 1 of 3 threads"},
		{"laptop", preemption, "voluntary, as built"},
		{"laptop", idleStates, "C10 is the deepest, left in 890µs, unless a limit is held that cannot be read"},
		{"laptop", swapping, "60, 1280 of 8191 MiB of swap in use"},
		{"laptop", multithreading, "active, control on"},
		{"laptop", throttling, "never, there is no quota"},
		{"container", timerSlack, "50µs on 1 of 2 threads"},
		{"container", preemption, "voluntary or none, as built"},
		{"container", cpuQuota, "1.5 CPUs (150ms of each 100ms), GOMAXPROCS 8"},
		{"container", throttling, "in 3877 of 41210 periods, for 4m50.412s in all"},
		{"container", memoryLimit, "64 KiB"},
		{"container", capabilities, "neither"},
		{"vm", tickRate, "HZ 1000"},
		{"vm", clockSource, "kvm-clock, 38ns a reading"},
		{"vm", preemption, "full"},
		{"vm", idleGovernor, "haltpoll, driver haltpoll, polls up to 200µs"},
		{"vm", hypervisor, "yes, QEMU Standard PC (Q35 + ICH9, 2009)"},
		{"vm", stolenTime, "73.11 s since boot, 0.48 % of all CPU time"},
		{"vm", cpuQuota, "4 CPUs (400ms of each 100ms), GOMAXPROCS 2"},
		{"vm", throttling, "never"},
		{"vm", priorityLimit, "0, lifted by CAP_SYS_NICE"},
	} {
		assert.Equal(t, c.value, found[c.host][c.subject].Value, "%s of %s", c.subject, c.host)
	}
}

// inspectAll returns the findings on every recorded host, by host and name.
func inspectAll(t *testing.T) map[string]map[string]Finding {
	found := make(map[string]map[string]Finding)
	for _, r := range hosts[:4] {
		found[r.name] = make(map[string]Finding)
		for _, f := range r.open(t).inspect().Findings {
			found[r.name][f.Name] = f
		}
	}
	return found
}

// find returns the finding on the subject of the given name.
func (h host) find(name string) Finding {
	for _, s := range subjects {
		if s.name == name {
			return h.examine(s)
		}
	}
	return Finding{}
}

func TestEverySubjectHasAReader(t *testing.T) {
	assert.Len(t, readers, len(subjects))
	for _, s := range subjects {
		assert.Contains(t, readers, s.name)
	}
}

func TestHostWithoutFilesIsUnknown(t *testing.T) {
	r := openHost(t, "missing").refuseCalls().inspect()
	for _, f := range r.Findings {
		assert.Equal(t, Unknown, f.Verdict, f.Name)
		assert.NotEmpty(t, f.Why, f.Name)
	}
	assert.Equal(t, Host{System: "linux", Architecture: "amd64", GOMAXPROCS: 1, Go: "go1.26.0"}, r.Host)
}

// A file that is a link to itself can be read by nobody, root or not.
func TestUnreadableFilesAreUnknown(t *testing.T) {
	for _, r := range hosts[:4] {
		t.Run(r.name, func(t *testing.T) {
			h := r.open(t).refuseCalls()
			h.eachFile(t, func(file string) {
				require.NoError(t, os.Remove(file))
				require.NoError(t, os.Symlink(filepath.Base(file), file))
			})
			for _, f := range h.inspect().Findings {
				assert.Equal(t, Unknown, f.Verdict, "%s: %s", f.Name, f.Value)
				assert.NotEmpty(t, f.Why, f.Name)
			}
		})
	}
}

func TestReasonsNameFilesAsOnTheHost(t *testing.T) {
	h := openHost(t, "container")
	f := h.find(nmiWatchdog)
	assert.Equal(t, "open /proc/sys/kernel/nmi_watchdog: no such file or directory", f.Why)
	for _, f := range openHost(t, "missing").refuseCalls().inspect().Findings {
		assert.NotContains(t, f.Why, os.TempDir(), f.Name)
	}
}

// A malformed file never makes a panic or an incomplete report, and never is
// taken for a good value.
func TestMalformedFiles(t *testing.T) {
	for _, r := range hosts[:4] {
		h := r.open(t).refuseCalls()
		for _, text := range []string{"", "\n", "\x00\xff\xfe", "garbage", "-", ":", "a: b: c\n1 2", "[", "99999999999999999999999", "0-99999999999"} {
			h.eachFile(t, func(file string) {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			})
			for _, f := range h.inspect().Findings {
				assert.NotEqual(t, Good, f.Verdict, "%s of %s with %q: %s", f.Name, r.name, text, f.Value)
				assertFilled(t, f)
			}
		}
	}
}

func assertFilled(t *testing.T, f Finding) {
	t.Helper()
	assert.True(t, f.Verdict == Unknown && f.Why != "" || f.Verdict != Unknown && f.Value != "", "%+v", f)
	assert.True(t, f.What != "" && f.Cost != "" && f.Change != "" && len(f.Sources) > 0, "%+v", f)
}

// eachFile calls do for every file of the host.
func (h host) eachFile(t testing.TB, do func(file string)) {
	require.NoError(t, filepath.WalkDir(h.root, func(file string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			do(file)
		}
		return err
	}))
}

func FuzzInspect(f *testing.F) {
	f.Add([]byte("0-3"))
	f.Add([]byte("cpu  1 2 3\nintr 4\n"))
	f.Add([]byte("           CPU0\nLOC: 1 2\nUid:\t1\t2\t3\t4\t5\n"))
	f.Add([]byte("5:cpu:/../x\n0::/\n1 2 0:1 / / rw - cgroup2 cgroup2 rw\n"))
	h := openHost(f, "metal").refuseCalls()
	var files []string
	h.eachFile(f, func(file string) { files = append(files, file) })
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, file := range files {
			require.NoError(t, os.WriteFile(file, content, 0o644))
		}
		for _, found := range h.inspect().Findings {
			assertFilled(t, found)
		}
	})
}
