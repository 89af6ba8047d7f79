// Uio waits until a register of 32 bits has a given value under a mask. The
// register is one of a device that is mapped through UIO, or through sysfs.
//
//	go run ./examples/uio /dev/uio0 0x20 0x1 0
//	go run ./examples/uio /sys/bus/pci/devices/0000:00:04.0/resource0 0x20 0x1 0
//
// Without arguments it says what it wants.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/precisewait/wait/mmio"
)

func main() {
	if len(os.Args) == 1 {
		fmt.Println("usage: uio FILE OFFSET MASK VALUE\n" +
			"waits for up to ten seconds until the register at OFFSET, under MASK, is VALUE")
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "uio:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("%d arguments, not FILE OFFSET MASK VALUE", len(args))
	}
	var numbers [3]uint32
	for i, a := range args[1:] {
		n, err := strconv.ParseUint(a, 0, 32)
		if err != nil {
			return err
		}
		numbers[i] = uint32(n)
	}
	offset, mask, value := int64(numbers[0]), numbers[1], numbers[2]
	if value&^mask != 0 {
		return fmt.Errorf("value %#x has bits outside of mask %#x", value, mask)
	}
	// A UIO device takes the number of a map, in pages, for the offset into
	// the file: so the mapping begins at 0, and the register is an offset in it.
	bar, err := mmio.Map(args[0], 0, int(offset)+4)
	if err != nil {
		return err
	}
	defer bar.Close()
	reg, err := mmio.At[uint32](bar, int(offset))
	if err != nil {
		return err
	}
	start := time.Now()
	v, err := mmio.ReadlPollTimeout(reg, mmio.Equals(mask, value), 100*time.Microsecond, 10*time.Second)
	if err != nil {
		return fmt.Errorf("register is %#x: %w", v, err)
	}
	fmt.Printf("register is %#x, after %v\n", v, time.Since(start).Round(time.Microsecond))
	return nil
}
