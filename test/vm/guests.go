//go:build linux

package main

import (
	"time"
)

// A guest is a virtual machine and the checks to make in it.
type guest struct {
	name     string // the argument of its init
	about    string
	arch     string // as Go calls it
	asked    bool   // boots only if it is asked for by name
	machine  []string
	kernel   string // more for the command line
	tests    []testBinary
	examples []string
	checks   int           // how many its init has to report
	timeout  time.Duration // several times what it takes on an idle host
}

// A testBinary is a package's tests, run in a guest.
type testBinary struct {
	name, pkg, flags string
}

// steady has the guest's time advance by 2 ns with each instruction, and jump
// to the next timer when the guest is idle, so it does not depend on what else
// the host does: see RATIONALE.md.
const steady = "shift=1,sleep=off"

// guests are printed in this order.
var guests = []guest{
	{
		name:  "devices",
		about: "registers of edu, nvme and e1000e, on a PC with PCI Express",
		arch:  "amd64",
		machine: []string{
			"-M", "q35", "-smp", "2",
			"-device", "edu",
			"-drive", "file=DISK,if=none,id=disk,format=raw", "-device", "nvme,serial=vm,drive=disk",
			"-device", "e1000e,mac=52:54:00:a1:b2:c3",
		},
		examples: []string{"edu", "uio"},
		checks:   8 + 3 + 1 + 2,
		timeout:  90 * time.Second,
	},
	{
		name:    "unplug",
		about:   "edu unplugged while it is polled, on a PC by ACPI",
		arch:    "amd64",
		machine: []string{"-M", "pc", "-smp", "2", "-device", "edu,id=edu"},
		checks:  6,
		timeout: 90 * time.Second,
	},
	{
		name:  "arm64-devices",
		about: "registers of edu, and edu unplugged while it is polled, on arm64 by PCI Express",
		arch:  "arm64",
		machine: []string{
			"-M", "virt", "-cpu", "cortex-a72", "-smp", "2",
			"-device", "pcie-root-port,id=root", "-device", "edu,id=edu,bus=root",
		},
		checks:  8 + 6,
		timeout: 120 * time.Second,
	},
	{
		name:    "fine",
		about:   "high-resolution timers",
		arch:    "amd64",
		machine: []string{"-M", "q35", "-cpu", "max,+invtsc", "-icount", steady},
		kernel:  "tsc=reliable",
		tests:   tests,
		checks:  3 + len(tests),
		timeout: 4 * time.Minute,
	},
	{
		name:    "tick",
		about:   "a tick of 4 ms and no high-resolution timers",
		arch:    "amd64",
		machine: []string{"-M", "q35", "-icount", steady},
		kernel:  "highres=off nohz=off",
		tests:   tickTests,
		checks:  5 + len(tickTests),
		timeout: 4 * time.Minute,
	},
	{
		name:    "arm64",
		about:   "assembly, faults and the core on a Cortex-A72",
		arch:    "arm64",
		machine: []string{"-M", "virt", "-cpu", "cortex-a72", "-icount", steady},
		tests:   tests,
		checks:  len(tests),
		timeout: 4 * time.Minute,
	},
	{
		name:    "386",
		about:   "the core as a program of 32 bits, for hosts that run none",
		arch:    "386",
		asked:   true,
		machine: []string{"-M", "q35", "-cpu", "max,+invtsc", "-icount", steady},
		kernel:  "tsc=reliable",
		tests:   tests,
		checks:  3 + len(tests),
		timeout: 4 * time.Minute,
	},
}

// tests are run with high-resolution timers. A hundred thousand goroutines are
// too many for these guests.
var tests = []testBinary{
	{"wait", ".", "-test.short -test.skip=^TestHundredThousandSleepers$"},
	{"clock", "./internal/clock", "-test.short"},
	{"park", "./internal/park", "-test.short"},
	{"pause", "./internal/pause", "-test.short"},
	{"self", "./internal/self", "-test.short"},
	{"mmio", "./mmio", "-test.short"},
}

// tickTests are run on a tick, without those that count on sleeps of less than
// one: to have something left to spin, to go on learning from waits of less, to
// find no tick, to meet no preemption during a hundred sleeps, and to have a
// value come before a deadline of less.
var tickTests = []testBinary{
	{"wait", ".", "-test.short -test.skip=^(TestHundredThousandSleepers|" +
		"TestHybridSpinsForAboutItsMargin|TestSleepAndHybridTeachTheFloor|TestThreadLearnsAFloorOfItsOwn|" +
		"TestWaitsWorkWithoutTimerfd|TestThreadSleepsWithOneSystemCall)$"},
	{"clock", "./internal/clock", "-test.short"},
	{"park", "./internal/park", "-test.short -test.skip=^TestRecvEndsByWhatComesFirst$"},
}
