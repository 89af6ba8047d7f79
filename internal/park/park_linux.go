package park

import (
	"time"

	"github.com/precisewait/wait/internal/clock"
)

// wake parks until the deadline, less than horizon away, or a little before.
// The caller spins from then on until end. overslept reports that it was a
// timer set to the end that ended the sleep.
func wake(now, deadline, end int64) (overslept bool) {
	if !busy() {
		if a, i := takeAlarm(); a != nil {
			defer dropAlarm(i)
			return a.wait(now, deadline, end)
		}
	}
	mark(now, deadline)
	defer unmark()
	time.Sleep(time.Duration(deadline - clock.Now()))
	return false
}

const (
	// parking is longer than it takes from a mark until the sleeper's runtime
	// timer is set. A bell that rang before would wake it in vain.
	parking = int64(10 * time.Microsecond)

	// waking is about what a sleeper takes from the end of its slot until it
	// runs. A hard expiry is kept by a slot that ends so much before it.
	waking = int64(30 * time.Microsecond)
)

// mark has the program's epoll_wait end just after the deadline, for a
// sleeper on a runtime timer.
func mark(now, deadline int64) {
	bell.sleepers.Add(1)
	if bell.ready() {
		bell.mark(now, slotOf(max(deadline, now+parking)))
	}
}

// unmark tells that the sleeper sleeps no more.
func unmark() {
	// A sleeper that was cancelled may have left a mark far ahead, up to which
	// the keeper would stay.
	if bell.sleepers.Add(-1) == 0 && bell.keeper.Load() {
		bell.arm(slotOf(clock.Now() + linger))
	}
}

// share returns a time in [soft, hard] at which the program wakes up anyway,
// or else the last that others may join; and false if there is none.
func share(now, soft, hard int64) (target int64, ok bool) {
	if !bell.ready() {
		return roundest(soft, hard)
	}
	low, high := slotOf(max(soft, now+parking)), (hard-waking)>>slotBits
	if low > high {
		return 0, false
	}
	if slot := bell.first(low, high); slot != noSlot {
		counters.shared.Add(1)
		return slot << slotBits, true
	}
	return high << slotBits, true
}

// runtimeTimerAlone reports whether descriptors were refused, and none is open.
func runtimeTimerAlone() bool {
	return counters.failures.Load() > 0 && counters.alarms.Load() == 0 && !bell.opened.Load()
}
