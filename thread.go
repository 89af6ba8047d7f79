package wait

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/precisewait/wait/internal/clock"
	"github.com/precisewait/wait/internal/park"
	"github.com/precisewait/wait/internal/pause"
	"github.com/precisewait/wait/internal/self"
)

// A Thread is an OS thread that belongs to one goroutine, for a loop that must
// be on time whatever the rest of the program does. Its sleeps are the
// kernel's own, clock_nanosleep(2) to an absolute time with a timer slack of
// 1 ns, one system call each. As [Sleep] does, they ask to be woken a little
// early, by what the quickest wake-ups take, and spin for what is left.
//
// Only the goroutine that called [LockThread] may use it; use by another one,
// or after Close, panics. (A goroutine that has ended may have left its Thread to
// one that came later and looks the same: do not keep it elsewhere.) Its methods allocate nothing, and keep the contract
// of the functions of the same name. It learns a floor of its own.
//
// Without [OwnProcessor] a sleep gives its P away, as every blocking system
// call does, and in a busy program waits to get one back.
//
// Elsewhere than on Linux the goroutine is locked to its thread, and sleeps
// as Sleep does.
type Thread struct {
	owner    uintptr // the goroutine
	id       int     // of the thread
	closed   bool
	floor    *classSet
	leads    park.Leads
	sleeper  sleeper
	undo     []undoing
	shared   *[]undoing // what concerns the whole process
	leftover runtime.Cleanup
}

// An undoing puts back what an option has changed.
type undoing struct {
	what string
	do   func() error
}

// A ThreadOption changes what [LockThread] does. The options only do what
// they say on Linux; elsewhere LockThread refuses them with
// [errors.ErrUnsupported].
type ThreadOption struct {
	name string
	step step
	do   func() (undo func() error, err error)
}

// A step is a place in the order in which the options are applied, whatever
// the order in which they are given. They are undone in the opposite order.
type step int

const (
	_             step = iota
	stepProcessor      // before the affinity, by which the runtime counts CPUs
	stepLatency        //
	stepMemory         //
	stepSlack          // always done
	stepAffinity       //
	stepSlice          //
	stepRealTime       // last, and undone first: it forces the slack to 0
	steps              //
	lastShared    = stepMemory
)

// OnCPU keeps the thread on the given CPU: sched_setaffinity(2).
func OnCPU(cpu int) ThreadOption {
	return ThreadOption{fmt.Sprintf("OnCPU(%d)", cpu), stepAffinity, func() (func() error, error) {
		if cpu < 0 {
			return nil, os.ErrInvalid
		}
		return setAffinity(cpu)
	}}
}

// RealTime runs the thread under the policy SCHED_FIFO with a priority from 1
// to 99, before everything of a lower one. It takes the capability CAP_SYS_NICE
// or a limit RLIMIT_RTPRIO of at least the priority. Under this policy
// the kernel knows no timer slack, so that [Thread.SleepRange] ends at its
// min. A thread that spins without end at such a priority takes its CPU away
// from everything else, but for the 5 % that sched_rt_runtime_us leaves.
func RealTime(priority int) ThreadOption {
	return ThreadOption{fmt.Sprintf("RealTime(%d)", priority), stepRealTime, func() (func() error, error) {
		if priority < 1 || priority > 99 {
			return nil, os.ErrInvalid
		}
		return setRealTime(priority)
	}}
}

// LockMemory keeps all memory of the process in RAM, now and in the future:
// mlockall(2). It takes the capability CAP_IPC_LOCK or an unlimited
// RLIMIT_MEMLOCK; with any other limit the Go runtime would fail once it
// reached it, so LockThread refuses that. Memory stays locked until the last
// Thread that asked for it is closed, and after that if some was locked before
// the first did.
func LockMemory() ThreadOption {
	return ThreadOption{"LockMemory", stepMemory, lockMemory}
}

// CPULatency forbids idle states whose exit takes longer than d, which counts
// in whole microseconds, on all CPUs, until Close: /dev/cpu_dma_latency held
// open. With 0 the CPUs never go idle. It takes the right to write that file.
func CPULatency(d time.Duration) ThreadOption {
	return ThreadOption{fmt.Sprintf("CPULatency(%v)", d), stepLatency, func() (func() error, error) {
		if d < 0 || d/time.Microsecond > 1<<31-1 {
			return nil, os.ErrInvalid
		}
		return setCPULatency(int32(d / time.Microsecond))
	}}
}

// OwnProcessor gives the thread a P of its own: it keeps it while it sleeps,
// and GOMAXPROCS is one more until Close, so that nobody else has one less.
// After the last Thread that asked for it is closed, GOMAXPROCS is what it was
// before, and follows the machine again if it did then.
//
// A garbage collection waits for no such sleep: its signal interrupts the
// system call, and 25 us later the thread lets it through and sleeps on. That
// signal is the runtime's asynchronous preemption, so this option is refused
// where GODEBUG has asyncpreemptoff=1. A GOMAXPROCS that the program sets
// meanwhile stays, and one that it had set to the very default is taken for
// one that follows the machine. The runtime also asks whoever has kept a P for
// 10 ms to let others run; if more goroutines never yield than GOMAXPROCS was
// before, one of them may then take this P for 10 ms.
func OwnProcessor() ThreadOption {
	return ThreadOption{"OwnProcessor", stepProcessor, ownProcessor}
}

// ShortSlice gives the thread the shortest time slice there is, 100 us, so that
// the kernel's scheduler (EEVDF) lets it run sooner after it woke up beside
// others that are busy: the runtime of sched_setattr(2) for SCHED_OTHER. It
// takes Linux 6.12 and no privilege.
func ShortSlice() ThreadOption {
	return ThreadOption{"ShortSlice", stepSlice, shortSlice}
}

// LockThread locks the calling goroutine to its OS thread, as
// [runtime.LockOSThread] does, sets the thread's timer slack to 1 ns, applies
// the options and returns the thread. Of several options of the same name the
// last one counts.
//
// Programs that the goroutine starts inherit what the options have done to its
// thread. Where the kernel does not let the slack be changed, it stays, and
// sleeps are later by it; so they are if the program sets the thread's slack
// by other means than this package.
//
// If an option is refused, the error names it, wraps the reason, and all that
// was changed is undone: the reason is [os.ErrInvalid] for an argument that can
// never be right, [errors.ErrUnsupported] for what this system does not have,
// [os.ErrPermission] for a privilege that is missing. A goroutine can have one
// Thread at a time.
//
// The caller closes the thread, best by defer, which a panic runs too. If
// the goroutine ends without, its OS thread ends with it, and what
// concerned the whole process is undone once the Thread is garbage.
func LockThread(opts ...ThreadOption) (*Thread, error) {
	runtime.LockOSThread()
	t := &Thread{owner: self.Goroutine(), id: threadID(), floor: newClassSet(), shared: new([]undoing)}
	if err := t.take(opts); err != nil {
		left := t.giveBack()
		if left == nil {
			runtime.UnlockOSThread()
		}
		return nil, errors.Join(err, left)
	}
	t.leftover = runtime.AddCleanup(t, func(shared *[]undoing) { _ = undoAll(shared) }, t.shared)
	return t, nil
}

// take applies the options, in the order of their steps.
func (t *Thread) take(opts []ThreadOption) error {
	release, err := t.claim()
	if err != nil {
		return err
	}
	*t.shared = append(*t.shared, undoing{"the claim", release})

	var plan [steps]ThreadOption
	for _, o := range opts {
		plan[o.step] = o
	}
	plan[stepSlack] = ThreadOption{"timer slack", stepSlack, t.sleeper.begin}
	for _, o := range plan {
		if o.do == nil {
			continue
		}
		undo, err := o.do()
		if err != nil {
			return fmt.Errorf("wait: thread option %s: %w", o.name, err)
		}
		list := &t.undo
		if o.step <= lastShared {
			list = t.shared
		}
		*list = append(*list, undoing{o.name, undo})
	}
	t.sleeper.keepsP = plan[stepProcessor].do != nil
	return nil
}

// claimed holds which goroutines have a Thread, and on which thread, which
// tells a goroutine from a later one that has the same number.
var claimed struct {
	sync.Mutex
	on map[uintptr]int
}

// claim refuses a goroutine that has a Thread already.
func (t *Thread) claim() (release func() error, err error) {
	claimed.Lock()
	defer claimed.Unlock()
	owner, id := t.owner, t.id
	if on, has := claimed.on[owner]; has && on == id {
		return nil, errors.New("wait: this goroutine has a Thread already")
	}
	if claimed.on == nil {
		claimed.on = map[uintptr]int{}
	}
	claimed.on[owner] = id
	return func() error {
		claimed.Lock()
		defer claimed.Unlock()
		if claimed.on[owner] == id {
			delete(claimed.on, owner)
		}
		return nil
	}, nil
}

// giveBack undoes everything, the last first.
func (t *Thread) giveBack() error {
	return errors.Join(undoAll(&t.undo), undoAll(t.shared))
}

func undoAll(list *[]undoing) error {
	var errs []error
	for _, u := range slices.Backward(*list) {
		if err := u.do(); err != nil {
			errs = append(errs, fmt.Errorf("wait: undo %s: %w", u.what, err))
		}
	}
	*list = nil
	return errors.Join(errs...)
}

// Close puts back what [LockThread] has changed, and unlocks the goroutine. The
// goroutine that called LockThread has to do it; from elsewhere it changes
// nothing and returns an error. Closed again it returns [os.ErrClosed]. If
// something cannot be put back, the error says what, and the goroutine stays
// locked to its thread, so that nobody else comes to run on that.
func (t *Thread) Close() error {
	if self.Goroutine() != t.owner || threadID() != t.id {
		return errors.New("wait: Thread closed by another goroutine than the one that locked it")
	}
	if t.closed {
		return fmt.Errorf("wait: Thread: %w", os.ErrClosed)
	}
	t.closed = true
	t.leftover.Stop()
	if err := t.giveBack(); err != nil {
		return err
	}
	runtime.UnlockOSThread()
	return nil
}

// Floor returns the lateness of this thread's sleeps as learned so far. What
// concerns the clock is that of [CurrentFloor].
func (t *Thread) Floor() Floor {
	f := CurrentFloor()
	f.Wakeup, f.Classes = threadWakeup, t.floor.figures()
	return f
}

// Sleep is the package's [Sleep] on this thread: late by about the jitter of
// the kernel's wake-ups.
func (t *Thread) Sleep(d time.Duration) {
	t.check()
	within(d, t.sleep)
}

// SleepUntil is [Thread.Sleep] until when. A time in the past returns at once.
func (t *Thread) SleepUntil(when time.Time) {
	t.check()
	until(when, t.sleep)
}

// SleepRange sleeps for at least min and leaves it to the kernel to end the
// sleep at any time until max, with any other timer of the whole system:
// clock_nanosleep(2) with an expiry of min and a timer slack of max - min, the
// kernel's usleep_range. A max below min counts as min. The slack stays until
// the next sleep that needs another, which costs one more system call.
func (t *Thread) SleepRange(min, max time.Duration) {
	t.check()
	within(min, func(now, soft int64) int64 {
		counts.sleepRange.Add(1)
		return t.sleeper.sleep(now, soft, time.Duration(clock.After(now, max)-soft))
	})
}

// Spin is the package's [Spin].
func (t *Thread) Spin(d time.Duration) {
	t.check()
	within(d, spin)
}

// Hybrid is the package's [Hybrid] on this thread, by its own floor. The
// budget that bounds Hybrid in crowds does not concern it.
func (t *Thread) Hybrid(d time.Duration) {
	t.check()
	within(d, t.hybrid)
}

// HybridUntil is [Thread.Hybrid] until when. A time in the past returns at once.
func (t *Thread) HybridUntil(when time.Time) {
	t.check()
	until(when, t.hybrid)
}

// check panics if this is not the thread's goroutine, or no thread any more.
func (t *Thread) check() {
	if self.Goroutine() != t.owner {
		panic("wait: Thread used by another goroutine than the one that locked it")
	}
	if t.closed {
		panic("wait: Thread used after Close")
	}
}

func (t *Thread) sleep(now, deadline int64) int64 {
	counts.sleep.Add(1)
	length := deadline - now
	class := t.floor.of(length)
	class.settle(now)
	expiry := deadline - t.leads.Of(length)
	now = t.sleeper.sleep(now, expiry, 1)
	t.leads.Learn(length, now-expiry)
	class.note(now - expiry)
	for deadline-now > exactly {
		pause.Core()
		now = clock.Now()
	}
	return now
}

func (t *Thread) hybrid(now, deadline int64) int64 {
	counts.hybrid.Add(1)
	class := t.floor.of(deadline - now)
	if rest, probe := class.plan(deadline - now); rest > 0 {
		wake := now + rest
		now = t.sleeper.sleep(now, wake, 1)
		if probe {
			class.learnProbe(now - wake)
		} else {
			class.learn(now - wake)
		}
	}
	pause.Callers()
	last, _ := spinUntil(now, deadline, nil)
	return last
}
