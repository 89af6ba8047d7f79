// Package mmio reads and writes the registers of a device that is mapped into
// memory: the resource files of PCI devices in sysfs, UIO and VFIO devices,
// /dev/mem. Its polls are those of the kernel's include/linux/iopoll.h.
//
//	bar, err := mmio.Map("/sys/bus/pci/devices/0000:00:04.0/resource0", 0, 4096)
//	...
//	defer bar.Close()
//	status := mmio.MustAt[uint32](bar, 0x20)
//	v, err := mmio.ReadlPollTimeout(status, mmio.BitsClear[uint32](busy), 50*time.Microsecond, time.Second)
//
// # Accesses
//
// [Readb], [Writel] and their kin make one access to the device, of the width
// that their last letter says: b for 8 bits, w for 16, l for 32 and q for 64.
// They are named for the kernel's functions, and as for those the device is
// little-endian; for others there are the Swapped forms. Other than in the
// kernel the register comes before the value, as in sync/atomic. They allocate
// nothing.
//
// The ordered forms keep their place among each other and among accesses to
// memory as the kernel's do: what comes after a read sees the memory that the
// device wrote before it answered, and the device sees the memory that was
// written before the write that has it look there. The Relaxed forms keep their
// place among accesses to the same device only, and are cheaper where barriers
// cost something: here, on arm64.
//
// On amd64 and arm64 accesses are in assembly. On other architectures, and with
// the build tag purego, they are what Go has: accesses of 8 and 16 bits are
// plain ones in functions of their own, which the compiler has no reason to
// split, merge or leave out, and carry no barrier. Those of 32 and 64 bits are
// those of sync/atomic, where these are a single access with barriers, and
// plain ones on amd64 and 386, which need no barriers, and on riscv64 and
// loong64. Accesses of 64 bits on 32-bit arm are a pair of exclusive ones,
// which many devices refuse.
//
// # Devices that go away
//
// Access to a device that is gone faults, which ends a poll with
// [ErrDeviceGone], and outside of polls the program, unless [Region.Guard] is
// around it. Access to a region that was closed panics, or ends the poll, with
// an error that is [os.ErrClosed]; it never faults.
//
// Mapping needs Linux, macOS or a BSD. Elsewhere it is refused with
// [errors.ErrUnsupported].
package mmio

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// A Region is a part of a file or device that is mapped into memory. It is
// safe for use by any number of goroutines.
//
// Its addresses are given back once neither the Region nor a [Reg] of it can
// be reached any more; until then nothing else is mapped there.
type Region struct {
	state  atomic.Uint32
	pages  mapping
	skip   int   // from the first page to the first byte of the region
	size   int   // in bytes
	offset int64 // of the first page in the file
}

// What the state of a region is made of.
const (
	closed = 1 << iota
	readOnly
)

// A mapping is a number of pages.
type mapping struct {
	base unsafe.Pointer
	size uintptr
}

// Map maps size bytes at offset of the file or device with the given path,
// shared, for reading and writing. Neither offset nor size needs to be a
// multiple of the page size.
//
// It opens the path with O_SYNC, by which /dev/mem knows on some
// architectures that the mapping must not be cached. The descriptor is closed
// again before Map returns.
//
// A size that is not positive, a negative offset, and an end that overflows or
// is beyond the end of a regular file are [os.ErrInvalid]. The size of devices,
// of files in /proc, and of files in /sys that have none, is the kernel's to
// check. Other errors are those of opening and mapping.
func Map(path string, offset int64, size int) (*Region, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_SYNC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return MapFile(f, offset, size)
}

// MapFile is [Map] of an open file, which may be closed afterwards. If f is
// open for reading only, so is the region: a write to it panics with an error
// that is [os.ErrPermission]. To have the memory of a device uncached, f may
// have to be open with [os.O_SYNC].
func MapFile(f *os.File, offset int64, size int) (*Region, error) {
	if size <= 0 || offset < 0 || offset > math.MaxInt64-int64(size) {
		return nil, fmt.Errorf("mmio: %d bytes at offset %d: %w", size, offset, os.ErrInvalid)
	}
	skip := int(offset % int64(os.Getpagesize()))
	if size > math.MaxInt-skip {
		return nil, fmt.Errorf("mmio: %d bytes at offset %d: %w", size, offset, os.ErrInvalid)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && offset+int64(size) > info.Size() && !ofUnknownSize(f, info) {
		return nil, fmt.Errorf("mmio: %d bytes at offset %d of %s, which has %d: %w",
			size, offset, f.Name(), info.Size(), os.ErrInvalid)
	}
	r := &Region{skip: skip, size: size, offset: offset - int64(skip)}
	writable, err := isWritable(f)
	if err != nil {
		return nil, err
	}
	if !writable {
		r.state.Store(readOnly)
	}
	if r.pages, err = mapShared(f, r.offset, uintptr(skip+size), writable); err != nil {
		return nil, &os.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	runtime.AddCleanup(r, mapping.unmap, r.pages)
	return r, nil
}

// Size returns the size of the region in bytes.
func (r *Region) Size() int { return r.size }

// Close lets the device go. Accesses that are made later panic with an error
// that is [os.ErrClosed], and polls that are under way return it once they
// read again, as does a second Close.
//
// An access that is made by another goroutine meanwhile either reaches the
// device or reads and writes memory that means nothing; it never faults, and no
// read returns what was in that memory. (On arm64, a relaxed read at that very
// moment may return 0.) If Close fails, the region is closed all the same, but
// keeps its hold on the device.
func (r *Region) Close() error {
	if r.state.Or(closed)&closed != 0 {
		return fmt.Errorf("mmio: close: %w", os.ErrClosed)
	}
	// The state comes before the memory: a read that looks at the state
	// afterwards knows whether it was the device that it read.
	err := r.pages.replace()
	runtime.KeepAlive(r)
	if err != nil {
		return fmt.Errorf("mmio: close: %w", err)
	}
	return nil
}

// An accessError is what an access to a region that does not allow it panics
// with.
type accessError struct {
	region *Region
	text   string
	err    error
}

func (e *accessError) Error() string { return e.text }
func (e *accessError) Unwrap() error { return e.err }

// refuse panics for an access that the state does not allow. It is a call of
// its own so that accesses stay small.
//
//go:noinline
func (r *Region) refuse() {
	if r.state.Load()&closed != 0 {
		panic(&accessError{r, "mmio: access to a closed region", os.ErrClosed})
	}
	panic(&accessError{r, "mmio: write to a read-only region", os.ErrPermission})
}

// Width is the type of a register's value.
type Width interface {
	uint8 | uint16 | uint32 | uint64
}

// A Reg is a register of a region: a pointer that was checked when it was
// made. It is a small value, to be copied and kept. The zero Reg is like a nil
// pointer.
type Reg[T Width] struct {
	p      *T
	region *Region
}

// At returns the register at offset in the region, in bytes. If it does not lie
// inside the region, or not at a multiple of its width, that is
// [os.ErrInvalid]; what counts is the offset in the file, which the region's
// own is part of. A region that is closed is [os.ErrClosed].
func At[T Width](r *Region, offset int) (Reg[T], error) {
	var v T
	width := int(unsafe.Sizeof(v))
	switch {
	case offset < 0 || offset > r.size-width:
		return Reg[T]{}, fmt.Errorf("mmio: register of %d bytes at offset %#x of a region of %#x: %w",
			width, offset, r.size, os.ErrInvalid)
	case (r.skip+offset)%width != 0:
		return Reg[T]{}, fmt.Errorf("mmio: register of %d bytes at misaligned offset %#x: %w",
			width, r.offset+int64(r.skip+offset), os.ErrInvalid)
	case r.state.Load()&closed != 0:
		return Reg[T]{}, fmt.Errorf("mmio: register of a closed region: %w", os.ErrClosed)
	}
	return Reg[T]{(*T)(unsafe.Add(r.pages.base, r.skip+offset)), r}, nil
}

// MustAt is [At] for offsets that are known to be right. It panics where At
// fails.
func MustAt[T Width](r *Region, offset int) Reg[T] {
	reg, err := At[T](r, offset)
	if err != nil {
		panic(err)
	}
	return reg
}

// alive returns v, which was read from the register, if the region was not
// closed by then.
func (r Reg[T]) alive(v T) T {
	if r.region.state.Load()&closed != 0 {
		r.region.refuse()
	}
	return v
}

// mustStore panics if the register cannot be written.
func (r Reg[T]) mustStore() {
	if r.region.state.Load() != 0 {
		r.region.refuse()
	}
}

// stored keeps the region from being unmapped before the register was
// written.
func (r Reg[T]) stored() { runtime.KeepAlive(r.region) }
