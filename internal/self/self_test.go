package self_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait/internal/self"
)

func TestGoroutineStaysTheSame(t *testing.T) {
	want := self.Goroutine()
	assert.NotZero(t, want)
	for range 100 {
		runtime.Gosched()
		assert.Equal(t, want, self.Goroutine())
	}
	assert.Equal(t, want, deep(1000), "after the stack has moved")
}

func deep(n int) uintptr {
	if n == 0 {
		runtime.GC()
		return self.Goroutine()
	}
	return deep(n - 1)
}

func TestGoroutinesDiffer(t *testing.T) {
	seen := map[uintptr]bool{}
	numbers, hold := make(chan uintptr), make(chan struct{})
	for range 100 {
		go func() {
			numbers <- self.Goroutine()
			<-hold
		}()
	}
	for range 100 {
		seen[<-numbers] = true
	}
	close(hold)
	assert.Len(t, seen, 100)
	assert.False(t, seen[self.Goroutine()])
}

func TestGoroutineDoesNotAllocate(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, func() { self.Goroutine() }))
}

func BenchmarkGoroutine(b *testing.B) {
	for b.Loop() {
		self.Goroutine()
	}
}
