package wait

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// TimerSlack returns the timer slack of the calling thread: how late the
// kernel may end its sleeps in order to save wake-ups, prctl(2)'s
// PR_GET_TIMERSLACK. It is 50 us unless changed, and 0 for a thread with a
// real-time policy. A goroutine that is not locked to its thread may be on
// another one at the next call.
func TimerSlack() (time.Duration, error) {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0, slackError("get", err)
	}
	return time.Duration(ns), nil
}

// SetTimerSlack locks the calling goroutine to its thread and sets the
// thread's timer slack to d, prctl(2)'s PR_SET_TIMERSLACK. d is at least a
// nanosecond: zero, which the kernel takes for "the default", and less are
// refused with [os.ErrInvalid].
//
// restore sets the slack that was there before, which need not be the
// thread's default, and unlocks the goroutine. It must be called by the
// goroutine that called SetTimerSlack; elsewhere it changes nothing and
// returns an error. Further calls do nothing.
//
// Slack delays nanosleep, futex, poll and epoll on that thread, so a thread
// left with a large one delays the runtime too. It does not touch the sleeps
// of this package, which end by timerfd. Under a real-time policy the kernel
// ignores the setting.
func SetTimerSlack(d time.Duration) (restore func() error, err error) {
	if err := checkSlack(d); err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	before, err := TimerSlack()
	if err == nil {
		err = setSlack(d)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	thread := unix.Gettid()
	var restored atomic.Bool
	return func() error {
		if restored.Load() {
			return nil
		}
		if unix.Gettid() != thread {
			return errors.New("wait: timer slack restored on another thread than it was set on")
		}
		// A slack of zero is that of a real-time thread, which has no other;
		// to the kernel it means the default.
		if before > 0 {
			if err := setSlack(before); err != nil {
				return err
			}
		}
		restored.Store(true)
		runtime.UnlockOSThread()
		return nil
	}, nil
}

// SetProcessTimerSlack sets the timer slack of every thread of the process to
// d, which must be at least a nanosecond. Threads made later inherit it from
// the thread that makes them; a [Thread] has it once it is closed. It returns [errors.ErrUnsupported] in a program
// with cgo, where the runtime cannot reach all threads, and [os.ErrInvalid]
// for a d that is no slack.
func SetProcessTimerSlack(d time.Duration) error {
	if err := checkSlack(d); err != nil {
		return err
	}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(d), 0)
	switch errno {
	case 0:
		processSlack.Store(int64(d))
		slackChanges.Add(1) // Threads set theirs again
		return nil
	case syscall.ENOTSUP:
		return fmt.Errorf("wait: set the timer slack of all threads of a cgo program: %w", errors.ErrUnsupported)
	default:
		return slackError("set", errno)
	}
}

// slackChanges counts how often the slack of all threads was set, and
// processSlack is what to.
var slackChanges, processSlack atomic.Int64

func setSlack(d time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0); err != nil {
		return slackError("set", err)
	}
	return nil
}

func slackError(verb string, err error) error {
	return fmt.Errorf("wait: %s timer slack: %w", verb, os.NewSyscallError("prctl", err))
}

// checkSlack refuses what is no slack, or more than the kernel's long holds.
func checkSlack(d time.Duration) error {
	if d <= 0 || int64(d) > math.MaxInt {
		return fmt.Errorf("wait: timer slack of %v: %w", d, os.ErrInvalid)
	}
	return nil
}
