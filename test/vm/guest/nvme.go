//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/precisewait/wait/mmio"
)

// A controller of NVM Express, by its base specification 1.4, section 3.1.
const (
	nvmeVendor, nvmeDevice = "0x1b36", "0x0010" // QEMU's
	nvmeSize               = 4096

	nvmeCAP  = 0x00 // 64 bits
	nvmeVS   = 0x08
	nvmeCC   = 0x14
	nvmeCSTS = 0x1c
	nvmeAQA  = 0x24
	nvmeASQ  = 0x28 // 64 bits
	nvmeACQ  = 0x30 // 64 bits

	ccEN    = 1 << 0
	cstsRDY = 1 << 0
	cstsCFS = 1 << 1 // fatal status
)

var (
	capMQES   = mmio.Field[uint64](0xffff)     // queue entries, less one
	capTO     = mmio.Field[uint64](0xff << 24) // units of 500 ms
	capMPSMAX = mmio.Field[uint64](0xf << 52)  // the largest CC.MPS

	ccMPS    = mmio.Field[uint32](0xf << 7)  // page size, 4 KiB << MPS
	ccIOSQES = mmio.Field[uint32](0xf << 16) // log2 of an entry's size
	ccIOCQES = mmio.Field[uint32](0xf << 20)

	aqaASQS = mmio.Field[uint32](0xfff) // queue entries, less one
	aqaACQS = mmio.Field[uint32](0xfff << 16)
)

func nvmeChecks() []check {
	nvme := func(name string, f func(c *controller) (string, error)) check {
		return check{"nvme: " + name, withBAR(nvmeVendor, nvmeDevice, nvmeSize, func(bar *mmio.Region) (string, error) {
			return f(&controller{bar: bar})
		})}
	}
	return []check{
		nvme("capabilities", (*controller).capabilities),
		nvme("disable and enable", (*controller).reset),
		nvme("fault told from time-out", (*controller).fail),
	}
}

// A controller is one that is driven as far as its reset.
type controller struct{ bar *mmio.Region }

// timeout is the longest that a change of CC.EN may take to show in CSTS.RDY.
func (c *controller) timeout() time.Duration {
	capabilities := mmio.Readq(mmio.MustAt[uint64](c.bar, nvmeCAP))
	return time.Duration(capTO.Get(capabilities)) * 500 * time.Millisecond
}

func (c *controller) capabilities() (string, error) {
	whole := mmio.Readq(mmio.MustAt[uint64](c.bar, nvmeCAP))
	halves, err := mmio.ReadqHighLow(mmio.MustAt[uint32](c.bar, nvmeCAP+4), mmio.MustAt[uint32](c.bar, nvmeCAP))
	if err != nil || halves != whole {
		return "", fmt.Errorf("CAP is %#x, but %#x by halves, error %v", whole, halves, err)
	}
	vs := mmio.Readl(mmio.MustAt[uint32](c.bar, nvmeVS))
	if vs>>16 != 1 || capMQES.Get(whole) == 0 || c.timeout() == 0 {
		return "", fmt.Errorf("CAP %#x, VS %#x", whole, vs)
	}
	return fmt.Sprintf("CAP %#x, so time-out %v; version %d.%d", whole, c.timeout(), vs>>16, vs>>8&0xff), nil
}

// disable is the beginning of each driver: the controller may be in any state.
func (c *controller) disable() (time.Duration, error) {
	cc := mmio.MustAt[uint32](c.bar, nvmeCC)
	mmio.Writel(cc, mmio.Readl(cc)&^ccEN)
	start := time.Now()
	csts, err := mmio.ReadlPollTimeout(mmio.MustAt[uint32](c.bar, nvmeCSTS), mmio.BitsClear[uint32](cstsRDY),
		time.Millisecond, c.timeout(), mmio.AllOnesGone())
	if err != nil {
		return 0, fmt.Errorf("disable: CSTS %#x: %w", csts, err)
	}
	return time.Since(start), nil
}

// enable gives the controller its admin queues and pages of 4 KiB << pageSize,
// and waits until it is ready, or says that it cannot be.
func (c *controller) enable(submission, completion uint64, pageSize uint32) (csts uint32, took time.Duration, err error) {
	const entries = 16
	mmio.Writel(mmio.MustAt[uint32](c.bar, nvmeAQA), aqaACQS.Set(aqaASQS.Set(0, entries-1), entries-1))
	mmio.Writeq(mmio.MustAt[uint64](c.bar, nvmeASQ), submission)
	mmio.Writeq(mmio.MustAt[uint64](c.bar, nvmeACQ), completion)
	cc := ccIOCQES.Set(ccIOSQES.Set(ccMPS.Set(0, pageSize), 6), 4)
	mmio.Writel(mmio.MustAt[uint32](c.bar, nvmeCC), cc)
	mmio.Writel(mmio.MustAt[uint32](c.bar, nvmeCC), cc|ccEN)
	start := time.Now()
	csts, err = mmio.ReadlPollTimeout(mmio.MustAt[uint32](c.bar, nvmeCSTS),
		func(s uint32) bool { return s&(cstsRDY|cstsCFS) != 0 },
		time.Millisecond, c.timeout(), mmio.AllOnesGone())
	return csts, time.Since(start), err
}

// reset takes the controller down and up again, three times.
func (c *controller) reset() (string, error) {
	found := mmio.Readl(mmio.MustAt[uint32](c.bar, nvmeCSTS))
	queues, err := newPages(2)
	if err != nil {
		return "", err
	}
	var down, up time.Duration
	for range 3 {
		d, err := c.disable()
		if err != nil {
			return "", err
		}
		csts, u, err := c.enable(queues[0], queues[1], 0)
		if err != nil || csts&(cstsRDY|cstsCFS) != cstsRDY {
			return "", fmt.Errorf("enable: CSTS %#x, error %v", csts, err)
		}
		down, up = max(down, d), max(up, u)
	}
	if _, err := c.disable(); err != nil {
		return "", err
	}
	return fmt.Sprintf("CSTS %#x as found; three times down in up to %v, up in up to %v of %v",
		found, down.Round(time.Microsecond), up.Round(time.Microsecond), c.timeout()), nil
}

// fail enables the controller with pages larger than it takes: what it answers
// is a fault, at once, and not that it is not ready yet.
func (c *controller) fail() (string, error) {
	if _, err := c.disable(); err != nil {
		return "", err
	}
	queues, err := newPages(2)
	if err != nil {
		return "", err
	}
	most := uint32(capMPSMAX.Get(mmio.Readq(mmio.MustAt[uint64](c.bar, nvmeCAP))))
	csts, took, err := c.enable(queues[0], queues[1], most+1)
	if err != nil || csts&(cstsRDY|cstsCFS) != cstsCFS {
		return "", fmt.Errorf("CSTS %#x, error %v", csts, err)
	}
	return fmt.Sprintf("CSTS %#x after %v", csts, took.Round(time.Microsecond)), nil
}

// newPages returns the physical addresses of pages that stay where they are
// for as long as the guest runs.
func newPages(n int) ([]uint64, error) {
	size := os.Getpagesize()
	memory, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_LOCKED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	pagemap, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil, err
	}
	defer pagemap.Close()
	pages := make([]uint64, n)
	for i := range pages {
		var entry [8]byte
		at := int64(uintptr(unsafe.Pointer(&memory[i*size]))) / int64(size) * int64(len(entry))
		if _, err := pagemap.ReadAt(entry[:], at); err != nil {
			return nil, err
		}
		frame := binary.NativeEndian.Uint64(entry[:]) & (1<<55 - 1)
		if frame == 0 {
			return nil, fmt.Errorf("no page at %p", &memory[i*size])
		}
		pages[i] = frame * uint64(size)
	}
	return pages, nil
}
