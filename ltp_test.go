package wait_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait"
)

// TestLTPTimers holds Sleep against the thresholds of the Linux Test Project's
// timer tests: of n sleeps the longest max(1, n/20) are left out, and the sum
// of the others must not exceed what was asked for by more than the formula
// allows. On a virtual machine, whose processors may be taken away, and beside
// other load the sum is only told; that no sleep is early holds everywhere.
func TestLTPTimers(t *testing.T) {
	const resolution, slack = 1, 50 // in us, as everything here
	bare := os.Getenv("WAIT_TEST_BARE_METAL") != "" && !hypervisor()
	for _, c := range []struct{ us, n int }{
		{1000, 500}, {2000, 500}, {5000, 300}, {10000, 100}, {25000, 50}, {100000, 10}, {1000000, 2},
	} {
		if testing.Short() {
			c.n = max(2, min(c.n/10, 200_000/c.us))
		}
		request := time.Duration(c.us) * time.Microsecond
		var took []time.Duration
		for range c.n {
			start := time.Now()
			wait.Sleep(request)
			took = append(took, time.Since(start))
			assert.GreaterOrEqual(t, took[len(took)-1], request)
		}
		slices.Sort(took)
		kept := took[:c.n-max(1, c.n/20)]
		var sum float64
		for _, d := range kept {
			sum += float64(d) / 1e3
		}
		k := float64(len(kept))
		limit := k*float64(c.us) + (400+2*resolution+float64(max(min(100_000, c.us/1000), slack)))*k + 3000/k
		t.Logf("%6d us x %3d: %8.1f us over on average, %6.1f allowed", c.us, c.n, sum/k-float64(c.us), limit/k-float64(c.us))
		if bare {
			assert.LessOrEqual(t, sum, limit)
		}
	}
}

func hypervisor() bool {
	info, err := os.ReadFile("/proc/cpuinfo")
	return err != nil || strings.Contains(string(info), " hypervisor")
}
