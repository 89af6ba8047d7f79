package wait

import (
	"context"
	"time"

	"github.com/precisewait/wait/internal/park"
	"github.com/precisewait/wait/internal/pause"
)

// Hybrid sleeps until shortly before the end of d, then spins the rest. It is
// late by about one reading of the clock in all but a few percent of waits,
// and costs the CPU of a [Sleep] and of a spin for about the floor. How long
// it spins follows the floor of this host, by the length of the wait.
//
// At most half of the processors (at least one) spin at once for all calls
// together; a goroutine that finds no room sleeps all the way instead, and
// while more than 16 goroutines are asleep in this package, so do all for half
// a second. A d below the floor is spun from the start, but for one in 64,
// which sleeps for half of it to see whether the floor is still what it was. A
// d of zero or less returns at once.
func Hybrid(d time.Duration) { within(d, hybrid) }

// HybridUntil is [Hybrid] until t. A t in the past returns at once.
func HybridUntil(t time.Time) { until(t, hybrid) }

// HybridContext is [Hybrid], but returns ctx.Err() as soon as ctx is done. It
// returns nil if it waited for d, and ctx.Err() at once, whatever d is, if ctx
// was done before. A nil ctx panics.
func HybridContext(ctx context.Context, d time.Duration) error {
	return withinContext(ctx, d, hybridUntil)
}

func hybrid(now, deadline int64) int64 {
	last, _ := hybridUntil(now, deadline, nil)
	return last
}

func hybridUntil(now, deadline int64, done <-chan struct{}) (last int64, reached bool) {
	counts.hybrid.Add(1)
	if crowded(now) {
		counts.overBudget.Add(1)
		return park.UntilDone(now, deadline, done)
	}
	class := classes.of(deadline - now)
	if rest, probe := class.plan(deadline - now); rest > 0 {
		wake := now + rest
		var overslept bool
		if now, reached, overslept = park.Ahead(now, wake, deadline, done); !reached {
			return now, false
		}
		switch {
		case overslept:
		case probe:
			class.learnProbe(now - wake)
		default:
			class.learn(now - wake)
		}
	}
	if now >= deadline {
		return now, true
	}
	if !takeSpin(now) {
		return park.UntilDone(now, deadline, done)
	}
	pause.Callers()
	last, reached = spinUntil(now, deadline, done)
	giveSpin(now, last)
	return last, reached
}
