package wait_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait"
)

func init() { children["traced"] = tracedChild }

const tracedSleeps = 100

// tracedChild says which thread it sleeps on, and sleeps once it may.
func tracedChild() {
	th, err := wait.LockThread(wait.OwnProcessor())
	checkErr(err, "LockThread")
	th.Sleep(time.Microsecond) // finds out about the kernel's clock, once
	fmt.Println(unix.Gettid())
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	checkErr(err, "read")
	for range tracedSleeps {
		th.Sleep(200 * time.Microsecond)
	}
	fmt.Println("done")
	checkErr(th.Close(), "Close")
}

// syscallsOf traces a thread until it exits or makes the call that ends it,
// and returns the calls by their number.
func syscallsOf(tid int, start func(), end uint64) (map[uint64]int, error) {
	runtime.LockOSThread() // which is the tracer
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(tid); err != nil {
		return nil, os.NewSyscallError("ptrace seize", err)
	}
	if err := unix.PtraceInterrupt(tid); err != nil {
		return nil, os.NewSyscallError("ptrace interrupt", err)
	}
	calls := map[uint64]int{}
	for first := true; ; first = false {
		var status unix.WaitStatus
		if _, err := unix.Wait4(tid, &status, unix.WALL, nil); err != nil || status.Exited() || status.Signaled() {
			return calls, err
		}
		deliver := 0
		switch signal := status.StopSignal(); {
		case first:
			if err := unix.PtraceSetOptions(tid, unix.PTRACE_O_TRACESYSGOOD); err != nil {
				return calls, err
			}
			start()
		case signal == unix.SIGTRAP|0x80:
			// The head of struct ptrace_syscall_info, up to the number of the call.
			var info struct {
				op, _     uint8
				_         uint16
				_         uint32
				_, _, num uint64
			}
			if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
				return calls, os.NewSyscallError("ptrace", errno)
			}
			if info.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
				break
			}
			if info.num == end && calls[unix.SYS_CLOCK_NANOSLEEP] > 0 {
				return calls, unix.PtraceDetach(tid)
			}
			calls[info.num]++
		case status.TrapCause() <= 0: // a signal on its way
			deliver = int(signal)
		}
		if err := unix.PtraceSyscall(tid, deliver); err != nil {
			return calls, os.NewSyscallError("ptrace", err)
		}
	}
}

// traceSleeps returns the system calls of a child's sleeps by their number, and
// how long the sleeps took.
func traceSleeps(t *testing.T) (calls map[uint64]int, took time.Duration) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"=traced")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	var tid int
	_, err = fmt.Fscanln(said, &tid)
	require.NoError(t, err)

	start := time.Now()
	calls, err = syscallsOf(tid, func() { _, _ = in.Write([]byte("\n")) }, unix.SYS_WRITE)
	took = time.Since(start)
	require.NoError(t, err)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "done\n", line)
	require.NoError(t, cmd.Wait())
	return calls, took
}

// The steady state is one system call per sleep. In addition comes what the
// runtime does to preempt a thread now and then: a signal, which ends one sleep
// and has the thread sleep twice more, and the change of threads.
func TestThreadSleepsWithOneSystemCall(t *testing.T) {
	for tries := 5; ; tries-- {
		calls, took := traceSleeps(t)
		sleeps, signals, futexes := calls[unix.SYS_CLOCK_NANOSLEEP], calls[unix.SYS_RT_SIGRETURN], calls[unix.SYS_FUTEX]
		others := -sleeps
		for _, n := range calls {
			others += n
		}
		t.Logf("%d sleeps in %v: %d of clock_nanosleep(2), %d others: %v", tracedSleeps, took, sleeps, others, calls)
		assert.GreaterOrEqual(t, sleeps, tracedSleeps)
		assert.LessOrEqual(t, sleeps, tracedSleeps+2*signals, "%v", calls)
		assert.LessOrEqual(t, futexes, 4*(signals+1), "%v", calls)
		for _, none := range []uint64{unix.SYS_PRCTL, unix.SYS_GETTID, unix.SYS_CLOCK_GETTIME, unix.SYS_SCHED_YIELD, unix.SYS_TIMERFD_SETTIME} {
			assert.Zero(t, calls[none], "%v", calls)
		}
		if others < tracedSleeps/4 || took < 200*time.Millisecond || tries == 1 {
			assert.Less(t, others, tracedSleeps/4, "%v", calls)
			return
		}
		// Signals come with time, and a busy machine took ten times as long.
	}
}
