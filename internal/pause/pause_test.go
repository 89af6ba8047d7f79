package pause_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait/internal/pause"
)

func TestCoreReturns(t *testing.T) {
	for range 1000 {
		pause.Core()
	}
}

func TestCallersEndsAtTheGoroutine(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		pause.Callers()
	}()
	<-done
	go pause.Callers()
	runtime.Gosched()
}

func TestCallersOnAStackThatHasMoved(t *testing.T) {
	done := make(chan int)
	go func() { done <- deep(2000) }()
	assert.Equal(t, 2000, <-done)
}

// deep fetches at every depth while its stack grows and shrinks.
func deep(n int) int {
	pause.Callers()
	if n == 0 {
		runtime.GC()
		return 0
	}
	var room [128]byte
	room[n%len(room)] = 1
	sum := deep(n-1) + int(room[n%len(room)])
	pause.Callers()
	return sum
}

func TestNothingAllocates(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, pause.Core))
	assert.Zero(t, testing.AllocsPerRun(100, pause.Callers))
}

// BenchmarkCore shows what a pause takes here. It differs tenfold between
// processors.
func BenchmarkCore(b *testing.B) {
	for b.Loop() {
		pause.Core()
	}
}

func BenchmarkCallers(b *testing.B) {
	for b.Loop() {
		pause.Callers()
	}
}
