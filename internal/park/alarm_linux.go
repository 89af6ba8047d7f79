package park

import (
	"math/bits"
	"sync/atomic"

	"github.com/precisewait/wait/internal/clock"
)

// maxAlarms is how many sleepers are served by an alarm of their own; one
// more goes to the bell.
const maxAlarms = 8

// An alarm wakes one sleeper at a time, by a kernel timer and a runtime timer
// set to the same instant, whichever comes first. In an idle program the
// kernel's does, to the microsecond. When every P is busy the poller is
// looked at only every 10 ms, but runtime timers at every scheduling step.
type alarm struct {
	timer
	deadline int64
	armed    bool
	look     func(uintptr) bool // a.due, made once so that a wait allocates nothing
}

var alarms struct {
	held atomic.Uint32 // a bit for each alarm in use
	all  [maxAlarms]alarm
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

// wait parks until the deadline, or a little before it.
func (a *alarm) wait(deadline int64) {
	a.deadline, a.armed = deadline, false
	// The read deadline is the runtime timer. It comes first, because Read
	// fails at once if an earlier wait's is still there.
	if a.file.SetReadDeadline(clock.Time(deadline)) != nil {
		return
	}
	if a.conn.Read(a.look) == nil {
		counters.alarmRings.Add(1)
	}
}

// due is what Read calls before it waits and after each wake-up, until it
// returns true. The timer is armed here, after Read has reset the poller, so
// that its expiry cannot be taken for that of an earlier wait.
func (a *alarm) due(uintptr) bool {
	if clock.Now() >= a.deadline {
		return true
	}
	if !a.armed {
		a.armed = true
		a.set(a.deadline)
	}
	return false
}
