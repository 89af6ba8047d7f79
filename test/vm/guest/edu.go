//go:build linux

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// QEMU's device for teaching: https://www.qemu.org/docs/master/specs/edu.html
const (
	eduVendor, eduDevice = "0x1234", "0x11e8"
	eduSize              = 4096

	eduID        = 0x00 // 0xRRrr00ed, with the revision
	eduLiveness  = 0x04 // inverts what is written
	eduFactorial = 0x08 // replaces what is written by its factorial
	eduStatus    = 0x20

	eduComputing = 1 << 0 // in the status
)

// slow is a number whose factorial takes edu about half a second of the host's
// time. Modulo 2^32 it is 0, as is any above 33.
const slow = 600_000_000

type readlPoll func(r mmio.Reg[uint32], cond func(uint32) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint32, error)

// eduPolls are the two polls that edu is polled with.
var eduPolls = []struct {
	name  string
	poll  readlPoll
	sleep time.Duration
}{
	{"ReadlPollTimeout", mmio.ReadlPollTimeout, 100 * time.Microsecond},
	{"ReadlPollTimeoutAtomic", mmio.ReadlPollTimeoutAtomic, time.Microsecond},
}

func eduChecks() []check {
	edu := func(name string, f func(bar *mmio.Region) (string, error)) check {
		return check{"edu: " + name, withBAR(eduVendor, eduDevice, eduSize, f)}
	}
	list := []check{
		edu("identification", identifyEdu),
		edu("liveness", inverts),
	}
	for _, p := range eduPolls {
		list = append(list,
			edu("factorial, "+p.name, func(bar *mmio.Region) (string, error) { return factorial(bar, p.poll, p.sleep) }),
			edu("long factorial, "+p.name, func(bar *mmio.Region) (string, error) { return longFactorial(bar, p.poll, p.sleep) }),
			edu("time-out, "+p.name, func(bar *mmio.Region) (string, error) { return timeOut(bar, p.poll, p.sleep) }),
		)
	}
	return list
}

func identifyEdu(bar *mmio.Region) (string, error) {
	id := mmio.Readl(mmio.MustAt[uint32](bar, eduID))
	if id&0xffff != 0x00ed {
		return "", fmt.Errorf("identification %#x", id)
	}
	return fmt.Sprintf("%#010x", id), nil
}

func inverts(bar *mmio.Region) (string, error) {
	reg := mmio.MustAt[uint32](bar, eduLiveness)
	for _, v := range []uint32{0, 1, 0x12345678, 0xfffffffe} {
		mmio.Writel(reg, v)
		if got := mmio.Readl(reg); got != ^v {
			return "", fmt.Errorf("wrote %#x, read %#x", v, got)
		}
	}
	return "4 values inverted", nil
}

// compute has edu compute n!, and polls until it is done. It returns the
// result and how often the status was read.
func compute(bar *mmio.Region, n uint32, poll readlPoll, sleep, timeout time.Duration) (result uint32, polls int, err error) {
	mmio.Writel(mmio.MustAt[uint32](bar, eduFactorial), n)
	status, err := poll(mmio.MustAt[uint32](bar, eduStatus), func(s uint32) bool {
		polls++
		return s&eduComputing == 0
	}, sleep, timeout, mmio.AllOnesGone())
	if err != nil {
		return 0, polls, fmt.Errorf("status %#x: %w", status, err)
	}
	return mmio.Readl(mmio.MustAt[uint32](bar, eduFactorial)), polls, nil
}

func factorial(bar *mmio.Region, poll readlPoll, sleep time.Duration) (string, error) {
	most, want := 0, uint32(1)
	for n := uint32(1); n <= 20; n++ {
		want *= n
		got, polls, err := compute(bar, n, poll, sleep, 10*time.Second)
		if err != nil {
			return "", err
		}
		if got != want {
			return "", fmt.Errorf("%d! mod 2^32 is said to be %d, not %d", n, got, want)
		}
		most = max(most, polls)
	}
	return fmt.Sprintf("1! to 20! as they should be, status read up to %d times each", most), nil
}

// longFactorial is for a wait in which the status is seen set, and cleared.
func longFactorial(bar *mmio.Region, poll readlPoll, sleep time.Duration) (string, error) {
	start := time.Now()
	got, polls, err := compute(bar, slow/10, poll, sleep, 30*time.Second)
	took := time.Since(start)
	if err != nil {
		return "", err
	}
	if got != 0 || polls < 2 {
		return "", fmt.Errorf("result %d, status read %d times", got, polls)
	}
	return fmt.Sprintf("status read %d times in %v", polls, took.Round(time.Microsecond)), nil
}

// timeOut gives a poll less time than the device needs.
func timeOut(bar *mmio.Region, poll readlPoll, sleep time.Duration) (string, error) {
	const timeout = 50 * time.Millisecond
	start := time.Now()
	_, polls, err := compute(bar, slow, poll, sleep, timeout)
	took := time.Since(start)
	// The device is still at it, and takes no other number until it is done.
	_, wait := poll(mmio.MustAt[uint32](bar, eduStatus), mmio.BitsClear[uint32](eduComputing), sleep, 60*time.Second)
	busy := time.Since(start)
	if wait != nil {
		return "", fmt.Errorf("never done: %w", wait)
	}
	figures := fmt.Sprintf("%v late after %d reads, device busy for %v", took-timeout, polls, busy.Round(time.Millisecond))
	return figures, isTimeOut(err, timeout, took)
}

// isTimeOut says what is wrong with the end of a poll that was to time out:
// never before its deadline, and with the device busy.
func isTimeOut(err error, timeout, took time.Duration) error {
	var e wait.TimeoutError
	switch {
	case !errors.As(err, &e) || !errors.Is(err, wait.ErrTimeout):
		return fmt.Errorf("no time-out, but %v", err)
	case e.Last != uint32(eduComputing):
		return fmt.Errorf("status %v in %w", e.Last, err)
	case took < timeout || e.Elapsed < timeout:
		return fmt.Errorf("early: %v in %w", took, err)
	case took > timeout+10*time.Second:
		return fmt.Errorf("took %v: %w", took, err)
	}
	return nil
}
