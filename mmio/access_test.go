package mmio_test

import (
	"encoding/binary"
	"math/bits"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// An accessor is one of the functions that read or write, in a shape that all
// of them can be called by: bound to a register, and with a value that a read
// returns or a write takes.
type accessor struct {
	name  string
	width int // in bytes
	reads bool
	bind  func(r *mmio.Region, offset int) (access func(v uint64) uint64)
}

func reader[T mmio.Width](name string, width int, read func(mmio.Reg[T]) T) accessor {
	return accessor{name, width, true, func(r *mmio.Region, offset int) func(uint64) uint64 {
		reg := mmio.MustAt[T](r, offset)
		return func(uint64) uint64 { return uint64(read(reg)) }
	}}
}

func writer[T mmio.Width](name string, width int, write func(mmio.Reg[T], T)) accessor {
	return accessor{name, width, false, func(r *mmio.Region, offset int) func(uint64) uint64 {
		reg := mmio.MustAt[T](r, offset)
		return func(v uint64) uint64 { write(reg, T(v)); return v }
	}}
}

var littleAccessors = []accessor{
	reader("Readb", 1, mmio.Readb),
	reader("ReadbRelaxed", 1, mmio.ReadbRelaxed),
	reader("Readw", 2, mmio.Readw),
	reader("ReadwRelaxed", 2, mmio.ReadwRelaxed),
	reader("Readl", 4, mmio.Readl),
	reader("ReadlRelaxed", 4, mmio.ReadlRelaxed),
	reader("Readq", 8, mmio.Readq),
	reader("ReadqRelaxed", 8, mmio.ReadqRelaxed),
	writer("Writeb", 1, mmio.Writeb),
	writer("WritebRelaxed", 1, mmio.WritebRelaxed),
	writer("Writew", 2, mmio.Writew),
	writer("WritewRelaxed", 2, mmio.WritewRelaxed),
	writer("Writel", 4, mmio.Writel),
	writer("WritelRelaxed", 4, mmio.WritelRelaxed),
	writer("Writeq", 8, mmio.Writeq),
	writer("WriteqRelaxed", 8, mmio.WriteqRelaxed),
}

var swappedAccessors = []accessor{
	reader("ReadwSwapped", 2, mmio.ReadwSwapped),
	reader("ReadlSwapped", 4, mmio.ReadlSwapped),
	reader("ReadqSwapped", 8, mmio.ReadqSwapped),
	writer("WritewSwapped", 2, mmio.WritewSwapped),
	writer("WritelSwapped", 4, mmio.WritelSwapped),
	writer("WriteqSwapped", 8, mmio.WriteqSwapped),
}

func TestAccessorsHaveTheirWidthAndByteOrder(t *testing.T) {
	const value = 0x8877665544332211
	forEach := func(accessors []accessor, order binary.ByteOrder, value func(width int) uint64) {
		for _, a := range accessors {
			t.Run(a.name, func(t *testing.T) {
				r, f := newRegion(t, 24)
				want := make([]byte, 24)
				for i := range want {
					want[i] = 0xee // the neighbours
				}
				stored := make([]byte, 8)
				order.PutUint64(stored, value(a.width))
				if order == binary.BigEndian {
					stored = stored[8-a.width:]
				}
				if a.reads {
					copy(want[8:], stored[:a.width])
				}
				_, err := f.WriteAt(want, 0)
				require.NoError(t, err)
				assert.Equal(t, value(a.width), a.bind(r, 8)(value(a.width)))
				copy(want[8:], stored[:a.width])
				got := make([]byte, 24)
				_, err = f.ReadAt(got, 0)
				require.NoError(t, err)
				assert.Equal(t, want, got)
			})
		}
	}
	cut := func(width int) uint64 { return value & (1<<(8*width) - 1) }
	forEach(littleAccessors, binary.LittleEndian, cut)
	forEach(swappedAccessors, binary.BigEndian, cut)
}

func TestAccessorsRefuseAClosedRegion(t *testing.T) {
	for _, a := range append(littleAccessors, swappedAccessors...) {
		t.Run(a.name, func(t *testing.T) {
			r, _ := newRegion(t, 8)
			access := a.bind(r, 0)
			assert.NoError(t, failure(func() { access(0) }))
			require.NoError(t, r.Close())
			assert.ErrorIs(t, failure(func() { access(0) }), os.ErrClosed)
		})
	}
}

func TestAccessorsDoNotAllocate(t *testing.T) {
	r, _ := newRegion(t, 8)
	for _, a := range append(littleAccessors, swappedAccessors...) {
		access := a.bind(r, 0)
		assert.Zero(t, testing.AllocsPerRun(100, func() { access(1) }), a.name)
	}
}

// The value's halves are always the same number; a torn one would have
// different ones.
func TestReadqHighLowIsNotTorn(t *testing.T) {
	r, f := newRegion(t, 8)
	device := mmio.MustAt[uint64](mapped(t, f, 0, 8), 0)
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for n := uint64(1); ; n++ {
			select {
			case <-done:
				return
			default:
				mmio.Writeq(device, n<<32|n)
				wait.Spin(300 * time.Nanosecond)
			}
		}
	}()
	defer func() {
		close(done)
		<-stopped
	}()
	high, low := mmio.MustAt[uint32](r, 4), mmio.MustAt[uint32](r, 0)
	last := uint64(0)
	for begin := time.Now(); time.Since(begin) < 50*time.Millisecond; {
		v, err := mmio.ReadqHighLow(high, low)
		if err != nil {
			assert.ErrorIs(t, err, mmio.ErrTorn)
			continue
		}
		if !assert.Equal(t, v, bits.RotateLeft64(v, 32)) || !assert.GreaterOrEqual(t, v, last) {
			return
		}
		last = v
	}
}

func TestReadqHighLowLooksAgain(t *testing.T) {
	r, _ := newRegion(t, 8)
	high, low := mmio.MustAt[uint32](r, 4), mmio.MustAt[uint32](r, 0)
	for _, c := range []struct {
		name  string
		reads []uint32 // high, low, high, low, ...
		value uint64
	}{
		{"no change", []uint32{1, 7, 1}, 1<<32 | 7},
		{"wraps before low", []uint32{1, 0, 2, 3, 2}, 2<<32 | 3},
		{"wraps after low", []uint32{1, 0xffffffff, 2, 3, 2}, 2<<32 | 3},
		{"wraps twice", []uint32{1, 0, 2, 0, 3, 4, 3}, 3<<32 | 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			v, err := mmio.HighLow(func(reg mmio.Reg[uint32]) uint32 {
				assert.Equal(t, n%2 == 0, reg == high)
				n++
				return c.reads[n-1]
			}, high, low)
			assert.NoError(t, err)
			assert.Equal(t, c.value, v)
			assert.Equal(t, len(c.reads), n)
		})
	}
}

func TestReadqHighLowGivesUp(t *testing.T) {
	n := uint32(0)
	v, err := mmio.HighLow(func(mmio.Reg[uint32]) uint32 { n++; return n }, mmio.Reg[uint32]{}, mmio.Reg[uint32]{})
	assert.ErrorIs(t, err, mmio.ErrTorn)
	assert.Equal(t, uint32(201), n)
	assert.Equal(t, uint64(201)<<32|200, v)
}

func BenchmarkReadl(b *testing.B) {
	r, _ := newRegion(b, 8)
	reg := mmio.MustAt[uint32](r, 0)
	for b.Loop() {
		mmio.Readl(reg)
	}
}

func BenchmarkWritel(b *testing.B) {
	r, _ := newRegion(b, 8)
	reg := mmio.MustAt[uint32](r, 0)
	for b.Loop() {
		mmio.Writel(reg, 1)
	}
}
