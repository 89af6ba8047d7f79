// Uio polls a register of a userspace I/O device, as the kernel's drivers
// uio_pci_generic and uio_dmem_genirq offer them, until bits of it have the
// value that is waited for.
//
//	go run ./examples/uio                                     # the devices there are
//	go run ./examples/uio -device uio0 -offset 0x20 -mask 1   # until bit 0 is clear
//	go run ./examples/uio -device uio0 -map 1 -offset 0x1c -mask 0xff00 -value 0x300 -timeout 2s
//
// It takes the right to read and write /dev/uioN. Where there are no such
// devices it says so.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// A request is what the command line asks for.
type request struct {
	device         string
	number         int // of the mapping
	offset         int // of the register in it
	mask, value    uint32
	sleep, timeout time.Duration
}

func main() {
	var r request
	var mask, value uint
	flag.StringVar(&r.device, "device", "", "`name` of the device, as in /sys/class/uio")
	flag.IntVar(&r.number, "map", 0, "`number` of the mapping")
	flag.IntVar(&r.offset, "offset", 0, "`offset` of the register, in bytes")
	flag.UintVar(&mask, "mask", 1<<32-1, "`bits` that count")
	flag.UintVar(&value, "value", 0, "`value` to wait for")
	flag.DurationVar(&r.sleep, "sleep", 50*time.Microsecond, "`time` between two looks")
	flag.DurationVar(&r.timeout, "timeout", time.Second, "how `long` to wait; 0 is for ever")
	flag.Parse()
	r.mask, r.value = uint32(mask), uint32(value)
	if err := run(os.Stdout, "/", r); err != nil {
		fmt.Fprintln(os.Stderr, "uio:", err)
		os.Exit(1)
	}
}

// run serves the request on the host whose files are under root.
func run(out io.Writer, root string, r request) error {
	class := filepath.Join(root, "sys/class/uio")
	if r.device == "" {
		return list(out, class)
	}
	region, err := open(root, class, r)
	if err != nil {
		return err
	}
	v, err := poll(region, r)
	err = errors.Join(err, region.Close())
	var late wait.TimeoutError
	switch {
	case errors.As(err, &late):
		return fmt.Errorf("after %v and %d looks it is still %#x: %w", late.Elapsed.Round(time.Microsecond), late.Polls, v, err)
	case err != nil:
		return fmt.Errorf("the last value was %#x: %w", v, err)
	}
	fmt.Fprintf(out, "%#x\n", v)
	return nil
}

func poll(region *mmio.Region, r request) (uint32, error) {
	reg, err := mmio.At[uint32](region, r.offset)
	if err != nil {
		return 0, err
	}
	return mmio.ReadlPollTimeout(reg, mmio.Equals(r.mask, r.value), r.sleep, r.timeout)
}

// open maps mapping N of the device, which lies at page N of its file.
func open(root, class string, r request) (*mmio.Region, error) {
	dir := filepath.Join(class, r.device, "maps", fmt.Sprintf("map%d", r.number))
	text, err := os.ReadFile(filepath.Join(dir, "size"))
	if err != nil {
		return nil, fmt.Errorf("no mapping %d of %s: %w", r.number, r.device, err)
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(text)), 0, 0)
	if err != nil {
		return nil, fmt.Errorf("size of mapping %d of %s: %w", r.number, r.device, err)
	}
	return mmio.Map(filepath.Join(root, "dev", r.device), int64(r.number*os.Getpagesize()), int(size))
}

// list prints the devices, with their mappings.
func list(out io.Writer, class string) error {
	devices, err := os.ReadDir(class)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(devices) == 0 {
		fmt.Fprintln(out, "there are no UIO devices here (/sys/class/uio)")
		return nil
	}
	for _, d := range devices {
		dir := filepath.Join(class, d.Name())
		fmt.Fprintf(out, "%s: %s\n", d.Name(), content(dir, "name"))
		maps, _ := filepath.Glob(filepath.Join(dir, "maps/map*"))
		for _, m := range maps {
			fmt.Fprintf(out, "  %s: %s bytes at %s\n", filepath.Base(m), content(m, "size"), content(m, "addr"))
		}
	}
	return nil
}

func content(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
