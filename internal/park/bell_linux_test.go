package park

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait/internal/clock"
)

func TestSlotEndsAtOrAfterTheDeadline(t *testing.T) {
	for _, deadline := range []int64{0, 1, slotLen - 1, slotLen, slotLen + 1, 1e9, 1e9 + 7} {
		end := slotOf(deadline) << slotBits
		assert.GreaterOrEqual(t, end, deadline)
		assert.Less(t, end-deadline, slotLen)
	}
}

// FuzzRing holds the ring of bits against a list of slots.
func FuzzRing(f *testing.F) {
	f.Add(int64(0), []byte{1, 2, 3})
	f.Add(int64(1)<<40, []byte{255, 0, 255, 0, 17})
	f.Add(int64(slots-1), []byte{63, 64, 65, 127, 128})
	f.Add(int64(62), []byte{1, 1, 1})
	f.Fuzz(func(t *testing.T, start int64, steps []byte) {
		if start < 0 || start > 1<<45 {
			return
		}
		b := newBell()
		b.past = start
		current, marked := start, []int64{}
		for i, s := range steps {
			slot := current + 1 + int64(s)*int64(s)%(slots-1)
			b.word(slot).Or(1 << (slot % 64))
			marked = append(marked, slot)
			slices.Sort(marked)
			require.Equal(t, marked[0], b.next(current))
			low := current + 1 + int64(s)
			high := low + int64(i)*37%500
			want := int64(noSlot)
			if k, _ := slices.BinarySearch(marked, low); k < len(marked) && marked[k] <= high {
				want = marked[k]
			}
			require.Equal(t, want, b.first(low, high))
			if s%3 == 0 { // time goes on
				current += int64(s) * 11
				b.clear(current)
				marked = slices.DeleteFunc(marked, func(m int64) bool { return m <= current })
				want := int64(noSlot)
				if len(marked) > 0 {
					want = marked[0]
				}
				require.Equal(t, want, b.next(current))
			}
		}
	})
}

func TestClearAfterALongStopLeavesWhatOthersHaveMarked(t *testing.T) {
	const current = int64(1) << 40
	for _, behind := range []int64{1, 8000, 20_000, slots - 1, slots, 1 << 30} {
		b := newBell()
		b.past = current - behind
		var marked []int64
		for ahead := int64(1); ahead <= horizon>>slotBits; ahead += 100 {
			b.word(current + ahead).Or(1 << ((current + ahead) % 64))
			marked = append(marked, current+ahead)
		}
		b.word(current).Or(1 << (current % 64))
		b.clear(current)
		assert.Equal(t, current, b.past)
		for next := current; len(marked) > 0; marked = marked[1:] {
			next = b.next(next)
			require.Equal(t, marked[0], next, "%d slots behind", behind)
		}
		assert.Zero(t, b.word(current).Load()&(1<<(current%64)))
	}
}

// TestNoClaimIsLost has many sleepers claim slots at once. Whatever the order
// in which they reach the kernel, its timer must end up at the earliest.
func TestNoClaimIsLost(t *testing.T) {
	for range 200 {
		b := newBell()
		require.NoError(t, b.tryOpen())
		base := slotOf(clock.Now() + int64(10*time.Second))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for k := range 5 {
					b.arm(base + int64((i*31+k*17)%40))
				}
			})
		}
		wg.Wait()
		var set unix.ItimerSpec
		before := clock.Now()
		require.NoError(t, unix.TimerfdGettime(b.fd, &set))
		expiry := before + set.Value.Nano()
		assert.InDelta(t, b.armed.Load()<<slotBits+after, expiry, 5e6, "5 ms, for a busy machine; slots are 16 us")
		assert.Less(t, b.armed.Load(), base+40)
		require.NoError(t, b.file.Close())
	}
}

// The keeper may find the expiry of a slot whose claim was overtaken. It must
// not spin until the slot that stands.
func TestTheKeeperDoesNotSpinForAFarSlot(t *testing.T) {
	b := newBell()
	require.NoError(t, b.tryOpen())
	defer b.file.Close()
	now := clock.Now()
	slot := slotOf(now + int64(10*time.Second))
	b.armed.Store(slot)
	b.expiry.Store(now - 1)
	assert.False(t, b.ring(0))
	assert.Less(t, clock.Now()-now, int64(5*time.Second))
	assert.Equal(t, slot, b.armed.Load())
	assert.Greater(t, b.expiry.Load(), now+int64(9*time.Second), "the timer was set again")
}

func TestTheRingsOfADenseCrowdKeepTheirDistance(t *testing.T) {
	assert.Equal(t, 1001+spacing, earliestAfter(1000, 1001))
	assert.Equal(t, 1007+spacing, earliestAfter(1000, 1007))
	assert.Zero(t, earliestAfter(1000, 1008), "rings that are far apart are left where they are")

	b := newBell()
	require.NoError(t, b.tryOpen())
	defer b.file.Close()
	b.keeper.Store(true) // as if one ran
	b.sleepers.Store(2)

	// A ring just after another, with the next mark close. On a busy machine
	// it may come too late to be just after.
	require.Eventually(t, func() bool {
		slot := clock.Now() >> slotBits
		b.past = slot - 1
		b.armed.Store(slot)
		b.expiry.Store(dueAt(slot))
		for ahead := range int64(64) {
			b.word(slot + 1 + ahead).Or(1 << ((slot + 1 + ahead) % 64))
		}
		return !b.ring(0) && b.earliest.Load() > 0
	}, 5*time.Second, time.Microsecond)
	assert.Equal(t, b.past+spacing, b.earliest.Load())
	assert.Equal(t, b.earliest.Load(), b.armed.Load())

	b.mark(clock.Now(), b.past+1)
	assert.Equal(t, b.past+spacing, b.armed.Load(), "a new sleeper rings no earlier")

	b.earliest.Store(0)
	b.mark(clock.Now(), b.past+1)
	assert.Equal(t, b.past+1, b.armed.Load())
}

func TestSleepersJoinAMarkedSlot(t *testing.T) {
	require.Eventually(t, bell.ready, 5*time.Second, time.Millisecond)
	now := clock.Now()
	slot := slotOf(now + int64(200*time.Millisecond))
	bell.mark(now, slot)
	target, ok := share(now, slot<<slotBits-slotLen, slot<<slotBits+slotLen*100)
	assert.True(t, ok)
	assert.Equal(t, slot<<slotBits, target)
}

func TestASleeperAloneTakesTheLastSlotThatKeepsTheHardExpiry(t *testing.T) {
	require.Eventually(t, bell.ready, 5*time.Second, time.Millisecond)
	untilNoKeeper(t)
	for i := range bell.marks { // those of cancelled sleepers
		bell.marks[i].Store(0)
	}
	now := clock.Now()
	soft := now + int64(300*time.Millisecond)
	hard := soft + int64(50*time.Millisecond)
	target, ok := share(now, soft, hard)
	assert.True(t, ok)
	assert.LessOrEqual(t, target, hard-waking)
	assert.Greater(t, target, hard-waking-slotLen)
}

func TestAWindowWithoutASlotIsNotShared(t *testing.T) {
	require.Eventually(t, bell.ready, 5*time.Second, time.Millisecond)
	now := clock.Now()
	_, ok := share(now, now+1_000_000, now+1_000_000+waking)
	assert.False(t, ok)
}

func TestTheKeeperStaysWhileItIsNeeded(t *testing.T) {
	for range 100 {
		now := clock.Now()
		inCrowd(now, now+200_000, nil)
		assert.True(t, bell.keeper.Load())
	}
}

func TestTheKeeperGoesThoughACancelledSleeperHasLeftAMark(t *testing.T) {
	done := make(chan struct{})
	time.AfterFunc(5*time.Millisecond, func() { close(done) })
	now := clock.Now()
	_, reached := inCrowd(now, now+horizon-1, done)
	assert.False(t, reached)
	assert.Zero(t, bell.sleepers.Load())
	start := time.Now()
	assert.Eventually(t, func() bool { return !bell.keeper.Load() }, 20*time.Second, time.Millisecond)
	t.Logf("the keeper left after %v", time.Since(start))
}

func TestANewKeeperAllocatesNothing(t *testing.T) {
	sleep := func() {
		now := clock.Now()
		inCrowd(now, now+int64(time.Millisecond), nil)
		for bell.keeper.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	sleep()
	assert.Zero(t, testing.AllocsPerRun(3, sleep))
}

func TestTheKeeperGoesWhenNobodyNeedsIt(t *testing.T) {
	now := clock.Now()
	inCrowd(now, now+int64(time.Millisecond), nil)
	assert.Eventually(t, func() bool { return !bell.keeper.Load() }, 20*time.Second, 10*time.Millisecond)
	assert.Equal(t, int64(noSlot), bell.armed.Load())
	// And comes back.
	now = clock.Now()
	deadline := now + int64(time.Millisecond)
	last, _ := inCrowd(now, deadline, nil)
	assert.GreaterOrEqual(t, last, deadline)
}

func TestARefusedTimerIsAskedForAgainLater(t *testing.T) {
	create, before := timerfdCreate, ReadCounts().Failures
	defer func() { timerfdCreate = create; retryAt.Store(0) }()
	asked := 0
	timerfdCreate = func() (int, error) { asked++; return -1, unix.EMFILE }
	var tm timer
	assert.False(t, tm.open())
	assert.False(t, tm.open())
	assert.Equal(t, 1, asked, "a second time within the second")
	assert.Equal(t, before+1, ReadCounts().Failures)

	retryAt.Store(clock.Now() - 1)
	timerfdCreate = create
	assert.True(t, tm.open())
	assert.NoError(t, tm.file.Close())
}

func TestAFileThatThePollerDoesNotTakeIsRefused(t *testing.T) {
	create := timerfdCreate
	defer func() { timerfdCreate = create; retryAt.Store(0) }()
	var fd int
	timerfdCreate = func() (int, error) {
		f, err := os.CreateTemp(t.TempDir(), "") // epoll takes no regular files
		if err != nil {
			return -1, err
		}
		defer f.Close()
		fd, err = unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		return fd, err
	}
	var tm timer
	assert.Error(t, tm.tryOpen())
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	assert.True(t, errors.Is(err, unix.EBADF), "the descriptor was left open")
}

func TestAlarmsAreBoundedAndReused(t *testing.T) {
	for range 3 {
		var wg sync.WaitGroup
		for range 4 * maxAlarms {
			wg.Go(func() {
				now := clock.Now()
				Until(now, now+int64(5*time.Millisecond))
			})
		}
		wg.Wait()
	}
	assert.LessOrEqual(t, ReadCounts().Alarms, int64(maxAlarms))
	assert.LessOrEqual(t, timerfds(t), maxAlarms+1)
	assert.Zero(t, alarms.held.Load())
}

func timerfds(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, e := range list {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(target, "timerfd") {
			n++
		}
	}
	return n
}

func TestAnAlarmOutlivesAStaleExpiry(t *testing.T) {
	var a alarm
	require.NoError(t, a.tryOpen())
	defer a.file.Close()
	a.look = a.due
	for range 50 {
		// An expiry of nobody's reaches the poller before the wait begins.
		a.set(clock.Now())
		time.Sleep(50 * time.Microsecond)
		now := clock.Now()
		deadline := now + int64(2*time.Millisecond)
		assert.False(t, a.wait(now, deadline, deadline))
		assert.GreaterOrEqual(t, clock.Now(), deadline)
	}
}

func TestTheLeadFollowsTheQuickestWakeups(t *testing.T) {
	const length = int64(1) << 50 // a length that nobody sleeps
	l := &leads[51]
	defer l.Store(0)
	for i := range int64(4000) {
		leads.Learn(length, 20_000+i%16*1000)
	}
	assert.InDelta(t, 22_000, l.Load(), 4_000)

	before := l.Load()
	leads.Learn(length, int64(50*time.Millisecond))
	assert.LessOrEqual(t, l.Load()-before, int64(1000), "one outlier")

	for range 10 {
		leads.Learn(length, 2000)
	}
	assert.Less(t, l.Load(), int64(3000), "down at once when wake-ups get quicker")
	for range 10_000 {
		leads.Learn(length, int64(time.Second))
	}
	assert.Equal(t, maxLead, l.Load(), "bounded")
}

func TestAShortSleepSleepsForHalfOfItsTime(t *testing.T) {
	l := &leads[7]
	defer l.Store(l.Load())
	l.Store(maxLead)
	assert.EqualValues(t, 50, leads.Of(100))
}

func TestABusyProgramLeavesTheAlarmsForAWhile(t *testing.T) {
	defer alarms.busy.Store(alarms.busy.Load())
	alarms.busy.Store(0)
	lost()
	assert.False(t, busy(), "one loss is no sign")
	lost()
	for range busyFor - 1 {
		assert.True(t, busy(), "the second in a row is")
	}
	assert.False(t, busy(), "then an alarm is tried again")
	lost()
	assert.True(t, busy(), "in vain")

}

func TestTheRuntimeTimerIsSetToTheEndOfTheSpinUnlessBusy(t *testing.T) {
	defer alarms.busy.Store(alarms.busy.Load())
	for busy, want := range map[int32]int64{0: 20, 1: 10, 2: 10, busyFor: 10} {
		alarms.busy.Store(busy)
		assert.Equal(t, want, backupOf(10, 20), "busy %d", busy)
	}
}

// untilNoKeeper waits until nobody but the test sets timers.
func untilNoKeeper(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return !bell.keeper.Load() }, 20*time.Second, time.Millisecond)
}

// withoutExpiry runs f while the kernel's timers are not set.
func withoutExpiry(t *testing.T, f func()) {
	untilNoKeeper(t)
	settime, busy := timerfdSettime, alarms.busy.Load()
	defer func() { timerfdSettime = settime; alarms.busy.Store(busy) }()
	timerfdSettime = func(int, unix.Timespec) error { return unix.EPERM }
	alarms.busy.Store(0)
	f()
}

func TestAnAlarmWhoseKernelTimerNeverExpires(t *testing.T) {
	withoutExpiry(t, func() {
		var a alarm
		require.NoError(t, a.tryOpen())
		defer a.file.Close()
		a.look = a.due
		refused := ReadCounts().Failures
		now := clock.Now()
		deadline, end := now+int64(2*time.Millisecond), now+int64(4*time.Millisecond)
		assert.True(t, a.wait(now, deadline, end), "overslept")
		assert.GreaterOrEqual(t, clock.Now(), end)
		assert.EqualValues(t, 1, alarms.busy.Load())
		assert.Equal(t, refused+1, ReadCounts().Failures)

		now = clock.Now()
		deadline, end = now+int64(2*time.Millisecond), now+int64(time.Hour)
		assert.False(t, a.wait(now, deadline, end), "not overslept: the runtime's timer was set to the deadline")
		assert.GreaterOrEqual(t, clock.Now(), deadline)
		assert.EqualValues(t, busyFor, alarms.busy.Load())
	})
}

func TestAheadTellsWhetherItOverslept(t *testing.T) {
	withoutExpiry(t, func() {
		for i, want := range []bool{true, false} { // a third would go to the bell
			now := clock.Now()
			last, reached, overslept := Ahead(now, now+int64(2*time.Millisecond), now+int64(4*time.Millisecond), nil)
			assert.True(t, reached)
			assert.Equal(t, want, overslept, "wait %d", i)
			assert.GreaterOrEqual(t, last, now+int64(2*time.Millisecond))
		}
	})
}

func TestAnAlarmIsArmedByItsLeadBeforeTheDeadline(t *testing.T) {
	untilNoKeeper(t)
	settime := timerfdSettime
	defer func() { timerfdSettime = settime }()
	var set int64
	timerfdSettime = func(fd int, at unix.Timespec) error {
		set = at.Nano()
		return settime(fd, at)
	}
	const length = int64(3 * time.Millisecond)
	l := &leads[22]
	defer l.Store(l.Load())
	l.Store(int64(40 * time.Microsecond))
	var a alarm
	require.NoError(t, a.tryOpen())
	defer a.file.Close()
	a.look = a.due
	now := clock.Now()
	a.wait(now, now+length, now+length)
	kernel := clock.Kernel(now + length)
	assert.Equal(t, int64(40*time.Microsecond), kernel.Nano()-set)
}
