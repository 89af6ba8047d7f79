package park

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/precisewait/wait/internal/clock"
)

// A timer is a timerfd on the runtime's poller. Its expiry makes the
// descriptor readable, which ends epoll_wait(2) in an idle program. It is
// never read: setting it again clears the expiry, and the poller, being
// edge-triggered, reports the next one all the same.
type timer struct {
	file *os.File
	conn syscall.RawConn
	fd   int
}

// retryAfter is how long after the kernel refused a descriptor it is asked
// for one again: the limit may have been raised, or files closed.
const retryAfter = int64(time.Second)

// retryAt is the time before which no descriptor is asked for.
var retryAt atomic.Int64

// The only ways to the kernel, so that a test may close them.
var (
	timerfdCreate = func() (int, error) {
		return unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	}
	timerfdSettime = func(fd int, at unix.Timespec) error {
		return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &unix.ItimerSpec{Value: at}, nil)
	}
)

// open makes the timer ready for use and reports whether it is.
func (t *timer) open() bool {
	if t.file != nil {
		return true
	}
	if now := clock.Now(); now < retryAt.Load() {
		return false
	} else if t.tryOpen() != nil {
		counters.failures.Add(1)
		retryAt.Store(now + retryAfter)
		return false
	}
	return true
}

func (t *timer) tryOpen() error {
	// Any runtime timer has the runtime open its poller. If the last
	// descriptors were taken before that, it could not, and would crash.
	time.AfterFunc(time.Hour, func() {}).Stop()
	fd, err := timerfdCreate()
	if err != nil {
		return os.NewSyscallError("timerfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	// A file that the poller has not taken has no deadlines, and reading from
	// it would hold a thread.
	err = f.SetReadDeadline(time.Time{})
	if err == nil {
		t.conn, err = f.SyscallConn()
	}
	if err != nil {
		f.Close()
		return err
	}
	t.file, t.fd = f, fd
	return nil
}

// set arms the timer to expire at the deadline, at once if it is past.
func (t *timer) set(deadline int64) {
	// If it is refused, the runtime timer beside it still wakes the sleeper.
	if timerfdSettime(t.fd, clock.Kernel(deadline)) != nil {
		counters.failures.Add(1)
	}
}
