package measure

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/precisewait/wait"
)

// The slack of a thread is 50 us unless somebody changed it. It is set here in
// any case, so that what was measured is what is said.
const defaultSlack = 50 * time.Microsecond

// kernelMethods are system calls that block their thread. All but timerfd are
// subject to its timer slack.
var kernelMethods = []Method{
	{"select", Kernel, blocking(defaultSlack, selectFor)},
	{"poll", Kernel, blocking(defaultSlack, pollFor)},
	{"epoll_pwait2", Kernel, openEpoll},
	{"nanosleep", Kernel, blocking(defaultSlack, nanosleep)},
	{"nanosleep:1ns", Kernel, blocking(1, nanosleep)},
	{"clock_nanosleep", Kernel, blocking(defaultSlack, clockNanosleep)},
	{"clock_nanosleep:1ns", Kernel, blocking(1, clockNanosleep)},
	{"timerfd", Kernel, openTimerfd},
}

// blocking opens a system call on a thread with the given timer slack. The
// call is repeated, with what is left, as long as a signal ends it: Go's
// runtime sends some.
func blocking(slack time.Duration, call func(d int64) error) func(time.Duration) (waiter, error) {
	return func(time.Duration) (waiter, error) {
		restore, err := wait.SetTimerSlack(slack)
		if err != nil {
			return waiter{}, err
		}
		if err := call(0); err != nil {
			return waiter{}, errors.Join(err, restore())
		}
		return waiter{
			wait: to(func(start, deadline int64) {
				for d := deadline - start; d > 0 && call(d) == unix.EINTR; {
					d = deadline - now()
				}
			}),
			close: restore,
		}, nil
	}
}

// selectFor waits by select(2), which counts in microseconds.
func selectFor(d int64) error {
	tv := unix.NsecToTimeval((d + 999) / 1000 * 1000)
	_, err := unix.Select(0, nil, nil, nil, &tv)
	return err
}

// pollFor waits by poll(2), which counts in milliseconds.
func pollFor(d int64) error {
	_, err := unix.Poll(nil, int((d+999_999)/1_000_000))
	return err
}

func nanosleep(d int64) error {
	ts := unix.NsecToTimespec(d)
	return unix.Nanosleep(&ts, nil)
}

// clockNanosleep waits until an absolute time.
func clockNanosleep(d int64) error {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return err
	}
	ts = unix.NsecToTimespec(ts.Nano() + d)
	return unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
}

// openEpoll opens epoll_pwait2(2), which like epoll_wait(2) has a descriptor
// to wait on, but counts in nanoseconds.
func openEpoll(request time.Duration) (waiter, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return waiter{}, fmt.Errorf("epoll_create1: %w", err)
	}
	w, err := blocking(defaultSlack, func(d int64) error {
		var event unix.EpollEvent
		timeout := struct{ sec, nsec int64 }{d / 1e9, d % 1e9} // of 64 bits everywhere
		_, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(unsafe.Pointer(&event)), 1,
			uintptr(unsafe.Pointer(&timeout)), 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})(request)
	return closing(w, epoll), wrap("epoll_pwait2", err)
}

// openTimerfd opens a read(2) of a timerfd.
func openTimerfd(request time.Duration) (waiter, error) {
	timer, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return waiter{}, fmt.Errorf("timerfd_create: %w", err)
	}
	var expirations [8]byte
	w, err := blocking(defaultSlack, func(d int64) error {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(d, 1))} // 0 would disarm it
		if err := unix.TimerfdSettime(timer, 0, &spec, nil); err != nil {
			return err
		}
		_, err := unix.Read(timer, expirations[:])
		return err
	})(request)
	return closing(w, timer), wrap("timerfd", err)
}

// closing has a waiter close a descriptor too.
func closing(w waiter, fd int) waiter {
	if w.close == nil {
		_ = unix.Close(fd)
		return w
	}
	before := w.close
	w.close = func() error { return errors.Join(before(), unix.Close(fd)) }
	return w
}

func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", call, err)
}
