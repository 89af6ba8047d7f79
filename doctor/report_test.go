package doctor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/doctor"
)

// names are the findings of every report. They are part of its JSON, by which
// programs find them again.
var names = []string{
	"timer slack", "timers", "tick rate", "clock source", "preemption",
	"isolated CPUs", "tickless CPUs", "RCU callbacks", "NMI watchdog",
	"real-time share", "idle states", "idle governor", "frequency governor",
	"SMT", "hypervisor", "steal time", "transparent huge pages", "swappiness",
	"NUMA balancing", "CPU quota", "throttling", "real-time priority limit",
	"locked memory limit", "open files limit", "capabilities",
}

// assertComplete checks what holds for every report, whatever was read.
func assertComplete(t *testing.T, r doctor.Report) {
	t.Helper()
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.Name)
		assert.Contains(t, []doctor.Verdict{doctor.Good, doctor.Costs, doctor.Unknown}, f.Verdict, f.Name)
		assert.NotEmpty(t, f.What, f.Name)
		assert.NotEmpty(t, f.Cost, f.Name)
		assert.NotEmpty(t, f.Change, f.Name)
		assert.NotEmpty(t, f.Sources, f.Name)
		if f.Verdict == doctor.Unknown {
			assert.NotEmpty(t, f.Why, f.Name)
		} else {
			assert.NotEmpty(t, f.Value, f.Name)
			assert.Empty(t, f.Why, f.Name)
		}
	}
	assert.Equal(t, names, found)
}

func TestInspectFindsEverythingOnce(t *testing.T) {
	r := doctor.Inspect()
	assertComplete(t, r)
	assert.NotEmpty(t, r.Host.System)
	assert.NotEmpty(t, r.Host.Architecture)
	assert.NotEmpty(t, r.Host.Go)
	assert.Positive(t, r.Host.GOMAXPROCS)
}

func TestReportIsTheSameAfterJSON(t *testing.T) {
	r := doctor.Inspect()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var again doctor.Report
	require.NoError(t, json.Unmarshal(b, &again))
	assert.Equal(t, r, again)
}

func TestTextSaysWhatMatters(t *testing.T) {
	r := doctor.Report{
		Host: doctor.Host{System: "linux", Architecture: "arm64", Kernel: "6.1.0", CPUs: "0-3", GOMAXPROCS: 4, Go: "go1.26.0"},
		Findings: []doctor.Finding{
			{Name: "one", Verdict: doctor.Good, Value: "1", What: "w1", Cost: "c1", Change: "h1", Sources: []string{"/a"}},
			{Name: "two", Verdict: doctor.Unknown, Why: "no file", What: "w2", Cost: "c2", Change: "h2", Sources: []string{"/b"}},
			{Name: "three", Verdict: doctor.Costs, Value: "3", What: strings.Repeat("long ", 20), Cost: "c3", Change: "h3", Sources: []string{"/c", "/d"}},
		},
	}
	assert.Equal(t, `linux/arm64 6.1.0, CPUs 0-3, GOMAXPROCS 4, go1.26.0
1 cost a wait something, 1 unknown, 1 good

COST A WAIT SOMETHING

three: 3
  what   long long long long long long long long long long long long long long
         long long long long long long
  cost   c3
  change h3
  read   /c, /d

UNKNOWN

two
  why    no file
  what   w2
  cost   c2
  change h2
  read   /b

GOOD

one: 1
  read   /a
`, r.String())
}

func TestTextLeavesOutEmptyParts(t *testing.T) {
	r := doctor.Report{Host: doctor.Host{System: "js", Architecture: "wasm", Go: "go1.26.0"}}
	assert.Equal(t, "js/wasm, go1.26.0\n0 cost a wait something, 0 unknown, 0 good\n", r.String())
}
