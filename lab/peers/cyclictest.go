package peers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/precisewait/wait/lab/measure"
)

// cyclictest runs cyclictest(8) of the rt-tests anew for each turn. It waits at
// a fixed rate, counts in whole microseconds and does not tell its CPU. It is
// kept from suppressing power management, which would speed up the others.
type cyclictest struct{}

func (cyclictest) Describe() (string, measure.Group) { return "cyclictest", measure.Programs }

func (c cyclictest) Open(_ context.Context, request time.Duration) (measure.Turns, error) {
	path, err := exec.LookPath("cyclictest")
	if err != nil {
		return nil, errors.New("cyclictest is not installed")
	}
	if request < time.Microsecond {
		return nil, errors.New("cyclictest counts in microseconds")
	}
	return cyclictestTurns{path, request}, nil
}

type cyclictestTurns struct {
	path    string
	request time.Duration
}

func (c cyclictestTurns) Take(ctx context.Context, late []time.Duration) ([]time.Duration, time.Duration, error) {
	run := exec.CommandContext(ctx, c.path, "--default-system", "-q", "-t1", "-h20000",
		"-i"+strconv.FormatInt(c.request.Microseconds(), 10), "-l"+strconv.Itoa(len(late)))
	run.WaitDelay = time.Second
	alone(run)
	out, err := run.CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %s", err, firstLine(string(out)))
	}
	taken := parseHistogram(string(out), late)
	if len(taken) == 0 {
		return nil, 0, errors.New("cyclictest printed no histogram")
	}
	return taken, -1, nil
}

func (cyclictestTurns) Close() error { return nil }

// parseHistogram reads lines such as "000063 000412", that many were so many us
// late, into late, as far as it goes. Of those beyond the histogram only
// the number and the maximum are told; each counts with that.
func parseHistogram(out string, late []time.Duration) []time.Duration {
	n, most := 0, 0
	add := func(us, times int) {
		for ; times > 0 && n < len(late); times-- {
			late[n] = time.Duration(us) * time.Microsecond
			n++
		}
	}
	for line := range strings.Lines(out) {
		var us, times int
		if _, err := fmt.Sscanf(line, "%d %d", &us, &times); err == nil {
			add(us, times)
		} else if _, err := fmt.Sscanf(line, "# Max Latencies: %d", &us); err == nil {
			most = us
		} else if _, err := fmt.Sscanf(line, "# Histogram Overflows: %d", &times); err == nil {
			add(most, times)
		}
	}
	return late[:n]
}
