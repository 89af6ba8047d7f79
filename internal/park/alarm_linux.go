package park

import (
	"math/bits"
	"sync/atomic"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/pause"
)

// maxAlarms is how many sleepers are served by an alarm of their own; one
// more goes to the bell.
const maxAlarms = 8

// An alarm wakes one sleeper at a time, by a kernel timer and a runtime timer,
// whichever comes first. In an idle program the kernel's does, to the
// microsecond. When every P is busy the poller is looked at only every 10 ms,
// but runtime timers at every scheduling step; then an alarm is in the way, and
// sleepers go to the bell, which is nothing but a runtime timer as long as
// the poller is not looked at.
//
// A wake-up takes time: even the quickest comes some 10 us after the kernel's
// timer has expired. So that timer is set to expire earlier than the deadline
// by about what the quickest wake-ups take, the lead; the few sleepers that
// run before their deadline after all spin for the rest. The runtime's timer,
// which wakes without delay, is set to the deadline itself.
//
// Whoever spins on from the deadline has that timer set to the end of the
// spin, as long as the kernel's timers come first anyway. The runtime's
// monitor thread sleeps until the earliest runtime timer, and its own kernel
// timer, up to 50 us late, would interrupt the spin for 15 us.
type alarm struct {
	timer
	expiry int64 // of the kernel's timer
	ran    int64 // when the sleeper first ran after the expiry
	armed  bool
	look   func(uintptr) bool // a.due, made once so that a wait allocates nothing
}

// leads are those of all alarms.
var leads Leads

var alarms struct {
	held atomic.Uint32 // a bit for each alarm in use
	busy atomic.Int32  // 0 if the kernel's timer came first the last time
	all  [maxAlarms]alarm
}

// busyFor is how many sleepers go to the bell, less one, after a runtime
// timer has come first twice in a row. Once is no sign of a busy program: a
// host that stops it for a moment leaves both timers due.
const busyFor = 16

// busy reports whether a sleeper had better go to the bell.
func busy() bool {
	n := alarms.busy.Load()
	return n > 1 && alarms.busy.CompareAndSwap(n, n-1)
}

// lost takes notice that a runtime timer came first.
func lost() {
	if !alarms.busy.CompareAndSwap(0, 1) {
		alarms.busy.Store(busyFor)
	}
}

// takeAlarm returns an alarm that nobody uses, and its number, or nil.
func takeAlarm() (*alarm, int) {
	for {
		held := alarms.held.Load()
		i := bits.TrailingZeros32(^held)
		if i >= maxAlarms {
			return nil, 0
		}
		if !alarms.held.CompareAndSwap(held, held|1<<i) {
			continue
		}
		a := &alarms.all[i]
		if a.look == nil {
			if !a.open() {
				dropAlarm(i)
				return nil, 0
			}
			a.look = a.due
			counters.alarms.Add(1)
		}
		return a, i
	}
}

func dropAlarm(i int) { alarms.held.And(^uint32(1 << i)) }

// wait parks until the deadline, or a little before it. The caller spins from
// then on until end. overslept reports that a runtime timer set to the end
// came first.
func (a *alarm) wait(now, deadline, end int64) (overslept bool) {
	rest := deadline - now
	a.expiry, a.armed = deadline-leads.Of(rest), false
	// The read deadline is the runtime's timer. It comes first, because Read
	// fails at once if an earlier wait's is still there.
	backup := backupOf(deadline, end)
	if a.file.SetReadDeadline(clock.Time(backup)) != nil {
		return false
	}
	if a.conn.Read(a.look) != nil {
		lost()
		return backup > deadline
	}
	alarms.busy.Store(0)
	counters.alarmRings.Add(1)
	leads.Learn(rest, a.ran-a.expiry)
	for clock.Now() < deadline {
		pause.Core()
	}
	return false
}

// backupOf returns what the runtime's timer of a sleep until the deadline is
// set to.
func backupOf(deadline, end int64) int64 {
	if alarms.busy.Load() == 0 {
		return end
	}
	return deadline
}

// due is what Read calls before it waits and after each wake-up, until it
// returns true. The timer is armed here, after Read has reset the poller, so
// that its expiry cannot be taken for that of an earlier wait.
func (a *alarm) due(uintptr) bool {
	if a.armed {
		a.ran = clock.Now()
		return a.ran >= a.expiry
	}
	a.armed = true
	a.set(a.expiry)
	return false
}
