package wait

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
)

// A Pacer has a loop run at a fixed rate. Its ticks lie on a grid that is
// fixed when it is made, one period from the next, so that neither the lateness
// of a tick nor the work of the loop adds up: there is no drift.
//
// All methods may be called from any goroutine, with one restriction: a Pacer
// with [PaceOn] waits on the goroutine of its Thread only. If several goroutines
// Wait, each tick goes to one of them. A Pacer made in a testing/synctest
// bubble goes by its fake time and is for use there only, one made outside for use
// outside; else its methods panic.
type Pacer struct {
	way    Method
	thread *Thread
	missed MissedPolicy
	fake   bool // made in a synctest bubble

	mu      sync.Mutex
	period  int64
	next    int64         // when the next tick is due
	index   int64         // of the tick before
	changed chan struct{} // closed when next is no longer what it was
}

// A Tick is what [Pacer.Wait] has waited for.
type Tick struct {
	Index     int64         // 1 for the first one; with Skip, those that were missed count
	Scheduled time.Time     // when it was due
	Lateness  time.Duration // what passed from then until Wait returned, never negative
	Missed    int64         // ticks that were due since the tick before and are left out
}

// A MissedPolicy says what happens to ticks that are due and were not waited
// for, because the loop took longer than a period or the process was stopped.
type MissedPolicy int

const (
	// Skip leaves out all but the latest that is due, and keeps the phase: the
	// ticks stay on the grid.
	Skip MissedPolicy = iota

	// Burst leaves out none: Wait returns at once until the loop has caught up,
	// however many that takes.
	Burst

	// Delay moves the grid: after a tick that is late by a period or more, the
	// next is due one period after that was returned. One that is late by less
	// moves nothing. Missed is the number of whole periods by which the grid
	// moves.
	Delay
)

// A PacerOption changes what a Pacer does. Of two of a kind the later one
// holds.
type PacerOption struct{ set func(*Pacer) }

// PaceBy has the Pacer wait by the given method. Without it, that is
// [MethodSleep]; a loop to which each microsecond matters takes [MethodHybrid].
// [MethodSpin] spins for at most the last 10 ms before a tick. A method that does not exist panics.
func PaceBy(m Method) PacerOption {
	if m < MethodSpin || m > MethodSleep {
		panic(fmt.Sprintf("wait: pace by %v", m))
	}
	return PacerOption{func(p *Pacer) { p.way = m }}
}

// PaceOn has the Pacer wait on a thread, by the method that [PaceBy] says. A nil
// thread panics.
func PaceOn(t *Thread) PacerOption {
	mustHave(t != nil, "Thread")
	return PacerOption{func(p *Pacer) { p.thread = t }}
}

// OnMissed has the Pacer follow another policy than [Skip]. A policy that does
// not exist panics.
func OnMissed(policy MissedPolicy) PacerOption {
	if policy < Skip || policy > Delay {
		panic(fmt.Sprintf("wait: missed ticks by MissedPolicy(%d)", int(policy)))
	}
	return PacerOption{func(p *Pacer) { p.missed = policy }}
}

// NewPacer returns a Pacer whose first tick is due one period from now, as that
// of [time.NewTicker] is, and the others one period after each other. It needs
// no Stop: it runs nothing. A period of zero or less panics.
func NewPacer(period time.Duration, opts ...PacerOption) *Pacer {
	mustBePositive(period, "NewPacer")
	p := &Pacer{way: MethodSleep, period: int64(period), changed: make(chan struct{})}
	for _, o := range opts {
		if o.set != nil {
			o.set(p)
		}
	}
	p.next = clock.After(clock.Now(), period)
	p.fake = clock.Fake()
	return p
}

func mustBePositive(period time.Duration, who string) {
	if period <= 0 {
		panic(fmt.Sprintf("wait: non-positive period %v for %s", period, who))
	}
}

// Reset begins anew: the first tick is due one period from now, and nothing was
// missed. A Wait under way waits for that tick instead of its own. If its own
// was less than 10 ms away, it looks only when that is due; on a Thread with
// [OwnProcessor], it looks every 10 ms.
func (p *Pacer) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(clock.Fake())
	p.index = 0
	p.move(clock.After(clock.Now(), time.Duration(p.period)))
}

// SetPeriod changes the period of the ticks after the next one. That stays
// where it is, unless it is further away than the new period; then it is due
// one new period from now, which a Wait under way notices as for
// [Pacer.Reset]. Of ticks that are overdue, the number is counted by the new
// period. The index goes on. A period of zero or less panics.
func (p *Pacer) SetPeriod(period time.Duration) {
	mustBePositive(period, "SetPeriod")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(clock.Fake())
	p.period = int64(period)
	if soonest := clock.After(clock.Now(), period); soonest < p.next {
		p.move(soonest)
	}
}

// move sets the time of the next tick, and tells those who wait for it.
func (p *Pacer) move(next int64) {
	p.next = next
	close(p.changed)
	p.changed = make(chan struct{})
}

// Wait waits for the next tick and returns it, at once if one is overdue. If
// ctx is done, before or meanwhile, it returns ctx.Err() and leaves the tick to
// the next Wait. On a Thread, a tick that is less than 10 ms away is returned
// first, and with [OwnProcessor] it looks at ctx every 10 ms. It allocates
// nothing. A nil ctx panics.
func (p *Pacer) Wait(ctx context.Context) (Tick, error) {
	mustHave(ctx != nil, "Context")
	if p.thread != nil {
		p.thread.check()
	}
	if err := ctx.Err(); err != nil {
		return Tick{}, err
	}
	start, at, fake := clock.Both()
	for now := start; ; {
		next, changed := p.upcoming(fake)
		if now < next {
			var end park.End
			now, end = p.until(fake, now, next, changed, ctx.Done())
			switch end {
			case park.Done:
				return Tick{}, ctx.Err()
			case park.Closed:
				continue
			}
		}
		if tick, left, ok := p.take(now, next); ok {
			tick.Scheduled = at.Add(time.Duration(left - start))
			tick.Lateness = time.Duration(clock.Now() - left)
			return tick, nil
		}
	}
}

// Ticks returns the ticks as [Pacer.Wait] does, for a loop that ends when ctx
// is done:
//
//	for tick := range pacer.Ticks(ctx) {
//		...
//	}
//
// A nil ctx panics.
func (p *Pacer) Ticks(ctx context.Context) iter.Seq[Tick] {
	mustHave(ctx != nil, "Context")
	return func(yield func(Tick) bool) {
		for {
			tick, err := p.Wait(ctx)
			if err != nil || !yield(tick) {
				return
			}
		}
	}
}

// upcoming returns when the next tick is due, and what is closed if that
// changes.
func (p *Pacer) upcoming(fake bool) (next int64, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.check(fake)
	return p.next, p.changed
}

// check panics if p was not made by NewPacer, or not in this kind of time: its
// ticks would be decades away. The lock is held.
func (p *Pacer) check(fake bool) {
	switch {
	case p.changed == nil:
		panic("wait: Pacer not made by NewPacer")
	case p.fake != fake:
		panic("wait: Pacer used across the border of a testing/synctest bubble")
	}
}

// take returns the tick that was due at next, or by the policy a later one, and
// its due time. It is false if the tick is no longer to be had.
func (p *Pacer) take(now, next int64) (tick Tick, due int64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != next {
		return Tick{}, 0, false
	}
	due = next
	base := next // of the tick after
	if late := now - next; late >= p.period && p.missed != Burst {
		tick.Missed = late / p.period
		if p.missed == Skip {
			due += tick.Missed * p.period
			p.index += tick.Missed
			base = due
		} else {
			base = now
		}
	}
	p.index++
	tick.Index = p.index
	p.next = clock.After(base, time.Duration(p.period))
	return tick, due, true
}

const (
	// notice is how far away a tick must be for a Wait to notice at once that
	// it has changed. What is closer is waited for by the method, none of which
	// can be interrupted by more than a context.
	notice = int64(10 * time.Millisecond)

	// settleIn is what is left for the method after that: more than the
	// lateness of a runtime timer.
	settleIn = int64(5 * time.Millisecond)
)

// until waits until next. The end is park.Due, park.Done if done was closed
// before, or park.Closed if changed was.
func (p *Pacer) until(fake bool, now, next int64, changed, done <-chan struct{}) (last int64, end park.End) {
	if fake {
		_, end = recvFake(now, next, changed, done)
		return clock.Now(), end
	}
	if next-now > notice {
		if now, end = p.approach(now, next-settleIn, changed, done); end != park.Due || now >= next {
			return now, end
		}
	}
	last, reached := p.by(now, next, done)
	if !reached {
		return last, park.Done
	}
	for last < next {
		last = clock.Now()
	}
	return last, park.Due
}

// approach waits until about the deadline. The end is as for until.
func (p *Pacer) approach(now, deadline int64, changed, done <-chan struct{}) (last int64, end park.End) {
	if p.thread == nil || !p.thread.sleeper.keepsP {
		_, end = park.RecvFor(time.Duration(deadline-now), changed, done)
		return clock.Now(), end
	}
	// To park would give away the P that the thread keeps. Where the others are
	// busy, it would come back too late.
	for now < deadline {
		now = p.thread.sleeper.sleep(now, min(now+notice, deadline), 1)
		switch {
		case isDone(changed):
			return now, park.Closed
		case isDone(done):
			return now, park.Done
		}
	}
	return now, park.Due
}

// by waits until the deadline, or until shortly before it, by the method.
func (p *Pacer) by(now, deadline int64, done <-chan struct{}) (last int64, reached bool) {
	switch {
	case p.way == MethodSpin:
		counts.spin.Add(1)
		return spinUntil(now, deadline, done)
	case p.way == MethodHybrid && p.thread != nil:
		return p.thread.hybrid(now, deadline), true
	case p.way == MethodHybrid:
		return hybridUntil(now, deadline, done)
	case p.thread != nil:
		return p.thread.sleep(now, deadline), true
	case done == nil:
		return sleep(now, deadline), true
	default:
		counts.sleep.Add(1)
		return park.UntilDone(now, deadline, done)
	}
}
