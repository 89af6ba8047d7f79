package park

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/pause"
)

const (
	slotBits = 14      // a slot is 16.384 us
	slots    = 1 << 15 // the ring is 537 ms, more than horizon
	slotLen  = int64(1) << slotBits

	// after is how long after the end of its slot the bell rings: the runtime
	// timers of the slot's sleepers were set a little later than their
	// deadlines were computed. One that was not due yet would stay asleep for
	// the rest of epoll_wait's millisecond.
	after = int64(2000)

	// spacing is how many slots lie between two rings of a dense crowd. Were it
	// 1, the program would be woken for each sleeper by itself, which takes
	// longer than a slot, and all would be later for it.
	spacing = int64(4)

	// sparse is how far ahead a ring must be to get a lead: further than the
	// next one of a dense crowd.
	sparse = (spacing + 1) << slotBits

	// linger is how long the keeper stays when nobody needs it.
	linger = int64(100 * time.Millisecond)

	noSlot = math.MaxInt64
)

// The bell serves any number of sleepers. They sleep on runtime timers; the
// bell only ends the program's epoll_wait(2) just after those timers are due.
//
// Time is cut into slots, and a ring of bits has one for each slot of the
// next half second. A sleeper marks the slot in which its deadline lies, and
// sets the kernel timer only if that slot comes before the one it is set to.
// At each ring the keeper sets it to the next marked slot or, where rings
// follow each other closely, to one a little later. Nobody is woken by hand, and
// a mark is never taken back: that of a cancelled sleeper costs one spare ring,
// or none if nobody else sleeps.
//
// Like an alarm's, the kernel timer is set to expire earlier, by the lead. If
// the keeper runs before the bell is due, it spins for the rest: were it to
// park, the runtime would find no timer due and wait for a millisecond. But
// where rings follow each other closely, the program is awake, and a keeper
// that spins keeps a P from running the timers of the slot before.
type theBell struct {
	timer
	opening  sync.Mutex
	opened   atomic.Bool
	marks    [slots / 64]atomic.Uint64
	armed    atomic.Int64 // the slot for whose end the timer is set, or noSlot
	expiry   atomic.Int64 // when the timer expires, a lead before that or just then
	lead     atomic.Int64
	earliest atomic.Int64       // the next ring is for this slot or a later one
	keeper   atomic.Bool        // whether a keeper runs
	sleepers atomic.Int64       // that have marked a slot and sleep
	run      func()             // b.keep and b.ring, made once so that
	look     func(uintptr) bool // a new keeper allocates nothing
	past     int64              // the keeper's: marks up to this slot are cleared
	last     int64              // the keeper's: the slot with which it goes if nobody marks
}

var bell = newBell()

func newBell() *theBell {
	b := new(theBell)
	b.armed.Store(noSlot)
	b.run, b.look = b.keep, b.ring
	return b
}

// slotOf returns the number of the slot at whose end the deadline is past.
func slotOf(deadline int64) int64 { return (deadline + slotLen - 1) >> slotBits }

// dueAt returns when the bell is to have rung for the slot.
func dueAt(slot int64) int64 { return slot<<slotBits + after }

func (b *theBell) ready() bool {
	if b.opened.Load() {
		return true
	}
	if !b.opening.TryLock() {
		return false // the first few sleepers need not wait for each other
	}
	defer b.opening.Unlock()
	if b.opened.Load() {
		return true
	}
	ok := b.open()
	b.opened.Store(ok)
	return ok
}

func (b *theBell) word(slot int64) *atomic.Uint64 {
	return &b.marks[slot%slots/64]
}

// mark has the bell ring at the end of the slot.
func (b *theBell) mark(now, slot int64) {
	if w, bit := b.word(slot), uint64(1)<<(slot%64); w.Load()&bit == 0 {
		w.Or(bit)
	}
	b.arm(max(slot, b.earliest.Load()))
	if !b.keeper.Load() && b.keeper.CompareAndSwap(false, true) {
		b.past, b.last = now>>slotBits, noSlot
		go b.run()
	}
}

// arm sets the timer to the slot unless it is set to an earlier one.
//
// Two sleepers may claim one after the other and reach the kernel in the
// other order. Whoever has set the timer looks again whether it set it to
// what is claimed.
func (b *theBell) arm(slot int64) {
	for {
		claimed := b.armed.Load()
		if slot >= claimed {
			return
		}
		if b.armed.CompareAndSwap(claimed, slot) {
			b.setTo(slot)
			return
		}
	}
}

func (b *theBell) setTo(slot int64) {
	for slot != noSlot {
		expiry := dueAt(slot)
		if now := clock.Now(); expiry-now > sparse {
			expiry -= b.lead.Load()
		}
		b.expiry.Store(expiry)
		b.set(expiry)
		claimed := b.armed.Load()
		if claimed == slot {
			return
		}
		slot = claimed
	}
}

// keep rings until nothing has been marked for a while.
func (b *theBell) keep() {
	for {
		_ = b.conn.Read(b.look)
		b.keeper.Store(false)
		// A sleeper may have marked after the last look and before this.
		if b.armed.Load() == noSlot || !b.keeper.CompareAndSwap(false, true) {
			return
		}
	}
}

// ring sets the timer to the next marked slot, and reports whether the keeper
// may go.
func (b *theBell) ring(uintptr) bool {
	now := clock.Now()
	slot := b.armed.Load()
	if slot != noSlot {
		due, expiry := dueAt(slot), b.expiry.Load()
		if now < expiry || now < due-maxLead {
			b.setTo(slot) // rung for a slot that was claimed no longer
			return false
		}
		if lead := b.lead.Load(); due-expiry == lead {
			b.lead.Store(nextLead(lead, now-expiry))
		}
		for now < due {
			pause.Core()
			now = clock.Now()
		}
	}
	counters.bellRings.Add(1)
	current := now >> slotBits
	earliest := earliestAfter(b.past, current)
	b.earliest.Store(earliest)
	b.armed.Store(noSlot)
	b.clear(current)
	next := b.next(current)
	if next == noSlot || b.sleepers.Load() == 0 {
		if slot == b.last {
			return true
		}
		next = current + linger>>slotBits
		b.last = next
	}
	b.arm(max(next, earliest))
	return false
}

// earliestAfter returns the first slot that may be rung for after two rings.
func earliestAfter(before, last int64) int64 {
	if last-before < 2*spacing {
		return last + spacing
	}
	return 0
}

// clear takes away the marks of all slots up to and with current. A keeper that
// comes late finds marks up to the horizon ahead already, which in the ring lie
// where the oldest slots were, so it leaves those: a stale mark costs one
// spare ring.
func (b *theBell) clear(current int64) {
	first := max(b.past+1, current-slots+horizon>>slotBits+2)
	for slot := first; slot <= current; {
		n := min(64-slot%64, current-slot+1)
		mask := ^uint64(0) >> (64 - n) << (slot % 64)
		if w := b.word(slot); w.Load()&mask != 0 {
			w.And(^mask)
		}
		slot += n
	}
	b.past = current
}

// next returns the first marked slot after current, or noSlot.
func (b *theBell) next(current int64) int64 {
	return b.first(current+1, current+slots-1)
}

// first returns the first marked slot from low to high, or noSlot.
func (b *theBell) first(low, high int64) int64 {
	for slot := low; slot <= high; slot += 64 - slot%64 {
		if word := b.word(slot).Load() >> (slot % 64); word != 0 {
			if slot += int64(bits.TrailingZeros64(word)); slot <= high {
				return slot
			}
			return noSlot
		}
	}
	return noSlot
}
