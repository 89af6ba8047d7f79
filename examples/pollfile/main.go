// Pollfile is a driver and its device as two processes that share a register
// block in a memory-mapped file: a status, a command and a data word.
//
//	go run ./examples/pollfile
//
// The driver tells apart what can become of a command: the device has done
// it, it takes too long, or it reports a fault. The program prints a line for
// each, and fails if one does not come out as it should.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait"
)

func main() {
	var err error
	if isDevice() {
		err = runDevice()
	} else {
		err = run(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pollfile:", err)
		os.Exit(1)
	}
}

// run starts a device and puts the driver through its cases.
func run(out io.Writer) (err error) {
	f, err := createRegisters()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, unmap, err := mapRegisters(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unmap()) }()
	stop, err := startDevice(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	d := driver{r, 10 * time.Second}
	if err := d.probe(); err != nil {
		return err
	}
	for _, c := range cases {
		line, err := c.try(d)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(out, "%-9s %s\n", c.name+":", line)
	}
	return nil
}

// A driver is the side that gives commands and polls.
type driver struct {
	*registers
	patience time.Duration // with a device that is not slow, on a host that may be
}

// probe waits for the device to be there.
func (d driver) probe() error {
	_, err := wait.ReadPollTimeout(d.readStatus, func(s uint32) bool { return s&statusPresent != 0 },
		time.Millisecond, d.patience)
	if err != nil {
		return fmt.Errorf("no device: %w", err)
	}
	return nil
}

func (d driver) readStatus() uint32 { return atomic.LoadUint32(&d.status) }

// give gives the device a command and returns once it has taken it. That is
// soon enough to spin for it.
func (d driver) give(command, data uint32) error {
	atomic.StoreUint32(&d.data, data)
	atomic.StoreUint32(&d.command, command)
	_, err := wait.ReadPollTimeoutAtomic(
		func() uint32 { return atomic.LoadUint32(&d.command) },
		func(c uint32) bool { return c == 0 },
		time.Microsecond, d.patience)
	if err != nil {
		return fmt.Errorf("command %d not taken: %w", command, err)
	}
	return nil
}

// result waits for the end of a command. A condition that held on ready alone
// would take a fault for a slow device, and tell so only after the timeout:
// it holds for both, and what it was is decided after.
func (d driver) result(timeout time.Duration) (uint32, error) {
	return d.settle(wait.ReadPollTimeout(d.readStatus, settled, 100*time.Microsecond, timeout))
}

// resultSoon is result for who would rather spin than be late by a sleep's
// lateness: the atomic form never gives the processor away.
func (d driver) resultSoon(timeout time.Duration) (uint32, error) {
	return d.settle(wait.ReadPollTimeoutAtomic(d.readStatus, settled, 5*time.Microsecond, timeout))
}

func settled(status uint32) bool { return status&(statusReady|statusFault) != 0 }

func (d driver) settle(s uint32, err error) (uint32, error) {
	switch {
	case err != nil:
		return 0, err
	case s&statusFault != 0:
		return 0, fault(atomic.LoadUint32(&d.data))
	}
	return atomic.LoadUint32(&d.data), nil
}

// resultOrFault is result with the fault taken out of the condition: reading
// the status fails with it, which ends the poll at once.
func (d driver) resultOrFault(timeout time.Duration) (uint32, error) {
	status := func() (uint32, error) {
		s := d.readStatus()
		if s&statusFault != 0 {
			return s, fault(atomic.LoadUint32(&d.data))
		}
		return s, nil
	}
	ready := func(s uint32) bool { return s&statusReady != 0 }
	if _, err := wait.TryReadPollTimeout(status, ready, 100*time.Microsecond, timeout); err != nil {
		return 0, err
	}
	return atomic.LoadUint32(&d.data), nil
}

// A way is one of the two to get a result.
type way func(d driver, timeout time.Duration) (uint32, error)

// A wantedCase tries something that is to end in the way that its name says,
// and fails if it does not.
type wantedCase struct {
	name string
	try  func(d driver) (line string, err error)
}

var cases = []wantedCase{
	{"success", func(d driver) (string, error) { return succeed(d, driver.result, 12) }},
	{"time-out", timeOut},
	{"fault", func(d driver) (string, error) { return beRefused(d, driver.result, 70000) }},
	{"fault", func(d driver) (string, error) { return beRefused(d, driver.resultOrFault, 80000) }},
	{"success", func(d driver) (string, error) { return succeed(d, driver.resultOrFault, 65535) }},
	{"success", func(d driver) (string, error) { return succeed(d, driver.resultSoon, 21) }},
	{"fault", func(d driver) (string, error) { return beRefused(d, driver.resultSoon, 90000) }},
}

func succeed(d driver, result way, n uint32) (string, error) {
	if err := d.give(commandSquare, n); err != nil {
		return "", err
	}
	square, err := result(d, d.patience)
	if err != nil {
		return "", err
	}
	if square != n*n {
		return "", fmt.Errorf("%d squared is said to be %d", n, square)
	}
	return fmt.Sprintf("%d squared is %d", n, square), nil
}

func timeOut(d driver) (string, error) {
	if err := d.give(commandSlowSquare, 3); err != nil {
		return "", err
	}
	const timeout = 20 * time.Millisecond
	square, err := d.result(timeout)
	var e wait.TimeoutError
	if !errors.As(err, &e) {
		return "", fmt.Errorf("no time-out, but %d, %v", square, err)
	}
	if e.Last != uint32(statusPresent|statusBusy) {
		return "", fmt.Errorf("not busy after %w", err)
	}
	// The device is still at it, and would answer into the next command.
	if err := d.give(commandReset, 0); err != nil {
		return "", err
	}
	if s := d.readStatus(); s != statusPresent {
		return "", fmt.Errorf("status %#x after reset", s)
	}
	return fmt.Sprintf("device still busy after %v and %d looks, and reset", timeout, e.Polls), nil
}

func beRefused(d driver, result way, n uint32) (string, error) {
	if err := d.give(commandSquare, n); err != nil {
		return "", err
	}
	square, err := result(d, d.patience)
	var f fault
	if !errors.As(err, &f) || f != faultOverflow {
		return "", fmt.Errorf("no overflow, but %d, %v", square, err)
	}
	return fmt.Sprintf("%d squared: device says %v", n, err), nil
}
