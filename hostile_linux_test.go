package wait_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait"
)

func init() {
	children["signals"] = signalsChild
	children["descriptors"] = descriptorsChild
	children["seccomp"] = seccompChild
	children["stopped"] = stoppedChild
	children["pacerstopped"] = pacerStoppedChild
	children["hundredthousand"] = hundredThousandChild
	children["import"] = importChild
	children["few"] = fewChild
	children["tight"] = tightChild
}

// check ends a child with a message unless ok.
func check(ok bool, format string, args ...any) {
	if !ok {
		fmt.Printf(format+"\n", args...)
		os.Exit(1)
	}
}

func checkErr(err error, what string) { check(err == nil, "%s: %v", what, err) }

// checkVerbs has every verb wait for every mixed length, from several
// goroutines, and checks that none is early.
func checkVerbs() {
	var wg sync.WaitGroup
	for _, v := range verbs {
		wg.Go(func() {
			for _, d := range mixed {
				late := lateness(v, d)
				check(late >= 0, "%s(%v) was %v early", v.name, d, -late)
			}
		})
	}
	wg.Wait()
}

// A flood sends SIGURG and SIGUSR1 to every thread until its context is done.
type flood struct {
	sent, taken atomic.Int64
	sender      sync.WaitGroup
}

func startFlood(ctx context.Context) *flood {
	f := new(flood)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1)
	go func() {
		for range signals {
			f.taken.Add(1)
		}
	}()
	f.sender.Go(func() {
		pid := os.Getpid()
		for ctx.Err() == nil {
			for _, tid := range threadIDs() {
				for _, sig := range []unix.Signal{unix.SIGURG, unix.SIGUSR1} {
					if unix.Tgkill(pid, tid, sig) == nil {
						f.sent.Add(1)
					}
				}
			}
			time.Sleep(20 * time.Microsecond)
		}
	})
	return f
}

// wait waits for the last signal, and checks that there were enough.
func (f *flood) wait() {
	f.sender.Wait()
	check(f.sent.Load() > 1000 && f.taken.Load() > 0, "only %d signals were sent, %d taken", f.sent.Load(), f.taken.Load())
}

// signalsChild waits while signals rain on every thread.
func signalsChild() {
	ctx, stop := context.WithCancel(context.Background())
	flood := startFlood(ctx)
	for _, procs := range []int{2, 1} {
		runtime.GOMAXPROCS(procs)
		for range 3 {
			checkVerbs()
		}
		// The classic: one 20 ms sleep through the flood. Not early, and no
		// drift from sleeping the remaining time again and again, which with
		// 50 us for each signal would take minutes.
		for _, v := range verbs {
			late := lateness(v, 20*time.Millisecond)
			check(late >= 0, "%s was %v early", v.name, -late)
			check(late < 20*time.Second, "%s was %v late", v.name, late)
		}
	}
	stop()
	flood.wait()
}

func threadIDs() (ids []int) {
	list, err := os.ReadDir("/proc/self/task")
	checkErr(err, "list threads")
	for _, e := range list {
		var id int
		if _, err := fmt.Sscan(e.Name(), &id); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestSignalsMakeNoVerbEarly(t *testing.T) { runChild(t, "signals") }

// descriptorsChild has a limit of 20 descriptors, and all of them taken.
func descriptorsChild() {
	// The runtime's own are opened before.
	time.Sleep(time.Millisecond)
	checkErr(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 20, Max: 20}), "setrlimit")
	var files []*os.File
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			break
		}
		files = append(files, f)
	}
	check(len(files) > 0, "no file could be opened at all")
	checkVerbs()
	s := wait.ReadStats()
	check(s.Wakeup == wait.WakeupRuntime && s.Refused > 0 && s.AlarmsOpen == 0, "stats do not tell: %+v", s)
	check(wait.CurrentFloor().Wakeup == wait.WakeupRuntime, "the floor does not tell")

	// A program that has room again gets its kernel timers back.
	for _, f := range files {
		f.Close()
	}
	for end := time.Now().Add(10 * time.Second); wait.ReadStats().AlarmsOpen == 0; wait.Sleep(10 * time.Millisecond) {
		check(time.Now().Before(end), "no alarm was opened after room had been made")
	}
	checkVerbs()
	check(wait.ReadStats().Wakeup == wait.WakeupTimerfd, "stats do not tell that timerfd is back")

	// And leaves room for others.
	list, err := os.ReadDir("/proc/self/fd")
	checkErr(err, "list descriptors")
	check(len(list) < 20, "%d descriptors in use", len(list))
}

func TestWaitsWorkWithoutDescriptors(t *testing.T) { runChild(t, "descriptors") }

// refuse has the kernel refuse a system call to the whole process from now on.
func refuse(call uint32) {
	const load, jumpEqual, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const seccompSetModeFilter, seccompFilterFlagTSync = 1, 1
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the number of the system call
		{Code: jumpEqual, K: call, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	checkErr(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompSetModeFilter, seccompFilterFlagTSync, uintptr(unsafe.Pointer(&program)))
	check(errno == 0, "seccomp: %v", errno)
}

// seccompChild has timerfd_create refused by a filter.
func seccompChild() {
	refuse(unix.SYS_TIMERFD_CREATE)
	_, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, 0)
	check(err == unix.EPERM, "the filter does not work: %v", err)
	checkVerbs()
	s := wait.ReadStats()
	check(s.Wakeup == wait.WakeupRuntime && s.Refused > 0, "stats do not tell: %+v", s)
	f, err := wait.Calibrate(context.Background())
	checkErr(err, "calibrate")
	check(f.Wakeup == wait.WakeupRuntime && f.Tick == 0, "the floor does not tell: %v", f)
	n := 0
	err = wait.PollTimeout(func() bool { n++; return n == 3 }, 100*time.Microsecond, time.Minute)
	checkErr(err, "poll")
}

func TestWaitsWorkWithoutTimerfd(t *testing.T) { runChild(t, "seccomp") }

// stoppedChild learns the floor, says so, is stopped in the middle of a wait,
// and then looks whether it was early or believes that floor no longer.
func stoppedChild() {
	for range 150 {
		wait.Hybrid(500 * time.Microsecond)
		wait.Sleep(500 * time.Microsecond)
	}
	before := wait.CurrentFloor()
	fmt.Println("ready")
	var wg sync.WaitGroup
	start := time.Now()
	for _, v := range verbs {
		wg.Go(func() {
			late := lateness(v, 100*time.Millisecond)
			check(late >= 0, "%s was %v early", v.name, -late)
		})
	}
	for time.Since(start) < 300*time.Millisecond { // so that it is stopped in these too
		wait.Hybrid(500 * time.Microsecond)
		wait.Sleep(500 * time.Microsecond)
	}
	// Before the samples of the stop are forgotten. Loosely: what it would have
	// left behind is its whole second, in each class that slept through it.
	after := wait.CurrentFloor()
	wg.Wait()
	check(time.Since(start) > 900*time.Millisecond, "it was not stopped: %v", time.Since(start))
	for _, d := range []time.Duration{500 * time.Microsecond, time.Millisecond} {
		check(after.Lateness(d, 0.99) < before.Lateness(d, 0.99)+100*time.Millisecond, "the floor is poisoned:\n%v\nit was\n%v", after, before)
	}
	fmt.Println("done")
}

func TestStoppedProcessIsNotEarlyAndKeepsItsFloor(t *testing.T) { runStopped(t, "stopped") }

// runStopped runs a child that is stopped for a second when it says that it is
// ready, and says in the end that it is done.
func runStopped(t *testing.T, name string) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+name)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said = append(said, lines.Text())
		if lines.Text() == "ready" {
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
			time.Sleep(time.Second)
			require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
		}
	}
	require.NoError(t, cmd.Wait(), "%s", strings.Join(said, "\n"))
	assert.Equal(t, "done", said[len(said)-1])
}

// pacerStoppedChild has Pacers of all ways tick for a while, in the middle of
// which it is stopped.
func pacerStoppedChild() {
	var ticking, pacers sync.WaitGroup
	ticking.Add(4)
	for name, opts := range map[string][]wait.PacerOption{
		"Sleep": nil, "Hybrid": {wait.PaceBy(wait.MethodHybrid)}, "Spin": {wait.PaceBy(wait.MethodSpin)}, "Thread": nil,
	} {
		pacers.Go(func() {
			period := 2 * time.Millisecond
			if name == "Hybrid" { // which goes by a class of its own then
				period = 5 * time.Millisecond
			}
			if name == "Thread" {
				thread, err := wait.LockThread()
				checkErr(err, "LockThread")
				defer func() { checkErr(thread.Close(), "Close") }()
				opts = append(opts, wait.PaceOn(thread))
			}
			p := wait.NewPacer(period, opts...)
			var first time.Time
			var index int64
			stops := 0 // that were one tick each; a busy host may make more of them
			for after := 0; after < 50; after += min(stops, 1) {
				tick, err := p.Wait(context.Background())
				checkErr(err, name)
				if first.IsZero() {
					ticking.Done()
					first = tick.Scheduled.Add(-time.Duration(tick.Index) * period)
				}
				check(!time.Now().Before(tick.Scheduled), "%s: early", name)
				check(tick.Scheduled.Equal(first.Add(time.Duration(tick.Index)*period)), "%s: tick %+v has left the phase", name, tick)
				check(tick.Index == index+1+tick.Missed, "%s: tick %+v after %d", name, tick, index)
				if index = tick.Index; time.Duration(tick.Missed)*period > 800*time.Millisecond {
					stops++
				}
			}
		})
	}
	ticking.Wait()
	fmt.Println("ready")
	pacers.Wait()
	after := wait.CurrentFloor()
	for _, d := range []time.Duration{2 * time.Millisecond, 5 * time.Millisecond} {
		// Loosely, as above: the stop would have left nearly its whole second.
		check(after.Lateness(d, 0.9) < 700*time.Millisecond, "the floor is poisoned:\n%v", after)
	}
	fmt.Println("done")
}

func TestStoppedPacerTicksOnceAndKeepsItsPhase(t *testing.T) { runStopped(t, "pacerstopped") }

// hundredThousandChild has 100,000 goroutines asleep at once.
func hundredThousandChild() {
	n := int64(100_000)
	if underRace {
		n = 5000
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.OtherSys + m.MSpanSys + m.BuckHashSys)
	}
	// What a goroutine costs that only exists is known from as many others.
	gate := make(chan struct{})
	var idle sync.WaitGroup
	for range n {
		idle.Go(func() { <-gate })
	}
	for int64(runtime.NumGoroutine()) < n {
		runtime.Gosched()
	}
	close(gate)
	idle.Wait()
	before := heap()

	// On a busy host the first may wake up before the last has fallen asleep;
	// then they are to sleep for longer.
	var asleep sync.WaitGroup
	var start time.Time
	d := 3 * time.Second
	for ; ; d *= 3 {
		start = time.Now()
		for range n {
			asleep.Go(func() {
				from := time.Now()
				wait.Sleep(d)
				check(time.Since(from) >= d, "early")
			})
		}
		for wait.ReadStats().Parked < n && time.Since(start) < d {
			time.Sleep(time.Millisecond)
		}
		if time.Since(start) < d-time.Second {
			break
		}
		check(d < time.Minute, "they do not fall asleep")
		asleep.Wait()
	}
	each := (heap() - before) / n
	threads, err := os.ReadDir("/proc/self/task")
	checkErr(err, "list threads")
	// The kernel's timers are set when the end is near.
	time.Sleep(time.Until(start.Add(d - 200*time.Millisecond)))
	timers := timerfdsOpen()
	asleep.Wait()
	timers = max(timers, timerfdsOpen())
	fmt.Printf("%d bytes for each of %d sleepers, %d threads, %d timerfds\n", each, n, len(threads), timers)
	check(each < 300 || underRace, "too much")
	check(timers > 0 && timers <= 9, "%d timerfds", timers)
	check(len(threads) <= runtime.GOMAXPROCS(0)+6, "too many threads")
}

func TestHundredThousandSleepers(t *testing.T) { t.Log(runChild(t, "hundredthousand")) }

func TestCancelLeavesNoDescriptor(t *testing.T) {
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		var waits sync.WaitGroup
		for range 20 {
			waits.Go(func() { _ = wait.SleepContext(ctx, time.Second) })
			waits.Go(func() { _ = wait.HybridContext(ctx, time.Second) })
			waits.Go(func() {
				_ = wait.PollTimeout(func() bool { return false }, 100*time.Millisecond, 0, wait.PollContext(ctx))
			})
		}
		waits.Wait()
		cancel()
	}
	assert.LessOrEqual(t, timerfdsOpen(), 9)
}

// importChild has done nothing but import the package.
func importChild() {
	check(runtime.NumGoroutine() == 1, "%d goroutines at import", runtime.NumGoroutine())
	list, err := os.ReadDir("/proc/self/fd")
	checkErr(err, "list descriptors")
	for _, e := range list {
		target, _ := os.Readlink("/proc/self/fd/" + e.Name())
		check(!strings.Contains(target, "timerfd"), "a timerfd at import")
	}
	var used unix.Rusage
	checkErr(unix.Getrusage(unix.RUSAGE_SELF, &used), "getrusage")
	check(used.Utime.Nano()+used.Stime.Nano() < int64(500*time.Millisecond), "the program took %+v to start", used)
	s := wait.ReadStats()
	check(s.AlarmsOpen == 0 && s.Sleeps == 0 && s.Spun == 0, "work at import: %+v", s)
}

// tightChild has all but the last descriptors taken before the runtime needs
// any for itself.
func tightChild() {
	checkErr(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 20, Max: 20}), "setrlimit")
	for {
		if _, err := unix.Dup(0); err != nil {
			break
		}
	}
	checkErr(unix.Close(19), "close")
	checkErr(unix.Close(18), "close")
	checkVerbs() // the runtime takes both for its poller
	s := wait.ReadStats()
	check(s.Wakeup == wait.WakeupRuntime && s.Refused > 0, "stats do not tell: %+v", s)
	time.Sleep(1100 * time.Millisecond)
	s = wait.ReadStats()
	check(s.Wakeup == wait.WakeupRuntime, "stats do not tell any more: %+v", s)
}

func TestTheRuntimeGetsItsDescriptorsFirst(t *testing.T) { runChild(t, "tight") }

// timerfdsOpen returns how many timerfds this process has.
func timerfdsOpen() (n int) {
	list, err := os.ReadDir("/proc/self/fd")
	checkErr(err, "list descriptors")
	for _, e := range list {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(target, "timerfd") {
			n++
		}
	}
	return n
}

func TestImportDoesNothing(t *testing.T) { runChild(t, "import") }

// fewChild waits in crowds and alone, and counts its threads.
func fewChild() {
	alone(sleep, 100*time.Microsecond, 100)
	alone(hybrid, time.Millisecond, 100)
	alone(spin, 100*time.Microsecond, 100)
	crowd(sleep, 5*time.Millisecond, 2000, 4, true)
	crowd(hybrid, 5*time.Millisecond, 500, 4, false)
	crowd(way{wait: func(d time.Duration) { wait.SleepRange(d, 2*d) }}, time.Millisecond, 500, 10, false)
	n := len(threadIDs())
	check(n <= runtime.GOMAXPROCS(0)+6, "%d threads", n)
}

func TestThreadsStayFew(t *testing.T) { runChild(t, "few") }
