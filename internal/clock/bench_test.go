package clock_test

import (
	"testing"
	"time"

	"github.com/precisewait/wait/internal/clock"
)

// What a reading of the clock takes is the least that a spin can be late by.
func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		clock.Now()
	}
}

func BenchmarkAtWithoutMonotonicReading(b *testing.B) {
	t := time.Now().Add(time.Hour).Round(0)
	for b.Loop() {
		clock.At(t)
	}
}
