package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait"
)

// registers is the block that driver and device share.
type registers struct {
	status  uint32 // written by the device
	command uint32 // written by the driver, cleared by the device once it has taken it
	data    uint32 // operand of a command, then its result or the code of a fault
}

// Bits of the status.
const (
	statusPresent = 1 << iota // since the device was started
	statusBusy
	statusReady // the data is the result
	statusFault // the data is a fault
)

// Commands. Zero is none.
const (
	commandSquare     = 1 + iota
	commandSlowSquare // takes a minute
	commandReset      // ends what the device is at
)

// A fault is what the device says it could not do.
type fault uint32

const faultOverflow fault = 1

func (f fault) Error() string {
	if f == faultOverflow {
		return "overflow"
	}
	return "unknown fault"
}

// device plays the device until stdin ends, as it does when the driver closes
// it or dies.
func device(r *registers, stdin io.Reader) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin)
	}()
	atomic.StoreUint32(&r.status, statusPresent)
	for {
		command, err := wait.ReadPollTimeout(
			func() uint32 { return atomic.LoadUint32(&r.command) },
			func(c uint32) bool { return c != 0 },
			50*time.Microsecond, 0, wait.PollContext(ctx))
		if err != nil {
			return
		}
		r.obey(ctx, command)
	}
}

func (r *registers) obey(ctx context.Context, command uint32) {
	if command == commandReset {
		r.take(0)
		return
	}
	work := 500 * time.Microsecond
	if command == commandSlowSquare {
		work = time.Minute
	}
	n := uint64(atomic.LoadUint32(&r.data))
	r.take(statusBusy)
	// The work is done when this has waited in vain.
	_, err := wait.ReadPollTimeout(
		func() uint32 { return atomic.LoadUint32(&r.command) },
		func(c uint32) bool { return c == commandReset },
		50*time.Microsecond, work, wait.PollContext(ctx))
	switch {
	case !errors.Is(err, wait.ErrTimeout):
		return
	case n*n > math.MaxUint32:
		r.answer(uint32(faultOverflow), statusFault)
	default:
		r.answer(uint32(n*n), statusReady)
	}
}

// take clears the command, after the status has changed: a driver that sees
// the one sees the other, and never the status from before its command.
func (r *registers) take(status uint32) {
	atomic.StoreUint32(&r.status, statusPresent|status)
	atomic.StoreUint32(&r.command, 0)
}

// answer sets the status after the data, for the same reason.
func (r *registers) answer(data, status uint32) {
	atomic.StoreUint32(&r.data, data)
	atomic.StoreUint32(&r.status, statusPresent|status)
}

// roleVar says in its environment that a process is the device.
const roleVar = "POLLFILE_ROLE"

func isDevice() bool { return os.Getenv(roleVar) == "device" }

// runDevice is main in the process of the device.
func runDevice() error {
	f := os.NewFile(3, "registers") // the first of ExtraFiles
	r, unmap, err := mapRegisters(f)
	if err != nil {
		return err
	}
	device(r, os.Stdin)
	return errors.Join(unmap(), f.Close())
}

// startDevice starts a process that plays the device on the registers in f.
// stop ends it and waits for it.
func startDevice(f *os.File) (stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"=device")
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	return func() error {
		_ = stdin.Close()
		kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		return cmd.Wait()
	}, nil
}
