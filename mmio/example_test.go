package mmio_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// Registers and fields of the device that the examples drive.
const (
	control = 0x00
	status  = 0x04
	data    = 0x08
	enabled = 1 << 0 // in control
	busy    = 1 << 0 // in status
)

var fault = mmio.Field[uint32](0xf0) // in status

// newFile returns a file that plays the device.
func newFile() *os.File {
	f, err := os.CreateTemp("", "device-*")
	if err == nil {
		err = errors.Join(os.Remove(f.Name()), f.Truncate(16))
	}
	if err != nil {
		log.Fatal(err)
	}
	return f
}

// A driver maps the device, writes a command, and polls for its end.
func Example() {
	f := newFile() // os.OpenFile("/sys/bus/pci/devices/.../resource0", os.O_RDWR|os.O_SYNC, 0)
	defer f.Close()
	bar, err := mmio.MapFile(f, 0, 16)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	} else if err != nil {
		log.Fatal(err)
	}
	defer bar.Close()

	mmio.Writel(mmio.MustAt[uint32](bar, data), 5)
	mmio.Writel(mmio.MustAt[uint32](bar, control), enabled)
	s, err := mmio.ReadlPollTimeout(mmio.MustAt[uint32](bar, status), mmio.BitsClear[uint32](busy),
		50*time.Microsecond, 10*time.Millisecond, mmio.AllOnesGone())
	switch {
	case errors.Is(err, mmio.ErrDeviceGone):
		log.Fatal("unplugged")
	case errors.Is(err, wait.ErrTimeout):
		log.Fatalf("too slow: status %#x", s)
	case fault.Get(s) != 0:
		log.Fatalf("fault %d", fault.Get(s))
	}
	fmt.Println("done:", mmio.Readl(mmio.MustAt[uint32](bar, data)))
	// Output: done: 5
}

// Outside of a poll, Guard makes an error of a device that vanishes.
func ExampleRegion_Guard_vanished() {
	f := newFile()
	defer f.Close()
	bar, err := mmio.MapFile(f, 0, 16)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	} else if err != nil {
		log.Fatal(err)
	}
	defer bar.Close()
	reg := mmio.MustAt[uint32](bar, data)

	if err := f.Truncate(0); err != nil { // the device is unplugged
		log.Fatal(err)
	}
	err = bar.Guard(func() {
		mmio.Writel(reg, 1)
		fmt.Println("not reached")
	})
	fmt.Println(errors.Is(err, mmio.ErrDeviceGone))
	// Output: true
}

func ExampleField() {
	timeout := mmio.Field[uint32](0xff << 8)
	v := timeout.Set(0x1234_5678, 0xab)
	fmt.Printf("%#x %#x %v\n", v, timeout.Get(v), timeout.Fits(0x100))
	// Output: 0x1234ab78 0xab false
}
