package peers

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/lab/measure"
)

func TestAnswers(t *testing.T) {
	late := make([]time.Duration, 3)
	taken, cpu, err := parseAnswer("40000 100 -5 7\n", late)
	require.NoError(t, err)
	assert.Equal(t, 40*time.Microsecond, cpu)
	assert.Equal(t, []time.Duration{100, -5, 7}, taken)
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, line := range []string{"", "1 2 3", "1 2 3 4 5", "1 2 x 4", "1 2 3 4.5", "1 2 3 99999999999999999999"} {
		_, _, err := parseAnswer(line, make([]time.Duration, 3))
		assert.Error(t, err, line)
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add("1 2 3", 2)
	f.Fuzz(func(t *testing.T, line string, n int) {
		if n < 0 || n > 1000 {
			return
		}
		taken, _, err := parseAnswer(line, make([]time.Duration, n))
		if err == nil && len(taken) != n {
			t.Errorf("%d waits of %d", len(taken), n)
		}
	})
}

const histogram = `WARN: not setting cpu_dma_latency from cyclictest
# /dev/cpu_dma_latency set to 0us
# Histogram
000000 000000
000063 000002
000064 000001
# Total: 000000003
# Min Latencies: 00063
# Avg Latencies: 00069
# Max Latencies: 24089
# Histogram Overflows: 00002
# Histogram Overflow at cycle number:
# Thread 0: 00003 00004
`

func TestHistogramOfCyclictest(t *testing.T) {
	us := time.Microsecond
	assert.Equal(t, []time.Duration{63 * us, 63 * us, 64 * us, 24089 * us, 24089 * us},
		parseHistogram(histogram, make([]time.Duration, 10)))
	assert.Len(t, parseHistogram(histogram, make([]time.Duration, 2)), 2, "no more than was asked for")
	assert.Empty(t, parseHistogram("cyclictest: not found", make([]time.Duration, 2)))
}

func noStep(string) {}

// Every peer either answers, or says why it cannot.
func TestEachPeerAnswersOrIsAbsent(t *testing.T) {
	p, err := Build(t.Context(), noStep)
	require.NoError(t, err)
	dir := p.dir
	require.Len(t, p.Subjects(), len(programs)+1)
	for _, s := range p.Subjects() {
		name, group := s.Describe()
		assert.Equal(t, measure.Programs, group)
		turns, err := s.Open(t.Context(), 2*time.Millisecond)
		if err != nil {
			assert.NotEmpty(t, err.Error(), name)
			_, known := exec.LookPath("cc")
			assert.False(t, runtime.GOOS == "linux" && known == nil && name[:2] == "C ", "%s: %v", name, err)
			continue
		}
		for range 2 {
			taken, cpu, err := turns.Take(t.Context(), make([]time.Duration, 5))
			require.NoError(t, err, name)
			assert.Len(t, taken, 5, name)
			for _, late := range taken {
				assert.GreaterOrEqual(t, late, time.Duration(0), name)
				assert.Less(t, late, time.Minute, name)
			}
			assert.Less(t, cpu, 10*time.Second, name)
		}
		require.NoError(t, turns.Close(), name)
	}
	require.NoError(t, p.Close())
	assert.NoDirExists(t, dir)
}

func TestWithoutCompilersAllAreAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	p, err := Build(t.Context(), noStep)
	require.NoError(t, err)
	for _, s := range p.Subjects() {
		_, err := s.Open(t.Context(), time.Millisecond)
		assert.ErrorContains(t, err, "not installed")
	}
	assert.NoError(t, p.Close())
}

func TestCompilerThatFails(t *testing.T) {
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "rustc"), []byte("#!/bin/sh\necho linker not found >&2\nexit 1\n"), 0o700))
	t.Setenv("PATH", bin)
	p, err := Build(t.Context(), noStep)
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	for _, s := range p.Subjects() {
		if name, _ := s.Describe(); name == "Rust thread::sleep" {
			_, err := s.Open(t.Context(), time.Millisecond)
			assert.ErrorContains(t, err, "rustc: ")
		}
	}
}

// What a compiler has started and put into temporary files goes with it.
func TestInterruptedBuildLeavesNothingBehind(t *testing.T) {
	temporary, bin, notes := t.TempDir(), t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho >$TMPDIR/cc.s\n(sleep 2; echo >" + notes + "/ended) & echo >" + notes + "/begun; wait\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "cc"), []byte(script), 0o700))
	t.Setenv("TMPDIR", temporary)
	t.Setenv("PATH", bin+":/bin:/usr/bin")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(notes, "begun")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	start := time.Now()
	p, err := Build(ctx, noStep)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
	time.Sleep(time.Until(start.Add(3 * time.Second)))
	assert.NoFileExists(t, filepath.Join(notes, "ended"))
}

func shell(script string) *peer {
	return &peer{name: "shell", command: []string{"/bin/sh", "-c", script}}
}

func TestProgramThatEndsSaysWhy(t *testing.T) {
	turns, err := shell("echo out of memory >&2; exit 1").Open(t.Context(), time.Millisecond)
	require.NoError(t, err)
	_, _, err = turns.Take(t.Context(), make([]time.Duration, 1))
	assert.ErrorContains(t, err, "the program ended: out of memory")
	assert.NoError(t, turns.Close())
}

func TestProgramThatHangsEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	turns, err := shell("exec sleep 60").Open(ctx, time.Millisecond)
	require.NoError(t, err)
	start := time.Now()
	_, _, err = turns.Take(ctx, make([]time.Duration, 1))
	assert.Error(t, err)
	assert.NoError(t, turns.Close())
	assert.Less(t, time.Since(start), 30*time.Second)
}

func TestProgramThatIgnoresTheEndOfItsInputIsKilled(t *testing.T) {
	turns, err := shell("exec sleep 60").Open(t.Context(), time.Millisecond)
	require.NoError(t, err)
	start := time.Now()
	assert.NoError(t, turns.Close())
	assert.Less(t, time.Since(start), 30*time.Second)
}
