package wait_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait"
)

func init() {
	children["procs"] = procsChild
	children["collector"] = collectorChild
	children["threadsignals"] = threadSignalsChild
	children["nothread"] = noNanosleepChild
	children["fifo"] = fifoChild
	children["nopreempt"] = nopreemptChild
	children["refused"] = refusedChild
	children["unbound"] = unboundChild
	children["slack"] = slackChild
}

// A state is what a Thread may change and has to put back.
type state struct {
	slack  time.Duration
	mask   unix.CPUSet
	sched  unix.SchedAttr
	procs  int
	locked string // memory
	files  int
}

func stateNow(t *testing.T) (s state) {
	var err error
	s.slack, err = wait.TimerSlack()
	assert.NoError(t, err)
	assert.NoError(t, unix.SchedGetaffinity(0, &s.mask))
	sched, err := unix.SchedGetAttr(0, 0)
	assert.NoError(t, err)
	s.sched = *sched
	s.procs = runtime.GOMAXPROCS(0)
	s.locked = statusOf("VmLck")
	files, err := os.ReadDir("/proc/self/fd")
	assert.NoError(t, err)
	s.files = len(files)
	return s
}

// statusOf returns a line of /proc/self/status.
func statusOf(name string) string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+":") {
			return line
		}
	}
	return ""
}

// privileged reports whether this process may do all that options ask for.
func privileged() bool { return os.Geteuid() == 0 && os.Getenv("EMULATED") == "" }

// available returns the options that this host takes, with a check that each
// of them holds.
func available(t *testing.T) map[string]struct {
	option wait.ThreadOption
	holds  func(before, now state) bool
} {
	type entry = struct {
		option wait.ThreadOption
		holds  func(before, now state) bool
	}
	all := map[string]entry{
		"OnCPU":        {wait.OnCPU(firstCPU(t)), func(_, now state) bool { return now.mask.Count() == 1 && now.mask.IsSet(firstCPU(t)) }},
		"RealTime":     {wait.RealTime(7), func(_, now state) bool { return now.sched.Policy == unix.SCHED_FIFO && now.sched.Priority == 7 }},
		"LockMemory":   {wait.LockMemory(), func(before, now state) bool { return now.locked != before.locked }},
		"CPULatency":   {wait.CPULatency(20 * time.Microsecond), func(before, now state) bool { return now.files == before.files+1 }},
		"OwnProcessor": {wait.OwnProcessor(), func(before, now state) bool { return now.procs == before.procs+1 }},
		"ShortSlice":   {wait.ShortSlice(), func(_, now state) bool { return now.sched.Runtime == 100_000 }},
	}
	for name, e := range all {
		onFreshThread(func() {
			th, err := wait.LockThread(e.option)
			if err == nil {
				assert.NoError(t, th.Close())
				return
			}
			t.Logf("not to be had here: %v", err)
			assert.ErrorContains(t, err, "wait: thread option "+name)
			assert.True(t, errors.Is(err, os.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrNotExist), "%v", err)
			delete(all, name)
		})
	}
	return all
}

func firstCPU(t *testing.T) int {
	var mask unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mask))
	for cpu := range len(mask) * 64 {
		if mask.IsSet(cpu) {
			return cpu
		}
	}
	return -1
}

func TestEachOptionHoldsUntilClose(t *testing.T) {
	for name, e := range available(t) {
		for _, from := range []string{"usual", "changed"} {
			onFreshThread(func() {
				if from == "changed" { // what was there before is not the default
					mustSet(t, 77*time.Microsecond)
					assert.NoError(t, unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Runtime: 700_000}, 0))
				}
				before := stateNow(t)
				th, err := wait.LockThread(e.option)
				assert.NoError(t, err)
				now := stateNow(t)
				assert.True(t, e.holds(before, now), "%s does not hold: %+v", name, now)
				if now.sched.Policy == unix.SCHED_FIFO {
					assert.Zero(t, now.slack)
				} else {
					assert.EqualValues(t, 1, now.slack)
				}
				th.Sleep(100 * time.Microsecond)
				th.SleepRange(100*time.Microsecond, time.Millisecond)
				assert.NoError(t, th.Close())
				assert.Equal(t, before, stateNow(t), "%s from %s", name, from)
			})
		}
	}
}

func TestAllOptionsAtOnceArePutBackAfterAPanic(t *testing.T) {
	var opts []wait.ThreadOption
	all := available(t)
	for _, e := range all {
		opts = append(opts, e.option)
	}
	onFreshThread(func() {
		before := stateNow(t)
		func() {
			defer func() { assert.Equal(t, "the loop failed", recover()) }()
			th, err := wait.LockThread(opts...)
			if !assert.NoError(t, err) {
				return
			}
			defer th.Close()
			now := stateNow(t)
			for name, e := range all {
				if name != "ShortSlice" { // a real-time policy hides it
					assert.True(t, e.holds(before, now), name)
				}
			}
			th.Sleep(time.Millisecond)
			panic("the loop failed")
		}()
		assert.Equal(t, before, stateNow(t))
	})
}

func TestARefusedOptionUndoesTheOthers(t *testing.T) {
	var opts []wait.ThreadOption
	for _, e := range available(t) {
		opts = append(opts, e.option)
	}
	for name, c := range map[string]struct {
		option wait.ThreadOption
		is     error
		says   string
	}{
		"negative CPU":        {wait.OnCPU(-1), os.ErrInvalid, "OnCPU(-1)"},
		"no such CPU":         {wait.OnCPU(1000), os.ErrInvalid, "OnCPU(1000): no such CPU"},
		"CPU beyond any mask": {wait.OnCPU(1 << 20), os.ErrInvalid, "OnCPU(1048576)"},
		"priority 0":          {wait.RealTime(0), os.ErrInvalid, "RealTime(0)"},
		"priority 100":        {wait.RealTime(100), os.ErrInvalid, "RealTime(100)"},
		"negative latency":    {wait.CPULatency(-1), os.ErrInvalid, "CPULatency(-1ns)"},
		"latency of an hour":  {wait.CPULatency(time.Hour), os.ErrInvalid, "CPULatency(1h0m0s)"},
	} {
		onFreshThread(func() {
			before := stateNow(t)
			th, err := wait.LockThread(append(opts, c.option)...) // of two, the last one counts
			assert.Nil(t, th, name)
			assert.ErrorIs(t, err, c.is, name)
			assert.ErrorContains(t, err, "wait: thread option "+c.says, name)
			assert.Equal(t, before, stateNow(t), name)
			th, err = wait.LockThread() // nothing is left behind that were in its way
			if assert.NoError(t, err) {
				assert.NoError(t, th.Close())
			}
		})
	}
}

func TestAGoroutineHasOneThreadAtATime(t *testing.T) {
	onThread(t, func(th *wait.Thread) {
		before := stateNow(t)
		_, err := wait.LockThread(wait.OwnProcessor())
		assert.ErrorContains(t, err, "has a Thread already")
		assert.Equal(t, before, stateNow(t))
		th.Sleep(time.Microsecond)
	})
}

func TestCloseLeavesAnOuterLock(t *testing.T) {
	onFreshThread(func() { // which is locked itself
		thread := unix.Gettid()
		th, err := wait.LockThread()
		if assert.NoError(t, err) {
			assert.NoError(t, th.Close())
		}
		for range 100 {
			time.Sleep(10 * time.Microsecond)
			assert.Equal(t, thread, unix.Gettid())
		}
	})
}

func TestCloseUnlocksTheGoroutine(t *testing.T) {
	done := make(chan int)
	go func() {
		th, err := wait.LockThread()
		assert.NoError(t, err)
		assert.NoError(t, th.Close())
		done <- unix.Gettid()
	}()
	thread := <-done
	// A thread that were still locked would have ended with its goroutine.
	time.Sleep(20 * time.Millisecond)
	assert.Contains(t, threadIDs(), thread)
}

func TestSleepRangeIsTheKernels(t *testing.T) {
	onThread(t, func(th *wait.Thread) {
		for _, c := range []struct {
			min, max, slack time.Duration
		}{
			{time.Millisecond, 3 * time.Millisecond, 2 * time.Millisecond},
			{time.Millisecond, time.Millisecond, 1},
			{time.Millisecond, time.Microsecond, 1},
			{time.Millisecond, 1001 * time.Microsecond, time.Microsecond},
		} {
			start := time.Now()
			th.SleepRange(c.min, c.max)
			assert.GreaterOrEqual(t, time.Since(start), c.min)
			assert.Equal(t, c.slack, slack(t))
		}
		th.SleepRange(time.Millisecond, 20*time.Millisecond)
		th.Sleep(time.Microsecond)
		assert.EqualValues(t, 1, slack(t), "a sleep takes the slack away again")
	})
}

// lackPrivileges takes the calling thread's capabilities away.
func lackPrivileges() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

func TestWithoutPrivilegesTheErrorSaysWhatIsMissing(t *testing.T) {
	onFreshThread(func() {
		if !assert.NoError(t, lackPrivileges()) {
			return
		}
		var memory, priority unix.Rlimit
		assert.NoError(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &memory))
		assert.NoError(t, unix.Getrlimit(unix.RLIMIT_RTPRIO, &priority))
		before := stateNow(t)
		if priority.Cur < 50 {
			_, err := wait.LockThread(wait.OwnProcessor(), wait.RealTime(50))
			assert.ErrorIs(t, err, os.ErrPermission)
			assert.ErrorContains(t, err, fmt.Sprintf("CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of 50 (it is %d)", priority.Cur))
		}
		if memory.Cur != unix.RLIM_INFINITY {
			_, err := wait.LockThread(wait.OwnProcessor(), wait.LockMemory())
			assert.ErrorIs(t, err, os.ErrPermission)
			assert.ErrorContains(t, err, fmt.Sprintf("CAP_IPC_LOCK, or an unlimited RLIMIT_MEMLOCK (it is %d)", memory.Cur))
		}
		assert.Equal(t, before, stateNow(t))
	})
}

func TestGomaxprocsCountsTheThreads(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	const n = 3
	locked, leave := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	for range n {
		go func() {
			th, err := wait.LockThread(wait.OwnProcessor())
			assert.NoError(t, err)
			locked <- struct{}{}
			<-leave
			assert.NoError(t, th.Close())
			done <- struct{}{}
		}()
	}
	for range n {
		<-locked
	}
	assert.Equal(t, before+n, runtime.GOMAXPROCS(0))
	for i := range n {
		leave <- struct{}{}
		<-done
		assert.Equal(t, before+n-1-i, runtime.GOMAXPROCS(0))
	}
}

func TestAnAbandonedThreadGivesItsProcessorBack(t *testing.T) {
	before := stateNow(t)
	onFreshThread(func() {
		opts := []wait.ThreadOption{wait.OwnProcessor()}
		if privileged() {
			opts = append(opts, wait.CPULatency(time.Millisecond))
		}
		_, err := wait.LockThread(opts...)
		assert.NoError(t, err)
	})
	assert.Eventually(t, func() bool {
		runtime.GC()
		now := stateNow(t)
		return now.procs == before.procs && now.files == before.files
	}, 10*time.Second, 10*time.Millisecond)
}

// procsChild closes a Thread and then takes all CPUs but one away from the
// process: the runtime follows if GOMAXPROCS is automatic.
func procsChild() {
	if n := os.Getenv("WAIT_TEST_PROCS"); n != "" {
		var procs int
		_, err := fmt.Sscan(n, &procs)
		checkErr(err, "number of Ps")
		runtime.GOMAXPROCS(procs)
	}
	before := runtime.GOMAXPROCS(0)
	for range 2 {
		th, err := wait.LockThread(wait.OwnProcessor(), wait.OnCPU(0))
		checkErr(err, "LockThread")
		check(runtime.GOMAXPROCS(0) == before+1, "GOMAXPROCS is %d, it was %d", runtime.GOMAXPROCS(0), before)
		checkErr(th.Close(), "Close")
		check(runtime.GOMAXPROCS(0) == before, "GOMAXPROCS is %d, it was %d", runtime.GOMAXPROCS(0), before)
	}
	var one unix.CPUSet
	one.Set(0)
	for _, tid := range threadIDs() {
		checkErr(unix.SchedSetaffinity(tid, &one), "sched_setaffinity")
	}
	deadline := time.Now().Add(10 * time.Second)
	if os.Getenv("GOMAXPROCS")+os.Getenv("WAIT_TEST_PROCS") != "" {
		deadline = time.Now().Add(2500 * time.Millisecond) // it would have followed within a second or two
	}
	for runtime.GOMAXPROCS(0) != 1 && time.Now().Before(deadline) {
		for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); { // the runtime looks only when it is not idle
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println(before, runtime.GOMAXPROCS(0))
}

func TestGomaxprocsIsAutomaticAgainIfItWas(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("there is only one CPU to count")
	}
	cpus := runtime.NumCPU()
	for name, c := range map[string]struct {
		variable      string
		before, after int
	}{
		"automatic":              {"NOTHING", cpus, 1},
		"set by the program":     {"WAIT_TEST_PROCS", 5, 5},
		"set by the user":        {"GOMAXPROCS", 7, 7},
		"the usual, by the user": {"GOMAXPROCS", cpus, cpus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The first variable is there for the tests' own to be gone.
			out := runChild(t, "procs", "GOMAXPROCS=", fmt.Sprintf("%s=%d", c.variable, c.before))
			assert.Equal(t, fmt.Sprintln(c.before, c.after), out)
		})
	}
}

// collectorChild collects garbage while Threads sleep for ten seconds.
func collectorChild() {
	slept := make(chan struct{})
	const n = 4
	for range n {
		go func() {
			th, err := wait.LockThread(wait.OwnProcessor())
			checkErr(err, "LockThread")
			slept <- struct{}{}
			th.Sleep(10 * time.Second)
			slept <- struct{}{}
		}()
	}
	for range n {
		<-slept
	}
	time.Sleep(10 * time.Millisecond)
	for range 10 {
		runtime.GC()
	}
	select {
	case <-slept:
		check(false, "the collector waited for a sleeper")
	default:
	}
	check(wait.ReadStats().Interrupted > 0, "nobody was interrupted")
}

func TestTheCollectorDoesNotWaitForASleepingThread(t *testing.T) { runChild(t, "collector") }

// nopreemptChild has no preemption by signals, and tries to hide it.
func nopreemptChild() {
	checkErr(os.Unsetenv("GODEBUG"), "unsetenv")
	_, err := wait.LockThread(wait.OwnProcessor())
	fmt.Println(errors.Is(err, errors.ErrUnsupported), err)
}

func TestOwnProcessorWantsPreemption(t *testing.T) {
	for debug, refused := range map[string]bool{
		"asyncpreemptoff=1": true, "madvdontneed=1,asyncpreemptoff=1": true, "asyncpreemptoff=2": true, "asyncpreemptoff=01": true,
		"asyncpreemptoff=0": false, "madvdontneed=1": false,
	} {
		out := runChild(t, "nopreempt", "GODEBUG="+debug)
		if refused {
			assert.Equal(t, "true wait: thread option OwnProcessor: GODEBUG has asyncpreemptoff: unsupported operation\n", out, debug)
		} else {
			assert.Equal(t, "false <nil>\n", out, debug)
		}
	}
}

// refusedChild has the kernel refuse prctl, and then has no slack to set.
func refusedChild() {
	onFreshThread(func() {
		refuse(unix.SYS_PRCTL)
		th, err := wait.LockThread(wait.OwnProcessor())
		checkErr(err, "LockThread")
		for _, v := range threadVerbs(th) {
			late := lateness(v, time.Millisecond)
			check(late >= 0, "%s was %v early", v.name, -late)
		}
		checkErr(th.Close(), "Close")
	})
}

func TestThreadWorksWithoutPrctl(t *testing.T) { runChild(t, "refused") }

// unboundChild has the kernel refuse to undo what was done.
func unboundChild() {
	onFreshThread(func() {
		before := runtime.GOMAXPROCS(0)
		th, err := wait.LockThread(wait.OwnProcessor(), wait.OnCPU(0))
		checkErr(err, "LockThread")
		thread := unix.Gettid()
		refuse(unix.SYS_SCHED_SETAFFINITY)
		err = th.Close()
		check(errors.Is(err, os.ErrPermission), "Close: %v", err)
		check(strings.Contains(err.Error(), "undo OnCPU(0)"), "Close: %v", err)
		check(errors.Is(th.Close(), os.ErrClosed), "a second Close")
		check(runtime.GOMAXPROCS(0) == before, "GOMAXPROCS is %d, it was %d", runtime.GOMAXPROCS(0), before)
		for range 100 {
			time.Sleep(10 * time.Microsecond)
			check(unix.Gettid() == thread, "it came to run on another thread")
		}
		_, err = wait.LockThread(wait.RealTime(100))
		check(err != nil, "a priority of 100")
	})
}

func TestWhatCannotBePutBackKeepsTheGoroutineLocked(t *testing.T) { runChild(t, "unbound") }

func TestGomaxprocsThatIsSetMeanwhileStays(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	onThread(t, func(*wait.Thread) { runtime.GOMAXPROCS(before + 5) }, wait.OwnProcessor())
	assert.Equal(t, before+5, runtime.GOMAXPROCS(0))
}

func TestGomaxprocsIsNotThatOfABoundThread(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	onFreshThread(func() {
		var one unix.CPUSet
		one.Set(firstCPU(t))
		assert.NoError(t, unix.SchedSetaffinity(0, &one))
		th, err := wait.LockThread(wait.OwnProcessor())
		if assert.NoError(t, err) {
			assert.Equal(t, before+1, runtime.GOMAXPROCS(0))
			assert.NoError(t, th.Close())
		}
	})
	assert.Equal(t, before, runtime.GOMAXPROCS(0))
}

// slackChild sets the slack of all threads while one of them is a Thread's.
func slackChild() {
	onFreshThread(func() {
		th, err := wait.LockThread()
		checkErr(err, "LockThread")
		err = wait.SetProcessTimerSlack(3 * time.Millisecond)
		if errors.Is(err, errors.ErrUnsupported) {
			fmt.Println("cgo")
			return
		}
		checkErr(err, "SetProcessTimerSlack")
		th.Sleep(time.Microsecond)
		now, err := wait.TimerSlack()
		check(now == 1 && err == nil, "the Thread's slack is %v, %v", now, err)
		checkErr(th.Close(), "Close")
		now, err = wait.TimerSlack()
		check(now == 3*time.Millisecond && err == nil, "after Close the slack is %v, %v", now, err)
		fmt.Println("pure")
	})
}

func TestAThreadKeepsItsSlackFromTheProcess(t *testing.T) {
	want := "pure\n"
	if withCgo {
		want = "cgo\n"
	}
	assert.Equal(t, want, runChild(t, "slack"))
}

func TestGoexitRunsClose(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	onFreshThread(func() {
		th, err := wait.LockThread(wait.OwnProcessor())
		assert.NoError(t, err)
		defer func() { assert.NoError(t, th.Close()) }()
		runtime.Goexit()
	})
	assert.Equal(t, before, runtime.GOMAXPROCS(0))
}

// threadSignalsChild waits on Threads while signals rain on every thread and
// the collector runs.
func threadSignalsChild() {
	ctx, stop := context.WithCancel(context.Background())
	flood := startFlood(ctx)
	go func() {
		for ctx.Err() == nil {
			runtime.GC()
		}
	}()
	for _, procs := range []int{2, 1} {
		runtime.GOMAXPROCS(procs)
		for _, opts := range [][]wait.ThreadOption{nil, {wait.OwnProcessor()}} {
			onFreshThread(func() {
				th, err := wait.LockThread(opts...)
				checkErr(err, "LockThread")
				for _, v := range threadVerbs(th) {
					for _, d := range append(mixed, 20*time.Millisecond) {
						late := lateness(v, d)
						check(late >= 0, "%s(%v) was %v early", v.name, d, -late)
					}
				}
				checkErr(th.Close(), "Close")
			})
		}
	}
	stop()
	flood.wait()
	check(wait.ReadStats().Interrupted > 0, "no sleep was interrupted")
}

func TestSignalsMakeNoThreadEarly(t *testing.T) { runChild(t, "threadsignals") }

// noNanosleepChild waits on a Thread whose system call the kernel refuses.
func noNanosleepChild() {
	onFreshThread(func() {
		th, err := wait.LockThread(wait.OwnProcessor())
		checkErr(err, "LockThread")
		refuse(unix.SYS_CLOCK_NANOSLEEP)
		for _, v := range threadVerbs(th) {
			for _, d := range mixed {
				late := lateness(v, d)
				check(late >= 0, "%s(%v) was %v early", v.name, d, -late)
			}
		}
		checkErr(th.Close(), "Close")
	})
}

func TestThreadWorksWithoutNanosleep(t *testing.T) { runChild(t, "nothread") }

// fifoChild has a Thread on a thread that is real-time already.
func fifoChild() {
	onFreshThread(func() {
		checkErr(unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 3}, 0), "sched_setattr")
		th, err := wait.LockThread(wait.RealTime(5))
		checkErr(err, "LockThread")
		th.SleepRange(time.Millisecond, 2*time.Millisecond)
		checkErr(th.Close(), "Close")
		now, err := unix.SchedGetAttr(0, 0)
		checkErr(err, "sched_getattr")
		check(now.Policy == unix.SCHED_RR && now.Priority == 3, "the policy is now %+v", now)
		_, err = wait.LockThread(wait.ShortSlice())
		check(errors.Is(err, errors.ErrUnsupported), "ShortSlice for a real-time thread: %v", err)
	})
}

func TestRealTimeLeavesAnEarlierPolicy(t *testing.T) {
	if !privileged() {
		t.Skip("takes a real-time policy")
	}
	runChild(t, "fifo")
}

// A goroutine that parks gives its P away. How it waits shows in its stack.
func TestAPacerOnAThreadThatOwnsItsProcessorNeverParks(t *testing.T) {
	for _, m := range []wait.Method{wait.MethodSleep, wait.MethodHybrid} {
		var waiting sync.WaitGroup
		begun := make(chan struct{})
		waiting.Go(func() {
			thread, err := wait.LockThread(wait.OwnProcessor())
			require.NoError(t, err)
			defer func() { assert.NoError(t, thread.Close()) }()
			p := wait.NewPacer(200*time.Millisecond, wait.PaceOn(thread), wait.PaceBy(m))
			close(begun)
			mustTick(t, p)
		})
		<-begun
		for range 3 {
			time.Sleep(20 * time.Millisecond)
			assert.NotContains(t, pacerGoroutines(), "[select", m)
		}
		waiting.Wait()
	}
}

func TestAPacerOnAThreadThatOwnsItsProcessorNoticesWhatChanges(t *testing.T) {
	thread, err := wait.LockThread(wait.OwnProcessor())
	require.NoError(t, err)
	defer func() { assert.NoError(t, thread.Close()) }()
	p := wait.NewPacer(time.Hour, wait.PaceOn(thread))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	_, err = p.Wait(ctx)
	assert.Equal(t, context.DeadlineExceeded, err)
	time.AfterFunc(5*time.Millisecond, func() { p.SetPeriod(30 * time.Millisecond) })
	assert.EqualValues(t, 1, mustTick(t, p).Index)
}

// pacerGoroutines returns the stacks of the goroutines that wait for a tick.
func pacerGoroutines() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var found strings.Builder
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "(*Pacer).Wait") {
			found.WriteString(stack)
		}
	}
	return found.String()
}
