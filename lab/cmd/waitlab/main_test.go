package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/lab/measure"
	"github.com/precisewait/wait/lab/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asWaitlab is the environment variable that has the tests be the program.
const asWaitlab = "AS_WAITLAB"

// As the command that the load of other processes runs, the tests burn.
func TestMain(m *testing.M) {
	if os.Getenv(asWaitlab) != "" {
		main()
	}
	if len(os.Args) == 2 && os.Args[1] == burnName {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// command runs a command line and returns what it wrote.
func command(t *testing.T, ctx context.Context, args ...string) (status int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	status = run(ctx, args, &o, &e)
	return status, o.String(), e.String()
}

// recordings are what the commands measured once, with --json.
var recordings = []struct {
	name   string
	series []string // in its picture, a name for each
}{
	{"floor", []string{"p50", "p90", "p99"}},
	{"table", []string{
		"Hybrid", "Hybrid", "Sleep", "Sleep", "clock_nanosleep:1ns", "clock_nanosleep:1ns", "select", "select",
		"time.Sleep", "time.Sleep", "time.Ticker", "time.Ticker",
	}},
	{"peers", []string{
		"C clock_nanosleep", "C clock_nanosleep", "C clock_nanosleep:1ns", "C clock_nanosleep:1ns",
		"C++ sleep_for", "C++ sleep_for", "Hybrid", "Hybrid", "Java parkNanos", "Java parkNanos", "Sleep", "Sleep",
		"cyclictest", "cyclictest", "time.Sleep", "time.Sleep",
	}},
	{"pareto", []string{"go", "kernel", "margin", "thread", "wait"}},
	{"jitter", []string{"Sleep", "Sleep"}},
	{"scale", []string{"Sleep", "Sleep", "clock_nanosleep:1ns", "clock_nanosleep:1ns", "time.Sleep", "time.Sleep"}},
	{"phase", []string{"back to back", "scrambled"}},
}

func TestShapeOfOutput(t *testing.T) {
	for _, r := range recordings {
		recording := filepath.Join("testdata", r.name+".json")
		for ending, form := range map[string][]string{".txt": nil, ".csv": {"--csv"}, ".bench": {"--bench"}, ".json": {"--json"}} {
			t.Run(r.name+ending, func(t *testing.T) {
				status, out, errOut := command(t, t.Context(), append([]string{"show", recording}, form...)...)
				require.Zero(t, status, errOut)
				assert.Empty(t, errOut)
				golden := filepath.Join("testdata", r.name+ending)
				if *update {
					require.NoError(t, os.WriteFile(golden, []byte(out), 0o644))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				assert.Equal(t, string(want), out)
			})
		}
	}
}

// texts returns what is written in an SVG, which must be well-formed.
func texts(t *testing.T, name string) (all []string) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	d := xml.NewDecoder(f)
	inText := false
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				all = append(all, string(token))
			}
		}
	}
}

func TestPicturesHoldTheirSeries(t *testing.T) {
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			picture := filepath.Join(t.TempDir(), "a.svg")
			status, _, errOut := command(t, t.Context(), "show", filepath.Join("testdata", r.name+".json"), "--plot", picture)
			require.Zero(t, status, errOut)
			found := map[string]int{}
			for _, text := range texts(t, picture) {
				found[text]++
			}
			want := map[string]int{}
			for _, name := range r.series {
				want[name]++
			}
			for name, n := range want {
				assert.Equal(t, n, found[name], name)
			}
			info, err := os.Stat(picture)
			require.NoError(t, err)
			assert.Less(t, info.Size(), int64(100_000))

			picture = strings.TrimSuffix(picture, ".svg") + ".png"
			status, _, errOut = command(t, t.Context(), "show", filepath.Join("testdata", r.name+".json"), "--plot", picture)
			require.Zero(t, status, errOut)
			b, err := os.ReadFile(picture)
			require.NoError(t, err)
			_, err = png.Decode(bytes.NewReader(b))
			assert.NoError(t, err)
		})
	}
}

// benchstat reads by the same package.
func TestBenchstatReadsTheRounds(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "table.bench"))
	require.NoError(t, err)
	defer f.Close()
	lines := map[string]int{}
	for reader := benchfmt.NewReader(f, f.Name()); reader.Scan(); {
		switch r := reader.Result().(type) {
		case *benchfmt.Result:
			lines[r.Name.String()]++
			_, ok := r.Value("p99-late-sec") // it has seconds of nanoseconds
			assert.True(t, ok, r.Name)
			assert.Equal(t, "linux", r.GetConfig("goos"))
		case *benchfmt.SyntaxError:
			t.Error(r)
		}
	}
	assert.Equal(t, 3, lines["Table/method=Sleep/request=1ms-2"])
	assert.Len(t, lines, 12)
}

func TestBadInputIsRefusedBeforeMeasuring(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("floor.json"), []byte(`{"classes":[]}`), 0o600))
	require.NoError(t, os.WriteFile(in("broken.json"), []byte(`{`), 0o600))
	for _, c := range []struct {
		line   string
		status int
		says   string
	}{
		{"table --plot " + in("missing/a.svg"), 1, "cannot be written"},
		{"floor --plot " + dir + "/.svg/", 2, ".svg or .png"},
		{"jitter --plot " + in("a.jpg"), 2, ".svg or .png"},
		{"table --methods usleep", 2, `unknown method "usleep"`},
		{"jitter --method go", 2, "is a group"},
		{"phase --method kernel", 2, "is a group"},
		{"scale --methods sleepy", 2, `unknown method "sleepy"`},
		{"table --requests 0s", 2, "--requests is 0s; it must be above zero"},
		{"table --requests -1ms", 2, "--requests is -1ms"},
		{"table --requests 1h", 2, "at most 10s"},
		{"table --requests soon", 2, "invalid argument"},
		{"table --rounds 0", 2, "--rounds is 0; it must be from 1"},
		{"peers --rounds -3", 2, "--rounds is -3"},
		{"pareto --margins 0s", 2, "--margins is 0s"},
		{"jitter --period 0s", 2, "--period is 0s"},
		{"jitter --period 10ns", 2, "at least 1µs"},
		{"jitter --for -1s", 2, "--for is -1s"},
		{"jitter --load heavy", 2, `unknown load "heavy"`},
		{"scale --sleepers 0", 2, "--sleepers is 0"},
		{"scale --sleepers 1000000000", 2, "it must be from 1 to 1000000"},
		{"scale --sleepers 100000 --rate 1", 2, "would wait longer than 10s"},
		{"scale --sleepers 1000000 --request 1ms --rate 1000000000 --for 10s", 2, "would take 10000000000 waits"},
		{"scale --rate 0", 2, "--rate is 0"},
		{"scale --request -1s", 2, "--request is -1s"},
		{"scale --for 0s", 2, "--for is 0s"},
		{"phase --tick 0s", 2, "--tick is 0s"},
		{"phase --request -5ms", 2, "--request is -5ms"},
		{"phase --waits 0", 2, "--waits is 0"},
		{"table --json --csv", 2, "[csv json]"},
		{"table --floor " + in("none.json"), 1, "no such file"},
		{"table --floor " + in("floor.json"), 1, "field Classes is empty"},
		{"table --floor " + in("broken.json"), 1, "unexpected end of JSON"},
		{"table --plot " + in("b.svg") + " --floor " + in("none.json"), 1, "no such file"},
		{"floor --save " + in("missing/floor.json"), 1, "cannot be written"},
		{"floor --save " + dir, 1, "is no file that could be replaced"},
		{"show " + in("none.json"), 1, "no such file"},
		{"show " + in("floor.json"), 1, `no command ""`},
		{"show", 2, "accepts 1 arg"},
		{"table now", 2, "unknown command"},
		{"measure", 2, `unknown command "measure"`},
		{"floor --tick", 2, "unknown flag"},
	} {
		start := time.Now()
		status, out, errOut := command(t, t.Context(), strings.Fields(c.line)...)
		assert.Equal(t, c.status, status, c.line)
		assert.Contains(t, errOut, c.says, c.line)
		assert.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
		assert.Empty(t, out, c.line)
		assert.Less(t, time.Since(start), 5*time.Second, c.line)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 2, "no file may be left behind")
}

// What was measured is told even if something failed at the end, as a load
// that was killed.
func TestFailureTellsWhatWasMeasured(t *testing.T) {
	var out bytes.Buffer
	l := &lab{out: &out, errOut: io.Discard}
	err := l.measured(func([]string) error { return nil }, func(*cobra.Command) (measure.Result, error) {
		return measure.Result{Command: "jitter", Rows: []measure.Row{{Method: "Sleep", Waits: 7}}}, errors.New("the load was killed")
	})(nil, nil)
	assert.ErrorContains(t, err, "the load was killed")
	assert.ErrorAs(t, err, new(failure))
	assert.Contains(t, out.String(), "Sleep")
}

// What a load in this process uses cannot be told from what the waits do.
func TestCPUBesideALoadInTheProcessIsUnknown(t *testing.T) {
	for load, known := range map[string]bool{"none": true, "cooperative": false, "hog": false, "gc": false} {
		status, out, errOut := command(t, t.Context(), "jitter", "--for", "100ms", "--load", load, "--json")
		require.Zero(t, status, errOut)
		var r measure.Result
		require.NoError(t, json.Unmarshal([]byte(out), &r))
		assert.Equal(t, known, r.Rows[0].CPU != nil, load)
	}
}

func TestParetoIsOfTheP99(t *testing.T) {
	panels := paretoPanels(measure.Result{Rows: []measure.Row{{
		Method: "Sleep", Group: measure.Verbs, Request: time.Millisecond, Waits: 1, CPU: new(2 * time.Microsecond),
		Lateness: measure.Lateness{P50: 1000, P99: 9000},
	}}})
	require.Len(t, panels, 1)
	assert.Equal(t, report.XY{X: 2, Y: 9}, panels[0].Series[0].Points[0])
}

func TestRecordingsThatNobodyMeasured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.json")
	for _, row := range []string{
		`{}`, `{"request_ns":-1}`, `{"request_ns":1,"waits":-1}`, `{"request_ns":1,"sleepers":-1}`,
		`{"request_ns":1,"waits":1,"buckets":[{"late_ns":9000000000000000000,"waits":1}]}`,
		`{"request_ns":1,"waits":1,"buckets":[{"late_ns":-1,"waits":1}]}`,
		`{"request_ns":1,"waits":1,"buckets":[{"late_ns":1,"waits":0}]}`,
		`{"request_ns":1,"waits":1,"buckets":[{"late_ns":1,"waits":9000000000000000000}]}`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(`{"command":"jitter","rows":[`+row+`]}`), 0o600))
		status, out, errOut := command(t, t.Context(), "show", file)
		assert.Equal(t, 1, status, row)
		assert.Empty(t, out, row)
		assert.Contains(t, errOut, file, row)
	}
}

// A measurement that fails leaves no picture, and an old one as it was.
func TestPictureIsWholeOrNotThere(t *testing.T) {
	dir := t.TempDir()
	picture := filepath.Join(dir, "a.svg")
	require.NoError(t, os.WriteFile(picture, []byte("old"), 0o600))
	status, _, _ := command(t, t.Context(), "show", filepath.Join(dir, "none.json"), "--plot", picture)
	assert.Equal(t, 1, status)
	b, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Equal(t, "old", string(b))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

// Each command, told to run for minutes, ends soon after it is interrupted,
// and tells what it had measured.
func TestInterruptedCommandsTellWhatTheyMeasured(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, line := range []string{
		"table --methods Sleep,time.Sleep --rounds 10000",
		"pareto --methods Sleep --rounds 10000",
		"jitter --for 1h --load process",
		"jitter --for 1h --load cooperative --method Thread.Sleep",
		"scale --methods Sleep --sleepers 1,10 --request 10ms --for 10s",
		"phase --tick 1ms --request 1ms --waits 1000000",
		"peers --methods Sleep --rounds 10000 --requests 1ms",
	} {
		t.Run(line, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if strings.HasPrefix(line, "peers") {
				t.Setenv("PATH", t.TempDir()) // builds nothing
			}
			start := time.Now()
			status, out, errOut := command(t, ctx, append(strings.Fields(line), "--json")...)
			assert.Zero(t, status, errOut)
			assert.Less(t, time.Since(start), 30*time.Second)
			var r measure.Result
			require.NoError(t, json.Unmarshal([]byte(out), &r))
			assert.True(t, r.Interrupted)
			require.NotEmpty(t, r.Rows)
			assert.Positive(t, r.Rows[0].Waits)
		})
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	assert.Empty(t, left, "what was built must be gone")
}

func TestInterruptedBeforeAnythingWasMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	for _, line := range []string{"floor --save " + filepath.Join(dir, "floor.json"), "table", "pareto", "peers", "jitter", "scale", "phase"} {
		args := append(strings.Fields(line), "--plot", filepath.Join(dir, "a.svg"))
		status, out, errOut := command(t, ctx, args...)
		assert.Zero(t, status, errOut)
		assert.Contains(t, out, "interrupted", line)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestFloorIsSavedAndInstalledAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "floor.json")
	status, first, errOut := command(t, t.Context(), "floor", "--save", file)
	require.Zero(t, status, errOut)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var saved wait.Floor
	require.NoError(t, json.Unmarshal(b, &saved))
	assert.NotEmpty(t, saved.Classes)
	status, again, errOut := command(t, t.Context(), "floor", "--floor", file)
	require.Zero(t, status, errOut)
	assert.Equal(t, first, again)
	assert.Equal(t, saved.ClockCost, wait.CurrentFloor().ClockCost)
}

func TestNoProgressWithoutATerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	require.NoError(t, err)
	defer file.Close()
	for _, line := range []string{"table --methods Sleep --requests 1ms --rounds 1", "jitter --for 300ms", "phase --waits 2"} {
		require.Zero(t, run(t.Context(), strings.Fields(line), io.Discard, file))
	}
	info, err := file.Stat()
	require.NoError(t, err)
	assert.Zero(t, info.Size())
}

// A step of unknown number, as that of phase, is written once.
func TestProgressIsWrittenByStepsOnly(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "errors"))
	require.NoError(t, err)
	defer file.Close()
	step, done := showProgress(file, -1)
	step("waiting")
	before, err := file.Stat()
	require.NoError(t, err)
	assert.Positive(t, before.Size())
	time.Sleep(350 * time.Millisecond)
	after, err := file.Stat()
	require.NoError(t, err)
	assert.Equal(t, before.Size(), after.Size())
	done()
}

// A reader that goes early takes away neither the picture nor what tidies up.
func TestReaderThatIsGone(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, "show", "testdata/table.json", "--plot", filepath.Join(dir, "a.svg"))
	c.Env = append(os.Environ(), asWaitlab+"=1")
	c.Stdout = w
	var failed *exec.ExitError
	require.ErrorAs(t, c.Run(), &failed)
	assert.Equal(t, 1, failed.ExitCode())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "a.svg", left[0].Name())
}

func TestHelpNamesEachCommand(t *testing.T) {
	status, out, errOut := command(t, t.Context(), "--help")
	assert.Zero(t, status)
	assert.Empty(t, errOut)
	for name := range views {
		assert.Contains(t, out, "\n  "+name+" ")
	}
	assert.NotContains(t, out, "\n  "+burnName)
}
