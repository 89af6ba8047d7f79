package mmio

import (
	"errors"
	"math/bits"
	"runtime"
)

// Readb reads 8 bits, ordered. It is the kernel's readb.
func Readb(r Reg[uint8]) uint8 { return r.alive(load8Ordered(r.p)) }

// ReadbRelaxed reads 8 bits. It is the kernel's readb_relaxed.
func ReadbRelaxed(r Reg[uint8]) uint8 { return r.alive(load8(r.p)) }

// Readw reads 16 bits, ordered. It is the kernel's readw.
func Readw(r Reg[uint16]) uint16 { return r.alive(little16(load16Ordered(r.p))) }

// ReadwRelaxed reads 16 bits. It is the kernel's readw_relaxed.
func ReadwRelaxed(r Reg[uint16]) uint16 { return r.alive(little16(load16(r.p))) }

// Readl reads 32 bits, ordered. It is the kernel's readl.
func Readl(r Reg[uint32]) uint32 { return r.alive(little32(load32Ordered(r.p))) }

// ReadlRelaxed reads 32 bits. It is the kernel's readl_relaxed.
func ReadlRelaxed(r Reg[uint32]) uint32 { return r.alive(little32(load32(r.p))) }

// Readq reads 64 bits, ordered. It is the kernel's readq.
func Readq(r Reg[uint64]) uint64 { return r.alive(little64(load64Ordered(r.p))) }

// ReadqRelaxed reads 64 bits. It is the kernel's readq_relaxed.
func ReadqRelaxed(r Reg[uint64]) uint64 { return r.alive(little64(load64(r.p))) }

// Writeb writes 8 bits, ordered. It is the kernel's writeb.
func Writeb(r Reg[uint8], v uint8) {
	r.mustStore()
	store8Ordered(r.p, v)
	r.stored()
}

// WritebRelaxed writes 8 bits. It is the kernel's writeb_relaxed.
func WritebRelaxed(r Reg[uint8], v uint8) {
	r.mustStore()
	store8(r.p, v)
	r.stored()
}

// Writew writes 16 bits, ordered. It is the kernel's writew.
func Writew(r Reg[uint16], v uint16) {
	r.mustStore()
	store16Ordered(r.p, little16(v))
	r.stored()
}

// WritewRelaxed writes 16 bits. It is the kernel's writew_relaxed.
func WritewRelaxed(r Reg[uint16], v uint16) {
	r.mustStore()
	store16(r.p, little16(v))
	r.stored()
}

// Writel writes 32 bits, ordered. It is the kernel's writel.
func Writel(r Reg[uint32], v uint32) {
	r.mustStore()
	store32Ordered(r.p, little32(v))
	r.stored()
}

// WritelRelaxed writes 32 bits. It is the kernel's writel_relaxed.
func WritelRelaxed(r Reg[uint32], v uint32) {
	r.mustStore()
	store32(r.p, little32(v))
	r.stored()
}

// Writeq writes 64 bits, ordered. It is the kernel's writeq.
func Writeq(r Reg[uint64], v uint64) {
	r.mustStore()
	store64Ordered(r.p, little64(v))
	r.stored()
}

// WriteqRelaxed writes 64 bits. It is the kernel's writeq_relaxed.
func WriteqRelaxed(r Reg[uint64], v uint64) {
	r.mustStore()
	store64(r.p, little64(v))
	r.stored()
}

// ReadwSwapped reads 16 bits of a big-endian device, ordered. It is the
// kernel's ioread16be.
func ReadwSwapped(r Reg[uint16]) uint16 { return bits.ReverseBytes16(Readw(r)) }

// WritewSwapped writes 16 bits of a big-endian device, ordered. It is the
// kernel's iowrite16be.
func WritewSwapped(r Reg[uint16], v uint16) { Writew(r, bits.ReverseBytes16(v)) }

// ReadlSwapped reads 32 bits of a big-endian device, ordered. It is the
// kernel's ioread32be.
func ReadlSwapped(r Reg[uint32]) uint32 { return bits.ReverseBytes32(Readl(r)) }

// WritelSwapped writes 32 bits of a big-endian device, ordered. It is the
// kernel's iowrite32be.
func WritelSwapped(r Reg[uint32], v uint32) { Writel(r, bits.ReverseBytes32(v)) }

// ReadqSwapped reads 64 bits of a big-endian device, ordered. It is the
// kernel's ioread64be.
func ReadqSwapped(r Reg[uint64]) uint64 { return bits.ReverseBytes64(Readq(r)) }

// WriteqSwapped writes 64 bits of a big-endian device, ordered. It is the
// kernel's iowrite64be.
func WriteqSwapped(r Reg[uint64], v uint64) { Writeq(r, bits.ReverseBytes64(v)) }

// ErrTorn is what [ReadqHighLow] returns if it cannot get two halves that
// belong together.
var ErrTorn = errors.New("mmio: high half changed with every look")

// ReadqHighLow reads a value of 64 bits, such as a counter, from the two
// registers that hold its halves: high, low, and high again, until the two
// highs agree. The low half then belongs to them, provided that the high one
// does not come back to an earlier value within the time of a read. (The
// kernel's hi_lo_readq looks once, and may be off by 2^32.)
//
// A high half that changes in each of 100 looks, which no counter does, is
// [ErrTorn]. The value is then the last one read.
func ReadqHighLow(high, low Reg[uint32]) (uint64, error) { return highLow(Readl, high, low) }

func highLow(read func(Reg[uint32]) uint32, high, low Reg[uint32]) (uint64, error) {
	h, l := read(high), uint32(0)
	for range 100 {
		before := h
		l, h = read(low), read(high)
		if h == before {
			return uint64(h)<<32 | uint64(l), nil
		}
	}
	return uint64(h)<<32 | uint64(l), ErrTorn
}

// bigEndian says that this host is.
const bigEndian = runtime.GOARCH == "mips" || runtime.GOARCH == "mips64" ||
	runtime.GOARCH == "ppc64" || runtime.GOARCH == "s390x"

// little16 returns the value of what is stored as v in a little-endian device,
// or the other way round.
func little16(v uint16) uint16 {
	if bigEndian {
		return bits.ReverseBytes16(v)
	}
	return v
}

func little32(v uint32) uint32 {
	if bigEndian {
		return bits.ReverseBytes32(v)
	}
	return v
}

func little64(v uint64) uint64 {
	if bigEndian {
		return bits.ReverseBytes64(v)
	}
	return v
}
