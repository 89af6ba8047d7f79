package pause_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait/internal/pause"
)

func TestCoreReturns(t *testing.T) {
	for range 1000 {
		pause.Core()
	}
}

func TestCoreDoesNotAllocate(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, pause.Core))
}

// BenchmarkCore shows what a pause takes here. It differs tenfold between
// processors.
func BenchmarkCore(b *testing.B) {
	for b.Loop() {
		pause.Core()
	}
}
