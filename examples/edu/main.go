// Edu drives the device that QEMU has for teaching, from user space: it maps
// the device's registers through sysfs, has it compute factorials, and polls
// its status.
//
//	go run ./examples/edu    # as root, in a machine with -device edu
//
// Without such a device it says so, and is content. test/vm/run shows it at
// work.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// The device, by https://www.qemu.org/docs/master/specs/edu.html.
const (
	vendor, device = "0x1234", "0x11e8"

	identification = 0x00
	factorial      = 0x08
	status         = 0x20

	computing = 1 << 0 // in the status
)

func main() {
	dir, err := find()
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Println("there is no edu device here: start QEMU with -device edu, or see test/vm/run")
		return
	}
	if err == nil {
		err = run(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "edu:", err)
		os.Exit(1)
	}
}

// find returns the directory of the device in sysfs.
func find() (string, error) {
	dirs, err := filepath.Glob("/sys/bus/pci/devices/*")
	if err != nil {
		return "", err
	}
	for _, dir := range dirs {
		v, _ := os.ReadFile(filepath.Join(dir, "vendor"))
		d, _ := os.ReadFile(filepath.Join(dir, "device"))
		if strings.TrimSpace(string(v)) == vendor && strings.TrimSpace(string(d)) == device {
			return dir, nil
		}
	}
	return "", fs.ErrNotExist
}

func run(dir string) error {
	// It has no driver, which would have done so.
	if err := os.WriteFile(filepath.Join(dir, "enable"), []byte("1"), 0); err != nil {
		return err
	}
	bar, err := mmio.Map(filepath.Join(dir, "resource0"), 0, 4096)
	if err != nil {
		return err
	}
	defer bar.Close()
	fmt.Printf("edu, identification %#x\n", mmio.Readl(mmio.MustAt[uint32](bar, identification)))
	for _, n := range []uint32{5, 12, 50_000_000} {
		f, err := compute(bar, n, time.Minute)
		if err != nil {
			return fmt.Errorf("%d!: %w", n, err)
		}
		fmt.Printf("%d! is %d, modulo 2^32\n", n, f)
	}
	return nil
}

// compute has the device compute n!.
func compute(bar *mmio.Region, n uint32, timeout time.Duration) (uint32, error) {
	mmio.Writel(mmio.MustAt[uint32](bar, factorial), n)
	s, err := mmio.ReadlPollTimeout(mmio.MustAt[uint32](bar, status), mmio.BitsClear[uint32](computing),
		100*time.Microsecond, timeout, mmio.AllOnesGone())
	switch {
	case errors.Is(err, mmio.ErrDeviceGone):
		return 0, fmt.Errorf("unplugged: %w", err)
	case errors.Is(err, wait.ErrTimeout):
		return 0, fmt.Errorf("status %#x: %w", s, err)
	case err != nil:
		return 0, err
	}
	return mmio.Readl(mmio.MustAt[uint32](bar, factorial)), nil
}
