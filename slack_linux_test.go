package wait_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait"
)

// kernelSlack returns what the kernel says about the slack of a thread, by
// another way than prctl. Of other threads than the calling one it tells only
// the privileged.
func kernelSlack(thread int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", thread))
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return time.Duration(ns), err
}

// slack returns the slack of the calling thread.
func slack(t *testing.T) time.Duration {
	t.Helper()
	d, err := wait.TimerSlack()
	assert.NoError(t, err)
	return d
}

// mustSet sets the slack of the calling thread for good, not by this package.
func mustSet(t *testing.T, d time.Duration) {
	t.Helper()
	assert.NoError(t, unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0))
}

func TestTimerSlackIsWhatTheKernelSays(t *testing.T) {
	onFreshThread(func() {
		for _, d := range []time.Duration{0, 1, 77 * time.Microsecond, time.Second} {
			if d > 0 {
				mustSet(t, d)
				assert.Equal(t, d, slack(t))
			}
			want, err := kernelSlack(unix.Gettid())
			if err != nil { // no /proc
				ns, errno := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
				assert.NoError(t, errno)
				want = time.Duration(ns)
			}
			assert.Equal(t, want, slack(t))
		}
	})
}

func TestTimerSlackIsOfTheCallingThread(t *testing.T) {
	onFreshThread(func() {
		mustSet(t, 77*time.Microsecond)
		onFreshThread(func() {
			mustSet(t, 78*time.Microsecond)
			assert.Equal(t, 78*time.Microsecond, slack(t))
		})
		assert.Equal(t, 77*time.Microsecond, slack(t))
	})
}

func TestSetTimerSlackSets(t *testing.T) {
	for _, d := range []time.Duration{1, 50 * time.Microsecond, time.Millisecond, 2 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			onFreshThread(func() {
				restore, err := wait.SetTimerSlack(d)
				if assert.NoError(t, err) {
					assert.Equal(t, d, slack(t))
					assert.NoError(t, restore())
				}
			})
		})
	}
}

func TestRestoreSetsTheSlackThatWasThereBefore(t *testing.T) {
	onFreshThread(func() {
		byDefault := slack(t)
		mustSet(t, 77*time.Microsecond) // the default stays what it was
		assert.NotEqual(t, byDefault, slack(t))
		restore, err := wait.SetTimerSlack(1)
		if assert.NoError(t, err) {
			assert.Equal(t, time.Duration(1), slack(t))
			assert.NoError(t, restore())
			assert.Equal(t, 77*time.Microsecond, slack(t))
		}
	})
}

func TestRestoreNests(t *testing.T) {
	onFreshThread(func() {
		before := slack(t)
		outer, err := wait.SetTimerSlack(2 * time.Microsecond)
		assert.NoError(t, err)
		inner, err := wait.SetTimerSlack(time.Microsecond)
		assert.NoError(t, err)
		assert.NoError(t, inner())
		assert.Equal(t, 2*time.Microsecond, slack(t))
		assert.NoError(t, outer())
		assert.Equal(t, before, slack(t))
	})
}

func TestRestoreElsewhereFailsAndChangesNothing(t *testing.T) {
	onFreshThread(func() {
		mustSet(t, 77*time.Microsecond)
		restore, err := wait.SetTimerSlack(1)
		if !assert.NoError(t, err) {
			return
		}
		onFreshThread(func() {
			mustSet(t, 78*time.Microsecond)
			assert.Error(t, restore())
			assert.Equal(t, 78*time.Microsecond, slack(t))
		})
		unlocked := make(chan error)
		go func() { unlocked <- restore() }()
		assert.Error(t, <-unlocked)
		assert.Equal(t, time.Duration(1), slack(t))

		assert.NoError(t, restore(), "it still works where it has to be called")
		assert.Equal(t, 77*time.Microsecond, slack(t))
	})
}

func TestRestoreTwiceDoesNothing(t *testing.T) {
	onFreshThread(func() {
		mustSet(t, 77*time.Microsecond)
		restore, err := wait.SetTimerSlack(1)
		if !assert.NoError(t, err) {
			return
		}
		assert.NoError(t, restore())
		mustSet(t, 79*time.Microsecond)
		for range 3 {
			assert.NoError(t, restore())
		}
		assert.Equal(t, 79*time.Microsecond, slack(t))
	})
}

// moveToAnotherThread has the calling goroutine, which must not be locked,
// go on on another thread: it gives its own to one that locks it.
func moveToAnotherThread(t *testing.T) (release func()) {
	t.Helper()
	var keepers sync.WaitGroup
	stop := make(chan struct{})
	atGOMAXPROCS(t, 1, func() {
		from := unix.Gettid()
		for range 100 {
			kept := make(chan struct{})
			keepers.Go(func() {
				runtime.LockOSThread() // and never unlocks: the thread ends
				close(kept)
				<-stop
			})
			<-kept
			if unix.Gettid() != from {
				return
			}
		}
		assert.Fail(t, "the goroutine stayed on its thread")
	})
	return func() {
		close(stop)
		keepers.Wait()
	}
}

func TestRestoreTwiceDoesNothingThoughTheGoroutineHasMoved(t *testing.T) {
	done := make(chan struct{})
	go func() { // not locked, so that it can move once the slack is restored
		defer close(done)
		restore, err := wait.SetTimerSlack(time.Microsecond)
		if !assert.NoError(t, err) {
			return
		}
		assert.NoError(t, restore())
		release := moveToAnotherThread(t)
		defer release()
		assert.NoError(t, restore(), "further calls do nothing")
	}()
	<-done
}

func TestSetTimerSlackKeepsTheGoroutineOnItsThreadUntilRestore(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		restore, err := wait.SetTimerSlack(time.Microsecond)
		if !assert.NoError(t, err) {
			return
		}
		thread := unix.Gettid()
		for range 50 {
			unlocked := make(chan struct{})
			go func() {
				assert.NotEqual(t, thread, unix.Gettid())
				close(unlocked)
			}()
			<-unlocked
			runtime.Gosched()
			assert.Equal(t, thread, unix.Gettid())
		}
		assert.NoError(t, restore())
		release := moveToAnotherThread(t) // which fails if it is locked still
		release()
	}()
	<-done
}

func TestWhatIsNoSlackIsRefused(t *testing.T) {
	onFreshThread(func() {
		mustSet(t, 77*time.Microsecond)
		for _, d := range []time.Duration{0, -1, -time.Second, math.MinInt64} {
			restore, err := wait.SetTimerSlack(d)
			assert.ErrorIs(t, err, os.ErrInvalid, "%v", d)
			assert.Nil(t, restore, "%v", d)
			assert.ErrorIs(t, wait.SetProcessTimerSlack(d), os.ErrInvalid, "%v", d)
		}
		assert.Equal(t, 77*time.Microsecond, slack(t))
	})
}

// TestLongestSlack has a slack that a long of the kernel's holds only where
// that has 64 bits.
func TestLongestSlack(t *testing.T) {
	onFreshThread(func() {
		before := slack(t)
		restore, err := wait.SetTimerSlack(math.MaxInt64)
		if strconv.IntSize < 64 {
			assert.ErrorIs(t, err, os.ErrInvalid)
			assert.Nil(t, restore)
			assert.ErrorIs(t, wait.SetProcessTimerSlack(math.MaxInt64), os.ErrInvalid)
		} else if assert.NoError(t, err) {
			assert.Equal(t, time.Duration(math.MaxInt64), slack(t))
			assert.NoError(t, restore())
		}
		assert.Equal(t, before, slack(t))
	})
}

// TestRestoreOnARealTimeThread has a thread whose slack newer kernels hold at
// zero, which is also what asks them for the default.
func TestRestoreOnARealTimeThread(t *testing.T) {
	onFreshThread(func() {
		mustSet(t, 77*time.Microsecond)
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
		if err != nil {
			t.Logf("an ordinary thread, since no real-time policy is granted: %v", err)
		}
		before := slack(t)
		restore, err := wait.SetTimerSlack(time.Millisecond)
		if assert.NoError(t, err) {
			assert.NoError(t, restore())
			assert.Equal(t, before, slack(t))
		}
	})
}

// threadsInWait starts n goroutines, each on a thread of its own, and returns
// a function that has each of them tell its slack and end.
func threadsInWait(t *testing.T, n int) (slacks func() []time.Duration) {
	t.Helper()
	var ready, ended sync.WaitGroup
	tell := make(chan struct{})
	told := make([]time.Duration, n)
	ready.Add(n)
	for i := range n {
		ended.Go(func() {
			runtime.LockOSThread()
			ready.Done()
			<-tell
			told[i], _ = wait.TimerSlack()
		})
	}
	ready.Wait()
	return func() []time.Duration {
		close(tell)
		ended.Wait()
		return told
	}
}

// With cgo it is refused; CI runs this in pure Go too.
func TestSetProcessTimerSlackReachesEveryThreadOrNone(t *testing.T) {
	const d = 123 * time.Microsecond
	before := slack(t)
	t.Cleanup(func() {
		if err := wait.SetProcessTimerSlack(before); !errors.Is(err, errors.ErrUnsupported) {
			assert.NoError(t, err)
		}
	})
	slacks := threadsInWait(t, 5)
	err := wait.SetProcessTimerSlack(d)
	require.Equal(t, withCgo, err != nil, "%v", err)
	if err != nil {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		for _, got := range append(slacks(), slack(t)) {
			assert.NotEqual(t, d, got)
		}
		return
	}
	tasks, _ := os.ReadDir("/proc/self/task")
	known := 0
	for _, task := range tasks {
		thread, err := strconv.Atoi(task.Name())
		require.NoError(t, err)
		if got, err := kernelSlack(thread); err == nil {
			known++
			assert.Equal(t, d, got, "thread %d", thread)
		}
	}
	t.Logf("the kernel told the slack of %d threads of %d", known, len(tasks))
	for i, got := range slacks() {
		assert.Equal(t, d, got, "locked goroutine %d", i)
	}
	onFreshThread(func() { assert.Equal(t, d, slack(t), "a thread made later") })
}
