package doctor

// A subject is what a finding is about: everything in it that is the same on
// every host.
type subject struct {
	name               string
	what, cost, change string
	sources            []string // where it is looked for
}

// finding returns the finding on s with the given verdict.
func (s subject) finding(v Verdict, value string) Finding {
	return Finding{
		Name:    s.name,
		Verdict: v,
		Value:   value,
		What:    s.what,
		Cost:    s.cost,
		Change:  s.change,
		Sources: s.sources,
	}
}

// unknown returns the finding on s that it could not be read.
func (s subject) unknown(why string) Finding {
	f := s.finding(Unknown, "")
	f.Why = why
	return f
}

const (
	cpuDir    = "/sys/devices/system/cpu"
	cgroupDir = "/sys/fs/cgroup"
)

// The names that the readers of a host are found by.
const (
	timerSlack     = "timer slack"
	timers         = "timers"
	tickRate       = "tick rate"
	clockSource    = "clock source"
	preemption     = "preemption"
	isolatedCPUs   = "isolated CPUs"
	ticklessCPUs   = "tickless CPUs"
	callbackFree   = "RCU callbacks"
	nmiWatchdog    = "NMI watchdog"
	realTimeShare  = "real-time share"
	idleStates     = "idle states"
	idleGovernor   = "idle governor"
	freqGovernor   = "frequency governor"
	multithreading = "SMT"
	hypervisor     = "hypervisor"
	stolenTime     = "steal time"
	hugePages      = "transparent huge pages"
	swapping       = "swappiness"
	numaBalancing  = "NUMA balancing"
	cpuQuota       = "CPU quota"
	throttling     = "throttling"
	priorityLimit  = "real-time priority limit"
	memoryLimit    = "locked memory limit"
	fileLimit      = "open files limit"
	capabilities   = "capabilities"
)

// subjects holds what every report has a finding on, in its order.
var subjects = []subject{{
	name:    timerSlack,
	what:    "How late the kernel may end a thread's sleep in order to save wake-ups. Each thread has its own, and gives it to the threads it starts.",
	cost:    "The whole slack on every nanosleep, select, poll, epoll and futex time-out, unless another interrupt comes first. A timerfd and a real-time thread have none.",
	change:  "wait.SetTimerSlack or wait.SetProcessTimerSlack with 1 ns; from outside: echo 1 > /proc/TID/timerslack_ns.",
	sources: []string{"/proc/self/task", "/proc/TID/timerslack_ns"},
}, {
	name:    timers,
	what:    "Whether timers have an interrupt of their own (high-resolution) or wait for the next tick (tick-driven).",
	cost:    "On a tick-driven host every sleep ends on a tick: up to a whole tick late, whatever was asked for.",
	change:  "Boot without highres=off, with a kernel that has CONFIG_HIGH_RES_TIMERS, and with a clock source that is fit for them (tsc, not jiffies).",
	sources: []string{"clock_getres(CLOCK_MONOTONIC)"},
}, {
	name:    tickRate,
	what:    "HZ, how often a busy CPU is interrupted by the scheduler's tick.",
	cost:    "With tick-driven timers, 1/HZ is the floor of every sleep. With high-resolution timers no sleep waits for the tick; it bounds how long a busy goroutine's thread keeps its CPU, and takes some microseconds from a spin each time.",
	change:  "It is fixed when the kernel is built (CONFIG_HZ). High-resolution timers make it matter little.",
	sources: []string{"clock_getres(CLOCK_MONOTONIC)", "/proc/timer_list", "/proc/config.gz", "/boot/config-RELEASE"},
}, {
	name:    clockSource,
	what:    "The counter that every reading of the clock is taken from, and what one reading takes here.",
	cost:    "A spin is late by up to one reading. Counters outside the processor (hpet, acpi_pm) need a system call and take a microsecond or more.",
	change:  "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource if it is among the available; clocksource=tsc tsc=reliable at boot if the kernel gave it up without reason.",
	sources: []string{"/sys/devices/system/clocksource/clocksource0/current_clocksource", "clock_gettime(CLOCK_MONOTONIC)"},
}, {
	name:    preemption,
	what:    "Where the kernel lets a woken thread take the CPU from kernel code that is running: nearly anywhere (PREEMPT_RT), outside of locks (full), at the tick (lazy), or where it offers to (voluntary, none).",
	cost:    "A woken sleeper waits until the running system call of another thread gives way: microseconds with full and PREEMPT_RT, up to milliseconds with lazy, voluntary and none.",
	change:  "preempt=full at boot, if the kernel has PREEMPT_DYNAMIC; for hard limits a PREEMPT_RT kernel.",
	sources: []string{"/sys/kernel/realtime", "/sys/kernel/debug/sched/preempt", "/proc/sys/kernel/version", "/proc/cmdline", "/proc/config.gz", "/boot/config-RELEASE"},
}, {
	name:    isolatedCPUs,
	what:    "CPUs that the scheduler puts no thread on unless the thread asks for them.",
	cost:    "Without one, any other thread may run where the sleeper wakes or the spinner spins: up to milliseconds, in the tail.",
	change:  "isolcpus=LIST at boot, or a cgroup with cpuset.cpus.partition=isolated; then bind the waiting thread to a CPU of it.",
	sources: []string{cpuDir + "/isolated"},
}, {
	name:    ticklessCPUs,
	what:    "CPUs that take no tick while one thread alone runs on them (nohz_full).",
	cost:    "Elsewhere a tick takes some microseconds from a spin, HZ times a second.",
	change:  "nohz_full=LIST at boot for the isolated CPUs, with a kernel that has CONFIG_NO_HZ_FULL.",
	sources: []string{cpuDir + "/nohz_full", "/proc/cmdline"},
}, {
	name:    callbackFree,
	what:    "CPUs that leave the callbacks of RCU, the kernel's deferred freeing, to threads elsewhere (rcu_nocbs; nohz_full includes it).",
	cost:    "Elsewhere callbacks run in a softirq on the CPU that made them, and can hold up a wake-up for some 100 us.",
	change:  "rcu_nocbs=LIST at boot for the isolated CPUs, with a kernel that has CONFIG_RCU_NOCB_CPU.",
	sources: []string{"/proc/cmdline", cpuDir + "/nohz_full", "/proc/config.gz", "/boot/config-RELEASE"},
}, {
	name:    nmiWatchdog,
	what:    "A performance counter that interrupts each busy CPU every few seconds, past all locks, to see whether it hangs.",
	cost:    "Some microseconds each time, on isolated CPUs too.",
	change:  "sysctl kernel.nmi_watchdog=0, or nmi_watchdog=0 at boot.",
	sources: []string{"/proc/sys/kernel/nmi_watchdog"},
}, {
	name:    realTimeShare,
	what:    "How much of each period real-time threads may run (sched_rt_runtime_us of sched_rt_period_us); since Linux 6.12 what the fair server leaves them, which runs other threads for its share of each second if they would have starved.",
	cost:    "A real-time thread that spins for longer loses its CPU for the rest of the period, 50 ms of each second by default. One that mostly sleeps loses nothing.",
	change:  "sysctl kernel.sched_rt_runtime_us=-1; since Linux 6.12 also echo 0 > /sys/kernel/debug/sched/fair_server/cpuN/runtime. Then a real-time thread that never sleeps holds its CPU for ever.",
	sources: []string{"/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us", "/sys/kernel/debug/sched/fair_server/cpuN"},
}, {
	name:    idleStates,
	what:    "The states that an idle CPU may enter, and how long it takes to leave the deepest of them. A limit held in /dev/cpu_dma_latency rules out those above it.",
	cost:    "A sleep that ends on an idle CPU is late by the exit latency of the state it was in, and runs slower at first, with cold caches.",
	change:  "Hold /dev/cpu_dma_latency open with a lower limit; or disable single states in " + cpuDir + "/cpuN/cpuidle/stateN/disable; or intel_idle.max_cstate=1, processor.max_cstate=1 at boot.",
	sources: []string{cpuDir + "/cpuN/cpuidle/stateN", "/dev/cpu_dma_latency"},
}, {
	name:    idleGovernor,
	what:    "What picks the idle state (the governor), and what enters it (the driver). haltpoll is for virtual machines: it polls for a while before it hands the CPU to the host.",
	cost:    "A governor that picks too deep a state for a short sleep costs that state's exit latency. ladder, and haltpoll that does not poll, do so regularly.",
	change:  "echo teo (or menu; haltpoll in a virtual machine) > " + cpuDir + "/cpuidle/current_governor; echo 200000 > /sys/module/haltpoll/parameters/guest_halt_poll_ns.",
	sources: []string{cpuDir + "/cpuidle/current_governor", cpuDir + "/cpuidle/current_driver", "/sys/module/haltpoll/parameters/guest_halt_poll_ns"},
}, {
	name:    freqGovernor,
	what:    "What sets the clock frequency of each CPU.",
	cost:    "With any but performance, a CPU that was asleep wakes slow and is sped up only after some milliseconds of work: the code between the timer and your return takes up to several times as long.",
	change:  "cpupower frequency-set -g performance, or write it to " + cpuDir + "/cpuN/cpufreq/scaling_governor.",
	sources: []string{cpuDir + "/cpuN/cpufreq/scaling_governor"},
}, {
	name:    multithreading,
	what:    "Whether cores run two threads or more at once (SMT, Hyper-Threading).",
	cost:    "What runs on the other thread of the core takes up to half of its speed, and makes the path from timer to return jitter.",
	change:  "echo off > " + cpuDir + "/smt/control, or nosmt at boot; or isolate both threads of a core and leave one idle.",
	sources: []string{cpuDir + "/smt/active", cpuDir + "/smt/control"},
}, {
	name:    hypervisor,
	what:    "Whether this is a virtual machine.",
	cost:    "A timer is armed and an idle CPU is woken through the host, some 10 us each; and the host takes the CPU away for milliseconds at times, from spins too.",
	change:  "Measure on bare metal; or have the host give each virtual CPU a physical one of its own, and no time to others.",
	sources: []string{"/proc/cpuinfo", "/sys/hypervisor/type", "/sys/class/dmi/id"},
}, {
	name:    stolenTime,
	what:    "The time for which the CPUs of a virtual machine had work but the host ran something else. Not every host tells it; then it is 0.",
	cost:    "Each stretch is added to whatever wait it falls on, most often some milliseconds.",
	change:  "Move to a host with fewer neighbours, or to dedicated CPUs.",
	sources: []string{"/proc/stat"},
}, {
	name:    hugePages,
	what:    "Whether the kernel makes huge pages of memory that did not ask for them.",
	cost:    "With always, a page fault may clear or compact 2 MiB, and khugepaged stops the program's page tables while it joins pages: up to milliseconds, rarely.",
	change:  "echo madvise (or never) > /sys/kernel/mm/transparent_hugepage/enabled; transparent_hugepage=madvise at boot.",
	sources: []string{"/sys/kernel/mm/transparent_hugepage/enabled"},
}, {
	name:    swapping,
	what:    "How readily the kernel swaps out memory of programs that it finds idle, and whether there is swap at all.",
	cost:    "A program that wakes after a long sleep waits for its pages to come back from the disk: milliseconds.",
	change:  "sysctl vm.swappiness=1, or swapoff -a; or lock the program's memory with mlockall.",
	sources: []string{"/proc/sys/vm/swappiness", "/proc/swaps"},
}, {
	name:    numaBalancing,
	what:    "Whether the kernel unmaps pages now and then to see from which node they are used, and moves them.",
	cost:    "A page fault for each such page, microseconds, and a copy where it is moved.",
	change:  "sysctl kernel.numa_balancing=0, and bind the program to a node.",
	sources: []string{"/proc/sys/kernel/numa_balancing"},
}, {
	name:    cpuQuota,
	what:    "How much CPU time the cgroup of this process, with all its ancestors, may use in each period; the tightest counts.",
	cost:    "When it is used up, every thread of the cgroup stops until the period ends, most often up to 100 ms. A quota of no more CPUs than GOMAXPROCS is within the program's own reach.",
	change:  "Lift the quota (cpu.max to max, cfs_quota_us to -1; in Kubernetes no CPU limit), or set GOMAXPROCS below it, and spin little.",
	sources: []string{"/proc/self/cgroup", "/proc/self/mountinfo", cgroupDir},
}, {
	name:    throttling,
	what:    "How often the cgroup of this process, or an ancestor, has used up its quota and was stopped.",
	cost:    "Each time, all waits in it end late, by up to the period less the quota.",
	change:  "As for the CPU quota.",
	sources: []string{"/proc/self/cgroup", "/proc/self/mountinfo", cgroupDir},
}, {
	name:    priorityLimit,
	what:    "The highest real-time priority that the process may take without CAP_SYS_NICE (RLIMIT_RTPRIO, soft).",
	cost:    "With neither, no thread can be real-time, and each waits for its turn among the others after it is woken.",
	change:  "ulimit -r 99; rtprio in /etc/security/limits.conf; LimitRTPRIO=99 in a systemd unit; --ulimit rtprio=99 for a container.",
	sources: []string{"/proc/self/limits", "/proc/self/status"},
}, {
	name:    memoryLimit,
	what:    "How much memory the process may lock without CAP_IPC_LOCK (RLIMIT_MEMLOCK, soft).",
	cost:    "mlockall needs a limit above all that the process maps, hundreds of MiB for a Go program. Without it a first touch or a reclaimed page is a page fault: microseconds, with the disk milliseconds.",
	change:  "ulimit -l unlimited; memlock in /etc/security/limits.conf; LimitMEMLOCK=infinity in a systemd unit; --ulimit memlock=-1 for a container.",
	sources: []string{"/proc/self/limits", "/proc/self/status"},
}, {
	name:    fileLimit,
	what:    "How many files the process may have open (RLIMIT_NOFILE, soft). Precise sleeps need at most nine descriptors, whatever their number.",
	cost:    "With none left, sleeps end by the runtime's timers instead of a timerfd: up to a millisecond late.",
	change:  "ulimit -n 1024; nofile in /etc/security/limits.conf; LimitNOFILE=1024 in a systemd unit.",
	sources: []string{"/proc/self/limits"},
}, {
	name:    capabilities,
	what:    "Whether the process may take any priority (CAP_SYS_NICE) and lock any memory (CAP_IPC_LOCK).",
	cost:    "Without them the limits above decide, and other processes' timer slack can be neither read nor set.",
	change:  "setcap cap_sys_nice,cap_ipc_lock+ep PROGRAM; AmbientCapabilities= in a systemd unit; --cap-add for a container.",
	sources: []string{"/proc/self/status"},
}}
