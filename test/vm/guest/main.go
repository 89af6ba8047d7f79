//go:build linux

// Guest is the init of the virtual machines that test/vm/run boots. Its one
// argument, which the kernel passes on from the end of its command line, names
// the checks to make. It writes a plan and a line for each check to the
// console, in the form of the Test Anything Protocol, and powers off.
//
// It wants to be process 1 of a machine that is thrown away.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A check is something that must hold in this guest. It returns what it
// measured.
type check struct {
	name string
	do   func() (figures string, err error)
}

// checks are what is checked, by the name that the kernel passes on.
var checks = map[string][]check{
	"devices":       slices.Concat(eduChecks(), nvmeChecks(), e1000eChecks(), exampleChecks()),
	"unplug":        unplugChecks(true),
	"fine":          slices.Concat(fineChecks(), testChecks()),
	"386":           slices.Concat(fineChecks(), testChecks()),
	"tick":          slices.Concat(tickChecks(), testChecks()),
	"arm64":         testChecks(),
	"arm64-devices": slices.Concat(eduChecks(), unplugChecks(false)),
}

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is to be the init of a virtual machine: see test/vm/run")
		os.Exit(1)
	}
	err := mountAll()
	comment(host())
	list := checks[os.Args[len(os.Args)-1]]
	fmt.Printf("1..%d\n", len(list))
	if err != nil {
		fmt.Println("Bail out!", err)
	} else {
		for i, c := range list {
			c.report(i + 1)
		}
	}
	// The console is slow, and what it has not written yet is lost.
	_ = unix.IoctlSetInt(1, unix.TCSBRK, 1)
	err = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Println("Bail out! power off:", err) // and init ends, which is a panic
}

// mountAll mounts what the checks and the tests need.
func mountAll() error {
	var errs []error
	for _, m := range []struct{ kind, at string }{
		{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"},
	} {
		err := errors.Join(os.MkdirAll(m.at, 0o755), unix.Mount(m.kind, m.at, m.kind, 0, ""))
		if err != nil {
			errs = append(errs, fmt.Errorf("mount %s: %w", m.at, err))
		}
	}
	return errors.Join(errs...)
}

// host says what the guest runs on, as far as its figures depend on it.
func host() string {
	const clocks = "/sys/devices/system/clocksource/clocksource0/"
	var parts []string
	for _, file := range []string{"/proc/sys/kernel/osrelease", clocks + "current_clocksource", clocks + "available_clocksource"} {
		text, _ := os.ReadFile(file)
		parts = append(parts, strings.TrimSpace(string(text)))
	}
	return fmt.Sprintf("Linux %s, %d CPUs, clock source %s of %s", parts[0], runtime.NumCPU(), parts[1], parts[2])
}

// report makes the check and tells how it went.
func (c check) report(number int) {
	start := time.Now()
	figures, err := c.recovered()
	took := time.Since(start).Round(time.Millisecond)
	if err != nil {
		fmt.Printf("not ok %d - %s: %v (%v) %s\n", number, c.name, err, took, figures)
	} else {
		fmt.Printf("ok %d - %s: %s (%v)\n", number, c.name, figures, took)
	}
}

// recovered makes the check, and an error of its panic.
func (c check) recovered() (figures string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
			comment(string(debug.Stack()))
		}
	}()
	return c.do()
}
