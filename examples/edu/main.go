// Edu drives QEMU's device for teaching (-device edu) as a userspace driver
// would: it finds the device, maps its registers, has it compute a factorial
// and polls its status until that is done, or takes too long.
//
//	go run ./examples/edu           # as root, in a machine that has the device
//	go run ./examples/edu -n 12
//
// Where there is no such device it says so; test/vm/run boots a machine that
// has one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// The registers, all of 32 bits.
const (
	regID        = 0x00
	regFactorial = 0x08 // replaces a number by its factorial, modulo 2^32
	regStatus    = 0x20

	statusComputing = 1 << 0
)

const pciDevices = "/sys/bus/pci/devices"

func main() {
	n := flag.Uint("n", 10, "`number` whose factorial to compute")
	timeout := flag.Duration("timeout", 100*time.Millisecond, "how `long` the device may take")
	flag.Parse()
	if err := run(os.Stdout, pciDevices, uint32(*n), *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "edu:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, devices string, n uint32, timeout time.Duration) (err error) {
	dir, err := find(devices, "0x1234", "0x11e8")
	if err != nil {
		return err
	}
	if dir == "" {
		fmt.Fprintln(out, "there is no edu device here; test/vm/run boots a machine that has one")
		return nil
	}
	// A device that no driver has taken does not answer before that.
	if err := os.WriteFile(filepath.Join(dir, "enable"), []byte("1"), 0); err != nil {
		return err
	}
	bar, err := mmio.Map(filepath.Join(dir, "resource0"), 0, 4096)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bar.Close()) }()

	fmt.Fprintf(out, "%s: identification %#08x\n", filepath.Base(dir), mmio.Readl(mmio.MustAt[uint32](bar, regID)))
	result, err := factorial(bar, n, timeout)
	switch {
	case errors.Is(err, wait.ErrTimeout):
		return fmt.Errorf("%d! is not done after %v", n, timeout)
	case errors.Is(err, mmio.ErrDeviceGone):
		return fmt.Errorf("somebody has unplugged the device: %w", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(out, "%d! = %d (modulo 2^32)\n", n, result)
	return nil
}

// factorial has the device compute n!. All ones is what a device reads as that
// has been unplugged, and nothing that this one's status can be.
func factorial(bar *mmio.Region, n uint32, timeout time.Duration) (uint32, error) {
	number, status := mmio.MustAt[uint32](bar, regFactorial), mmio.MustAt[uint32](bar, regStatus)
	mmio.Writel(number, n)
	_, err := mmio.ReadlPollTimeout(status, mmio.BitsClear[uint32](statusComputing),
		20*time.Microsecond, timeout, mmio.AllOnesGone())
	if err != nil {
		return 0, err
	}
	return mmio.Readl(number), nil
}

// find returns the directory of the first PCI device of the given kind, or "".
func find(devices, vendor, device string) (string, error) {
	list, err := os.ReadDir(devices)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // no PCI, or no Linux
	}
	if err != nil {
		return "", err
	}
	for _, e := range list {
		dir := filepath.Join(devices, e.Name())
		if content(dir, "vendor") == vendor && content(dir, "device") == device {
			return dir, nil
		}
	}
	return "", nil
}

func content(dir, name string) string {
	text, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(text))
}
