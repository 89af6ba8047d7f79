package wait

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
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
	slack   time.Duration // of the thread, since
	changes int64         // slackChanges had this value
	refused bool          // the kernel lets nobody set it
	at      unix.Timespec
}

// begin takes the thread's slack away. Where the kernel does not let it, the
// slack stays, and sleeps are later.
func (s *sleeper) begin() (undo func() error, err error) {
	s.changes = slackChanges.Load()
	begun := s.changes
	restore, err := SetTimerSlack(1)
	if err != nil {
		s.refused = true
		return func() error { return nil }, nil
	}
	s.slack = 1
	return func() error {
		err := restore()
		if err == nil && slackChanges.Load() != begun { // of the whole process, meanwhile
			err = setSlack(time.Duration(processSlack.Load()))
		}
		return err
	}, nil
}

// setSlack sets the thread's slack unless it has it already.
func (s *sleeper) setSlack(slack time.Duration) {
	slack = max(1, min(slack, math.MaxInt))
	changes := slackChanges.Load()
	if slack == s.slack && changes == s.changes || s.refused {
		return
	}
	if setSlack(slack) == nil {
		s.slack, s.changes = slack, changes
	}
}

// sleep sleeps until the expiry, with the given slack, and returns the reading
// of the clock that showed it to be past.
func (s *sleeper) sleep(now, expiry int64, slack time.Duration) int64 {
	s.setSlack(slack)
	s.at = clock.Kernel(expiry)
	for now < expiry {
		switch s.nanosleep() {
		case 0:
		case unix.EINTR:
			counts.interrupted.Add(1)
			if s.keepsP {
				// It may be a garbage collection, which waits for this P,
				// or the runtime that wants it for others.
				stepAside()
				runtime.Gosched()
			}
		default:
			return park.Until(now, expiry)
		}
		now = clock.Now()
	}
	return now
}

// aside is as long as the others that the runtime has asked to yield in the
// same moment need for it.
var aside = unix.NsecToTimespec(int64(25 * time.Microsecond))

// stepAside sleeps that long, so that they find no goroutine to take with them
// that is bound to another thread; see RATIONALE.md. Where a function checks
// its stack the goroutine would yield at once, so this one does not.
//
//go:nosplit
func stepAside() {
	unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&aside)), 0, 0, 0)
}

func (s *sleeper) nanosleep() unix.Errno {
	call := unix.Syscall6
	if s.keepsP {
		call = unix.RawSyscall6
	}
	_, _, errno := call(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, uintptr(unsafe.Pointer(&s.at)), 0, 0, 0)
	return errno
}

// threadID returns the number of the calling thread.
func threadID() int { return unix.Gettid() }

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
	if setSchedAttr(attr) != nil { // then it is as it was
		attr.Runtime = slice
		return attr, nil
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

// capable reports whether the calling thread has a capability. One in a user
// namespace, as in a container without root, does not count here.
func capable(capability uint) bool {
	users, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && !slices.Equal(strings.Fields(string(users)), []string{"0", "0", "4294967295"}) {
		return false
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[capability/32].Effective>>(capability%32)&1 == 1
}

// processors is what GOMAXPROCS was raised by.
var processors struct {
	sync.Mutex
	holders   int
	set       int  // what it was last set to
	automatic bool // it was the runtime's default before, which follows the machine
}

// What the environment was when the program started: that counts.
var startGODEBUG, startGOMAXPROCS = os.Getenv("GODEBUG"), os.Getenv("GOMAXPROCS")

// withoutPreemption reports whether the runtime sends no signals to preempt.
func withoutPreemption() bool {
	off := 0
	for setting := range strings.SplitSeq(startGODEBUG, ",") {
		if value, ok := strings.CutPrefix(setting, "asyncpreemptoff="); ok {
			off, _ = strconv.Atoi(value)
		}
	}
	return off != 0
}

func ownProcessor() (undo func() error, err error) {
	if withoutPreemption() {
		return nil, fmt.Errorf("GODEBUG has asyncpreemptoff: %w", errors.ErrUnsupported)
	}
	p := &processors
	p.Lock()
	defer p.Unlock()
	if n := runtime.GOMAXPROCS(0); p.holders == 0 {
		p.automatic = isAutomatic(n)
	} else if n != p.set {
		p.automatic = false // the program has set it meanwhile
	}
	p.holders++
	p.set = runtime.GOMAXPROCS(0) + 1
	runtime.GOMAXPROCS(p.set)
	return returnProcessor, nil
}

// isAutomatic reports whether GOMAXPROCS, which is n, follows the machine. The
// runtime only tells by what it sets it to when it is to.
func isAutomatic(n int) bool {
	if fixed, err := strconv.Atoi(startGOMAXPROCS); err == nil && fixed > 0 || n > runtime.NumCPU() {
		return false
	}
	setDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	if usual != n {
		runtime.GOMAXPROCS(n)
	}
	return usual == n
}

// setDefaultGOMAXPROCS makes GOMAXPROCS follow the machine. The runtime counts
// the CPUs of the calling thread, which may be bound to one, so it asks on
// another.
func setDefaultGOMAXPROCS() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.SetDefaultGOMAXPROCS()
	}()
	<-done
}

func returnProcessor() error {
	p := &processors
	p.Lock()
	defer p.Unlock()
	p.holders--
	switch {
	case runtime.GOMAXPROCS(0) != p.set: // the program has set it meanwhile: so be it
	case p.holders == 0 && p.automatic:
		setDefaultGOMAXPROCS()
	default:
		p.set--
		runtime.GOMAXPROCS(p.set)
	}
	return nil
}
