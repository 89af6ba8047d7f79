package report

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/lab/measure"
)

var rows = []measure.Row{
	{
		Method: "Sleep", Request: time.Millisecond, Waits: 200, CPU: new(38 * time.Microsecond), CPUs: new(0.25),
		Lateness: measure.Lateness{P50: 4500, P99: 42 * time.Microsecond},
	},
	{Method: "timerfd", Request: time.Millisecond, Absent: "function not implemented"},
	{Method: "a, b", Request: 2 * time.Second, Waits: 1},
}

var columns = []Column{Method, Request, Waits, P50, Ratio, CPU, CPUs}

func TestText(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Text(&out, columns, append(rows, rows[1])))
	assert.Equal(t, `
  method  requested  waits    p50  ratio  CPU/wait     CPUs
   Sleep        1ms    200  4.5us  1.004    38.0us    0.250
    a, b         2s      1  0.0us  1.000   unknown  unknown
absent: timerfd: function not implemented
`, "\n"+out.String())
}

// A program that ends on the way has figures, and a reason.
func TestWhatWasMeasuredBeforeAFailureIsTold(t *testing.T) {
	failed := []measure.Row{{Method: "C", Request: time.Millisecond, Waits: 20, Absent: "the program ended"}}
	var out strings.Builder
	require.NoError(t, Text(&out, []Column{Method, Waits}, failed))
	assert.Equal(t, "  method  waits\n       C     20\nabsent: C: the program ended\n", out.String())
	out.Reset()
	require.NoError(t, CSV(&out, []Column{Method, Waits}, failed))
	assert.Equal(t, "method,waits,absent\nC,20,the program ended\n", out.String())
	out.Reset()
	require.NoError(t, Benchmarks(&out, measure.Result{Command: "peers", Rows: failed}))
	assert.Contains(t, out.String(), "method=C/")
}

func TestNoRowsAreAList(t *testing.T) {
	var out strings.Builder
	require.NoError(t, JSON(&out, measure.Result{}))
	assert.Contains(t, out.String(), `"rows": []`)
}

func TestTextHasAGapAfterSeveralOfOneRequest(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Text(&out, []Column{Request}, []measure.Row{{Request: 1}, {Request: 1}, {Request: 2}}))
	assert.Equal(t, "  requested\n        1ns\n        1ns\n\n        2ns\n", out.String())
}

func TestCSV(t *testing.T) {
	var out strings.Builder
	require.NoError(t, CSV(&out, columns, rows))
	assert.Equal(t, `method,request_ns,waits,late_p50_ns,ratio,cpu_per_wait_ns,cpus_in_use,absent
Sleep,1000000,200,4500,1.0045,38000,0.25,
timerfd,1000000,,,,,,function not implemented
"a, b",2000000000,1,0,1,,,
`, out.String())
}

func TestBenchmarksHaveALineForEachRound(t *testing.T) {
	r := measure.Result{
		Command: "table",
		Host:    measure.Host{System: "linux", Architecture: "amd64", GOMAXPROCS: 2},
		Rows: []measure.Row{
			{Method: "C++ sleep_for", Request: time.Millisecond, Waits: 40, Rounds: []measure.Round{{P50: 1, P99: 2}, {P50: 3, P99: 4, CPU: new(time.Duration(5))}}},
			{Method: "Sleep", Request: time.Second, Sleepers: 10, Waits: 7, Lateness: measure.Lateness{P50: 8, P99: 9}},
			{Method: "timerfd", Absent: "no"},
		},
	}
	var out strings.Builder
	require.NoError(t, Benchmarks(&out, r))
	assert.Equal(t, `goos: linux
goarch: amd64
pkg: github.com/precisewait/wait/lab
BenchmarkTable/method=C++_sleep_for/request=1ms-2	20	1 p50-late-ns	2 p99-late-ns
BenchmarkTable/method=C++_sleep_for/request=1ms-2	20	3 p50-late-ns	4 p99-late-ns	5 cpu-ns/wait
BenchmarkTable/method=Sleep/request=1s/sleepers=10-2	7	8 p50-late-ns	9 p99-late-ns
`, out.String())
}

func TestHistogram(t *testing.T) {
	var out strings.Builder
	require.NoError(t, Histogram(&out, []measure.Bucket{{Late: 300, Waits: 1}, {Late: 400, Waits: 99}, {Late: 1600, Waits: 50}}))
	assert.Equal(t, `
    <= 0.4us       100 ##################################################
    <= 0.8us         0
    <= 1.6us        50 #########################
`, "\n"+out.String())
	out.Reset()
	require.NoError(t, Histogram(&out, nil))
	assert.Empty(t, out.String())
}

func TestStairs(t *testing.T) {
	assert.Equal(t, []XY{{1, 25}, {5, 100}}, Stairs([]float64{1, 5}, []int64{1, 3}))
	assert.Empty(t, Stairs(nil, nil))
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReportThatCannotBeWritten(t *testing.T) {
	r := measure.Result{Command: "table", Rows: rows}
	for name, err := range map[string]error{
		"text":      Text(fullDisk{}, columns, rows),
		"csv":       CSV(fullDisk{}, columns, rows),
		"json":      JSON(fullDisk{}, r),
		"bench":     Benchmarks(fullDisk{}, r),
		"histogram": Histogram(fullDisk{}, []measure.Bucket{{Late: 1, Waits: 1}}),
		"picture":   Draw(fullDisk{}, "a.svg", []Panel{{Series: []Series{{Points: []XY{{1, 1}}}}}}),
	} {
		assert.ErrorContains(t, err, "no space left", name)
	}
}

func TestPicturesAreSVGOrPNG(t *testing.T) {
	assert.NoError(t, Pictured("a/b.svg"))
	assert.NoError(t, Pictured("b.png"))
	for _, name := range []string{"", "svg", "a.jpg", "a.svg/"} {
		assert.ErrorContains(t, Pictured(name), ".svg or .png", name)
	}
}

// Zero and less are drawn at the lower end of a logarithmic axis, which has at
// least one power of ten.
func TestAnyPointsCanBeDrawn(t *testing.T) {
	for _, points := range [][]XY{{{0, 0}}, {{-1, 5}}, {{1, 1}}, {{10, 10}}, {{1e-9, 1e12}}, {{3, 3}, {3, 3}}} {
		for _, logarithmic := range []bool{false, true} {
			var out strings.Builder
			require.NoError(t, Draw(&out, "a.svg", []Panel{{
				LogX: logarithmic, LogY: logarithmic,
				Series: []Series{{Name: "line", Points: points}, {Name: "dots", Points: points, Dots: true},
					{Name: "labels", Points: points, Labels: make([]string, len(points))}, {Name: "none"}},
			}}))
			assert.Contains(t, out.String(), "dots")
			assert.NotContains(t, out.String(), "none<")
			assert.NotContains(t, out.String(), "NaN")
		}
	}
}

func TestLabelsDoNotCoverEachOther(t *testing.T) {
	a := Series{Name: "a", Points: []XY{{10, 10}, {10.1, 10.1}, {10.2, 10}}, Labels: []string{"first", "second", "third"}}
	var out strings.Builder
	require.NoError(t, Draw(&out, "a.svg", []Panel{{LogX: true, LogY: true, Series: []Series{a}}}))
	places := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		if place, ok := strings.CutPrefix(line, `<text x="`); ok {
			places[place] = true
		}
	}
	for _, label := range a.Labels {
		assert.Contains(t, out.String(), ">"+label+"</text>")
	}
	assert.GreaterOrEqual(t, len(places), len(a.Labels))
}
