//go:build linux

package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// unplugLine has the host unplug edu.
const unplugLine = "# host: unplug edu"

// unplugChecks are made in this order: each looks at what the first has left.
func unplugChecks(zeros bool) []check {
	u := &unplugging{zeros: zeros}
	return []check{
		{"unplug: edu goes while it is polled", u.poll},
		{"unplug: ReadlPollTimeout", func() (string, error) { return u.gone(0) }},
		{"unplug: ReadlPollTimeoutAtomic", func() (string, error) { return u.gone(1) }},
		{"unplug: poll without AllOnesGone", u.ended},
		{"unplug: access afterwards", u.afterwards},
		{"unplug: edu is not found again", notFound},
	}
}

// An unplugging is what happens to a device while it is polled.
type unplugging struct {
	// zeros says that what is not there reads as 0 here. A real PC's bus reads
	// as all ones then, and so does QEMU's for arm64, but not its PC's.
	zeros bool

	bar   *mmio.Region
	id    uint32 // what the polled register reads as while edu is there
	polls [3]unpluggedPoll
}

// An unpluggedPoll is how a poll of a device went that was unplugged.
type unpluggedPoll struct {
	value uint32
	err   error
	looks int
	took  time.Duration
}

func (p unpluggedPoll) String() string {
	return fmt.Sprintf("value %#x, error %v, after %d looks in %v", p.value, p.err, p.looks, p.took.Round(time.Millisecond))
}

// poll polls the identification in three ways at once, until it changes, and
// once all are at it has the host unplug the device.
func (u *unplugging) poll() (string, error) {
	bar, err := mapBAR(eduVendor, eduDevice, eduSize)
	if err != nil {
		return "", err
	}
	u.bar = bar // closed by afterwards: it is about a mapping that is there
	if _, err := identifyEdu(bar); err != nil {
		return "", err
	}
	reg := mmio.MustAt[uint32](bar, eduID)
	u.id = mmio.Readl(reg)
	changed := func(v uint32) bool { return v != u.id }
	var polling, ended sync.WaitGroup
	polling.Add(len(u.polls))
	start := time.Now()
	for i := range u.polls {
		ended.Go(func() {
			p := &u.polls[i]
			count := wait.OnPoll(func() {
				if p.looks++; p.looks == 10 {
					polling.Done()
				}
			})
			const timeout = 30 * time.Second
			if i < len(eduPolls) {
				p.value, p.err = eduPolls[i].poll(reg, changed, eduPolls[i].sleep, timeout, mmio.AllOnesGone(), count)
			} else {
				p.value, p.err = mmio.ReadlPollTimeout(reg, changed, time.Millisecond, timeout, count)
			}
			p.took = time.Since(start)
		})
	}
	polling.Wait()
	asked := time.Since(start)
	fmt.Println(unplugLine)
	ended.Wait()
	for _, p := range u.polls {
		if errors.Is(p.err, wait.ErrTimeout) {
			return "", p.err
		}
	}
	return fmt.Sprintf("polled three ways, host asked after %v, all ended after %v",
		asked.Round(time.Millisecond), time.Since(start).Round(time.Millisecond)), nil
}

// gone is for a poll that takes all ones for a device that is gone. Its value
// is then the last one that the device gave.
func (u *unplugging) gone(i int) (string, error) {
	p := u.polls[i]
	if !(errors.Is(p.err, mmio.ErrDeviceGone) && p.value == u.id) && !(u.zeros && p.err == nil && p.value == 0) || p.looks < 10 {
		return "", errors.New(p.String())
	}
	return p.String(), nil
}

// ended is for a poll that does not: for it, all ones are a value.
func (u *unplugging) ended() (string, error) {
	p := u.polls[2]
	if p.err != nil && !errors.Is(p.err, mmio.ErrDeviceGone) || p.err == nil && !u.isNothing(p.value) || p.looks < 10 {
		return "", errors.New(p.String())
	}
	return p.String(), nil
}

// isNothing reports whether v is what is read where there is no device.
func (u *unplugging) isNothing(v uint32) bool { return v == ^uint32(0) || u.zeros && v == 0 }

// afterwards accesses what is left of the device. Nothing of it may end init.
func (u *unplugging) afterwards() (string, error) {
	if u.bar == nil {
		return "", errors.New("it was never there")
	}
	var id uint32
	err := u.bar.Guard(func() {
		mmio.Writel(mmio.MustAt[uint32](u.bar, eduLiveness), 1)
		id = mmio.Readl(mmio.MustAt[uint32](u.bar, eduID))
	})
	if err != nil && !errors.Is(err, mmio.ErrDeviceGone) || err == nil && !u.isNothing(id) {
		return "", fmt.Errorf("reads as %#x, error %v", id, err)
	}
	return fmt.Sprintf("reads as %#x, error %v", id, err), u.bar.Close()
}

func notFound() (string, error) {
	dir, err := findPCI(eduVendor, eduDevice)
	if err == nil {
		return "", fmt.Errorf("it is %s", dir)
	}
	return err.Error(), nil
}
