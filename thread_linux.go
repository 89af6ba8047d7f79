package wait

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
)

const threadWakeup = WakeupNanosleep

// A sleeper is the thread's way to the kernel.
type sleeper struct {
	keepsP  bool          // sleeps keep the P
	yielded int64         // when it last let others run, if it keeps the P
	slack   time.Duration // of the thread now
	at      unix.Timespec
}

const (
	// ownTurn is how long a thread keeps its P before it lets others run. The
	// runtime takes it away after 10 ms, by a signal at any time; to give way
	// at the beginning of a sleep leaves the most time to come back.
	ownTurn = int64(8 * time.Millisecond)

	// ownYield is the shortest sleep that has time for that.
	ownYield = int64(200 * time.Microsecond)
)

// begin takes the thread's slack away.
func (s *sleeper) begin() (undo func() error, err error) {
	s.slack = 1
	return SetTimerSlack(1)
}

// sleep sleeps until the expiry, with the given slack, and returns the reading
// of the clock that showed it to be past.
func (s *sleeper) sleep(now, expiry int64, slack time.Duration) int64 {
	if slack = max(1, min(slack, math.MaxInt)); slack != s.slack && setSlack(slack) == nil {
		s.slack = slack
	}
	if s.keepsP && now-s.yielded > ownTurn && expiry-now > ownYield {
		runtime.Gosched()
		now = clock.Now()
		s.yielded = now
	}
	s.at = clock.Kernel(expiry)
	for now < expiry {
		switch s.nanosleep() {
		case 0:
		case unix.EINTR:
			counts.interrupted.Add(1)
			if s.keepsP {
				// It may be a garbage collection, which waits for this P.
				runtime.Gosched()
			}
		default:
			return park.Until(now, expiry)
		}
		now = clock.Now()
	}
	return now
}

func (s *sleeper) nanosleep() unix.Errno {
	call := unix.Syscall6
	if s.keepsP {
		call = unix.RawSyscall6
	}
	_, _, errno := call(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&s.at)), 0, 0, 0)
	return errno
}

// claimed holds which threads have an owner. The goroutine is there to
// tell a thread from a later one with the same number.
var claimed struct {
	sync.Mutex
	by map[int]uintptr
}

func claimThread(goroutine uintptr) (release func() error, err error) {
	claimed.Lock()
	defer claimed.Unlock()
	thread := unix.Gettid()
	if claimed.by[thread] == goroutine {
		return nil, errors.New("wait: this goroutine has a Thread already")
	}
	if claimed.by == nil {
		claimed.by = map[int]uintptr{}
	}
	claimed.by[thread] = goroutine
	return func() error {
		claimed.Lock()
		defer claimed.Unlock()
		if claimed.by[thread] == goroutine {
			delete(claimed.by, thread)
		}
		return nil
	}, nil
}

func setAffinity(cpu int) (undo func() error, err error) {
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	only.Set(cpu)
	if only.Count() == 0 {
		return nil, fmt.Errorf("more CPUs than can be asked for: %w", os.ErrInvalid)
	}
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		if err == unix.EINVAL {
			return nil, fmt.Errorf("no such CPU, or none that this process may use: %w", os.ErrInvalid)
		}
		return nil, os.NewSyscallError("sched_setaffinity", err)
	}
	return func() error { return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinity(0, &before)) }, nil
}

// schedAttr returns the calling thread's scheduling policy in the form in
// which it can be set again. A kernel from 6.12 on tells the length of the
// slice also where nobody has chosen it; to set that would choose it.
func schedAttr() (*unix.SchedAttr, error) {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil, os.NewSyscallError("sched_getattr", err)
	}
	if attr.Runtime == 0 || !fair(attr) {
		return attr, nil
	}
	slice := attr.Runtime
	attr.Runtime = 0
	if err := setSchedAttr(attr); err != nil {
		return nil, err
	}
	if usual, err := unix.SchedGetAttr(0, 0); err != nil || usual.Runtime != slice {
		attr.Runtime = slice
		err = errors.Join(err, setSchedAttr(attr))
		return attr, err
	}
	return attr, nil
}

func fair(attr *unix.SchedAttr) bool {
	return attr.Policy == unix.SCHED_NORMAL || attr.Policy == unix.SCHED_BATCH
}

func setSchedAttr(attr *unix.SchedAttr) error {
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(0, attr, 0))
}

func setRealTime(priority int) (undo func() error, err error) {
	before, err := schedAttr()
	if err != nil {
		return nil, err
	}
	err = setSchedAttr(&unix.SchedAttr{Size: before.Size, Policy: unix.SCHED_FIFO, Priority: uint32(priority), Flags: before.Flags})
	if errors.Is(err, os.ErrPermission) && capable(unix.CAP_SYS_NICE) {
		return nil, fmt.Errorf("the control group has no real-time bandwidth (cpu.rt_runtime_us): %w", err)
	}
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("it takes the capability CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of %d (it is %s): %w", priority, limitOf(unix.RLIMIT_RTPRIO), err)
	}
	if err != nil {
		return nil, err
	}
	return func() error { return setSchedAttr(before) }, nil
}

// shortestSlice is the shortest that sched_setattr(2) takes.
const shortestSlice = uint64(100 * time.Microsecond)

func shortSlice() (undo func() error, err error) {
	before, err := schedAttr()
	if err != nil {
		return nil, err
	}
	if !fair(before) {
		return nil, fmt.Errorf("the thread's policy has no slice: %w", errors.ErrUnsupported)
	}
	short := *before
	short.Runtime = shortestSlice
	if err := setSchedAttr(&short); err != nil {
		return nil, err
	}
	undo = func() error { return setSchedAttr(before) }
	if now, err := unix.SchedGetAttr(0, 0); err != nil || now.Runtime != shortestSlice {
		return nil, errors.Join(fmt.Errorf("it takes Linux 6.12: %w", errors.ErrUnsupported), undo())
	}
	return undo, nil
}

func setCPULatency(us int32) (undo func() error, err error) {
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(binary.NativeEndian.AppendUint32(nil, uint32(us))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// memory is what Threads have locked.
var memory struct {
	sync.Mutex
	holders int
	before  bool // some was locked before
}

func lockMemory() (undo func() error, err error) {
	memory.Lock()
	defer memory.Unlock()
	if memory.holders == 0 {
		if memory.before, err = hasLockedMemory(); err != nil {
			return nil, err
		}
	}
	if limit := limitOf(unix.RLIMIT_MEMLOCK); limit != unlimited && !capable(unix.CAP_IPC_LOCK) {
		return nil, fmt.Errorf("it takes the capability CAP_IPC_LOCK, or an unlimited RLIMIT_MEMLOCK (it is %s): %w", limit, os.ErrPermission)
	}
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
		return nil, os.NewSyscallError("mlockall", err)
	}
	memory.holders++
	return func() error {
		memory.Lock()
		defer memory.Unlock()
		if memory.holders--; memory.holders > 0 || memory.before {
			return nil
		}
		return os.NewSyscallError("munlockall", unix.Munlockall())
	}, nil
}

// hasLockedMemory reports whether the process has locked any memory.
func hasLockedMemory() (bool, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmLck:" {
			return fields[1] != "0", nil
		}
	}
	return false, nil
}

const unlimited = "unlimited"

func limitOf(resource int) string {
	var limit unix.Rlimit
	switch err := unix.Getrlimit(resource, &limit); {
	case err != nil:
		return "unknown"
	case limit.Cur == unix.RLIM_INFINITY:
		return unlimited
	}
	return fmt.Sprint(limit.Cur)
}

// capable reports whether the calling thread has a capability.
func capable(capability uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[capability/32].Effective>>(capability%32)&1 == 1
}

// processors is what GOMAXPROCS was raised by.
var processors struct {
	sync.Mutex
	holders   int
	before    int
	automatic bool // it was the runtime's default before, which follows the machine
}

func ownProcessor() (undo func() error, err error) {
	for setting := range strings.SplitSeq(os.Getenv("GODEBUG"), ",") {
		if setting == "asyncpreemptoff=1" {
			return nil, fmt.Errorf("GODEBUG has asyncpreemptoff=1: %w", errors.ErrUnsupported)
		}
	}
	p := &processors
	p.Lock()
	defer p.Unlock()
	if p.holders == 0 {
		p.before = runtime.GOMAXPROCS(0)
		runtime.SetDefaultGOMAXPROCS()
		p.automatic = runtime.GOMAXPROCS(p.before) == p.before && os.Getenv("GOMAXPROCS") == ""
	}
	p.holders++
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	return returnProcessor, nil
}

func returnProcessor() error {
	p := &processors
	p.Lock()
	defer p.Unlock()
	p.holders--
	switch rest := runtime.GOMAXPROCS(0) - 1; {
	case p.holders == 0 && p.automatic && rest == p.before:
		runtime.SetDefaultGOMAXPROCS()
	default: // others hold one, or the program has changed it meanwhile
		runtime.GOMAXPROCS(max(1, rest))
	}
	return nil
}
