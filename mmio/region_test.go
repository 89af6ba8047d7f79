package mmio_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/mmio"
)

// newDevice returns an empty file that plays a device with size bytes of
// registers.
func newDevice(t testing.TB, size int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "device"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	require.NoError(t, f.Truncate(size))
	return f
}

// mapped returns a region of f.
func mapped(t testing.TB, f *os.File, offset int64, size int) *mmio.Region {
	t.Helper()
	r, err := mmio.MapFile(f, offset, size)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			assert.ErrorIs(t, err, os.ErrClosed) // by the test
		}
	})
	return r
}

// newRegion returns a region that is the whole of a new device.
func newRegion(t testing.TB, size int) (*mmio.Region, *os.File) {
	t.Helper()
	f := newDevice(t, int64(size))
	return mapped(t, f, 0, size), f
}

// panicked returns what f panics with, or nil.
func panicked(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}

// failure returns the error that f panics with, or nil.
func failure(f func()) error {
	err, _ := panicked(f).(error)
	return err
}

func TestMapReachesTheBytesOfTheFile(t *testing.T) {
	page := int64(os.Getpagesize())
	for _, c := range []struct {
		name         string
		offset, size int64
	}{
		{"whole file", 0, 3 * page},
		{"one page in the middle", page, page},
		{"part of a page", 16, 32},
		{"across a page", page - 8, 16},
		{"last byte", 3*page - 1, 1},
		{"odd", 3, 2*page + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newDevice(t, 3*page)
			_, err := f.WriteAt([]byte{0x11}, c.offset)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{0x22}, c.offset+c.size-1)
			require.NoError(t, err)
			byFile := mapped(t, f, c.offset, int(c.size))
			byPath, err := mmio.Map(f.Name(), c.offset, int(c.size))
			require.NoError(t, err)
			defer byPath.Close()
			for _, r := range []*mmio.Region{byFile, byPath} {
				assert.Equal(t, int(c.size), r.Size())
				last := mmio.MustAt[uint8](r, int(c.size)-1)
				assert.Equal(t, uint8(0x22), mmio.Readb(last))
				if c.size > 1 {
					assert.Equal(t, uint8(0x11), mmio.Readb(mmio.MustAt[uint8](r, 0)))
				}
			}
			mmio.Writeb(mmio.MustAt[uint8](byPath, 0), 0x33)
			assert.Equal(t, uint8(0x33), mmio.Readb(mmio.MustAt[uint8](byFile, 0)), "the mapping is shared")
			got := make([]byte, 1)
			_, err = f.ReadAt(got, c.offset)
			require.NoError(t, err)
			assert.Equal(t, []byte{0x33}, got)
		})
	}
}

func TestMapRefusesWhatIsNotInTheFile(t *testing.T) {
	f := newDevice(t, 100)
	empty := newDevice(t, 0)
	for _, c := range []struct {
		name   string
		file   *os.File
		offset int64
		size   int
	}{
		{"no size", f, 0, 0},
		{"negative size", f, 0, -1},
		{"smallest size", f, 0, math.MinInt},
		{"negative offset", f, -1, 1},
		{"smallest offset", f, math.MinInt64, 1},
		{"end past the largest offset", f, math.MaxInt64, 1},
		{"size past the largest with its first page", f, 1, math.MaxInt},
		{"size past the end", f, 0, 101},
		{"end past the end", f, 99, 2},
		{"offset at the end", f, 100, 1},
		{"offset past the end, in the last page", f, 200, 1},
		{"offset far past the end", f, 1 << 40, 1},
		{"empty file", empty, 0, 1},
		{"no file", nil, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := mmio.MapFile(c.file, c.offset, c.size)
			assert.ErrorIs(t, err, os.ErrInvalid)
			assert.Nil(t, r)
			if c.file != nil {
				r, err = mmio.Map(c.file.Name(), c.offset, c.size)
				assert.ErrorIs(t, err, os.ErrInvalid)
				assert.Nil(t, r)
			}
		})
	}
}

func TestMapSaysWhyItCannot(t *testing.T) {
	newRegion(t, 8) // or skip
	dir := t.TempDir()
	_, err := mmio.Map(filepath.Join(dir, "none"), 0, 1)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = mmio.Map(dir, 0, 1)
	assert.Error(t, err)

	reads, writes, err := os.Pipe()
	require.NoError(t, err)
	defer writes.Close()
	_, err = mmio.MapFile(reads, 0, 1)
	var path *fs.PathError
	if assert.ErrorAs(t, err, &path) {
		assert.Equal(t, "mmap", path.Op)
	}
	require.NoError(t, reads.Close())
	_, err = mmio.MapFile(reads, 0, 1)
	assert.ErrorIs(t, err, os.ErrClosed)
}

func TestRegionOutlivesItsFile(t *testing.T) {
	f := newDevice(t, 8)
	g, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
	require.NoError(t, err)
	r := mapped(t, g, 0, 8)
	require.NoError(t, g.Close())
	reg := mmio.MustAt[uint32](r, 4)
	mmio.Writel(reg, 7)
	assert.Equal(t, uint32(7), mmio.Readl(reg))
}

func TestReadOnlyRegionRefusesWrites(t *testing.T) {
	f := newDevice(t, 8)
	_, err := f.WriteAt([]byte{5}, 0)
	require.NoError(t, err)
	g, err := os.Open(f.Name())
	require.NoError(t, err)
	defer g.Close()
	r := mapped(t, g, 0, 8)
	reg := mmio.MustAt[uint64](r, 0)
	assert.Equal(t, uint64(5), mmio.Readq(reg))
	write := func() { mmio.Writeq(reg, 6) }
	assert.ErrorIs(t, failure(write), os.ErrPermission)
	assert.ErrorIs(t, r.Guard(write), os.ErrPermission)
	assert.Equal(t, uint64(5), mmio.Readq(reg))
	require.NoError(t, r.Close())
	assert.ErrorIs(t, failure(write), os.ErrClosed)
}

func TestAtTakesWhatLiesInTheRegion(t *testing.T) {
	r, _ := newRegion(t, 24)
	shifted := mapped(t, newDevice(t, 24), 2, 18)
	for _, c := range []struct {
		name   string
		region *mmio.Region
		offset int
		widths []int // for which the offset is right
	}{
		{"first byte", r, 0, []int{1, 2, 4, 8}},
		{"odd", r, 1, []int{1}},
		{"multiple of 2", r, 6, []int{1, 2}},
		{"multiple of 4", r, 12, []int{1, 2, 4}},
		{"last 8 bytes", r, 16, []int{1, 2, 4, 8}},
		{"last 4 bytes", r, 20, []int{1, 2, 4}},
		{"last 2 bytes", r, 22, []int{1, 2}},
		{"last byte", r, 23, []int{1}},
		{"end", r, 24, nil},
		{"past the end", r, 32, nil},
		{"negative", r, -8, nil},
		{"smallest", r, math.MinInt, nil},
		{"largest", r, math.MaxInt - 7, nil},
		{"misaligned in the file only", shifted, 8, []int{1, 2}},
		{"aligned in the file only", shifted, 6, []int{1, 2, 4, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(width int, err, must error) {
				assert.Equal(t, err, must)
				if slices.Contains(c.widths, width) {
					assert.NoError(t, err)
				} else {
					assert.ErrorIs(t, err, os.ErrInvalid)
				}
			}
			_, err := mmio.At[uint8](c.region, c.offset)
			check(1, err, failure(func() { mmio.MustAt[uint8](c.region, c.offset) }))
			_, err = mmio.At[uint16](c.region, c.offset)
			check(2, err, failure(func() { mmio.MustAt[uint16](c.region, c.offset) }))
			_, err = mmio.At[uint32](c.region, c.offset)
			check(4, err, failure(func() { mmio.MustAt[uint32](c.region, c.offset) }))
			_, err = mmio.At[uint64](c.region, c.offset)
			check(8, err, failure(func() { mmio.MustAt[uint64](c.region, c.offset) }))
		})
	}
}

func TestAtIsTheAddressItSays(t *testing.T) {
	f := newDevice(t, 64)
	r := mapped(t, f, 2, 62)
	mmio.Writel(mmio.MustAt[uint32](r, 10), 0x44332211)
	got := make([]byte, 6)
	_, err := f.ReadAt(got, 11)
	require.NoError(t, err)
	assert.Equal(t, []byte{0, 0x11, 0x22, 0x33, 0x44, 0}, got)
}

func TestZeroRegIsLikeANilPointer(t *testing.T) {
	var reg mmio.Reg[uint32]
	for name, f := range map[string]func(){
		"read":  func() { mmio.Readl(reg) },
		"write": func() { mmio.Writel(reg, 1) },
	} {
		var e runtime.Error
		require.ErrorAs(t, failure(f), &e, name)
		assert.Contains(t, e.Error(), "nil pointer", name)
	}
}

func TestClosedRegionRefusesEverything(t *testing.T) {
	r, f := newRegion(t, 8)
	reg := mmio.MustAt[uint32](r, 4)
	mmio.Writel(reg, 5)
	require.NoError(t, r.Close())
	assert.ErrorIs(t, r.Close(), os.ErrClosed)

	_, err := mmio.At[uint32](r, 4)
	assert.ErrorIs(t, err, os.ErrClosed)
	assert.ErrorIs(t, failure(func() { mmio.MustAt[uint32](r, 4) }), os.ErrClosed)
	assert.ErrorIs(t, failure(func() { mmio.Readl(reg) }), os.ErrClosed)
	assert.ErrorIs(t, failure(func() { mmio.Writel(reg, 6) }), os.ErrClosed)
	assert.ErrorIs(t, r.Guard(func() { mmio.Readl(reg) }), os.ErrClosed)
	assert.EqualError(t, r.Guard(func() { mmio.Writel(reg, 6) }), "mmio: access to a closed region")

	again := mapped(t, f, 0, 8)
	assert.Equal(t, uint32(5), mmio.Readl(mmio.MustAt[uint32](again, 4)))
}

func TestClosedRegionKeepsItsAddresses(t *testing.T) {
	r, f := newRegion(t, 1<<16)
	reg := mmio.MustAt[uint32](r, 1<<16-4)
	require.NoError(t, r.Close())
	for range 5 {
		runtime.GC()
		mapped(t, f, 0, 1<<16) // would take them if they were free
		assert.ErrorIs(t, failure(func() { mmio.Readl(reg) }), os.ErrClosed)
		assert.ErrorIs(t, failure(func() { mmio.Writel(reg, 1) }), os.ErrClosed)
	}
}

func TestRegKeepsItsRegionMapped(t *testing.T) {
	reg := func() mmio.Reg[uint32] {
		r, err := mmio.MapFile(newDevice(t, 8), 0, 8)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skip(err)
		}
		require.NoError(t, err)
		return mmio.MustAt[uint32](r, 4)
	}()
	for range 5 {
		runtime.GC()
		mmio.Writel(reg, mmio.Readl(reg)+1)
	}
	assert.Equal(t, uint32(5), mmio.Readl(reg))
}

// No access may fault while its region is being closed, and no read may return
// what lies there afterwards.
func TestCloseDuringAccesses(t *testing.T) {
	const value = 0x5a5a5a5a
	f := newDevice(t, 8)
	for range 200 {
		r := mapped(t, f, 0, 8)
		reg := mmio.MustAt[uint32](r, 0)
		mmio.Writel(reg, value)
		var wg sync.WaitGroup
		began := make(chan struct{}, 2)
		until := func(access func()) {
			wg.Go(func() {
				began <- struct{}{}
				for {
					if err := failure(access); err != nil {
						assert.ErrorIs(t, err, os.ErrClosed)
						return
					}
				}
			})
		}
		until(func() {
			if v := mmio.Readl(reg); v != value {
				t.Errorf("read %#x", v)
			}
		})
		until(func() { mmio.Writel(reg, value) })
		<-began
		<-began
		assert.NoError(t, r.Close())
		wg.Wait()
	}
}

// Whatever is asked for, a region and a register are either refused or lie in
// the file, so that they can be read.
func FuzzMapAndAt(f *testing.F) {
	f.Add(int64(0), 1, 0)
	f.Add(int64(100), 9900, 9896)
	f.Add(int64(9999), 1, 0)
	f.Add(int64(math.MaxInt64), math.MaxInt, math.MaxInt)
	f.Add(int64(math.MinInt64), math.MinInt, math.MinInt)
	const length = 10000
	file := newDevice(f, length)
	if _, err := mmio.MapFile(file, 0, 1); err != nil {
		f.Skip(err)
	}
	f.Fuzz(func(t *testing.T, offset int64, size, register int) {
		r, err := mmio.MapFile(file, offset, size)
		inside := offset >= 0 && offset < length && size > 0 && int64(size) <= length-offset
		require.Equal(t, inside, err == nil, "%v", err)
		if err != nil {
			assert.ErrorIs(t, err, os.ErrInvalid)
			return
		}
		defer r.Close()
		reg, err := mmio.At[uint32](r, register)
		inside = register >= 0 && register <= size-4 && (offset+int64(register))%4 == 0
		require.Equal(t, inside, err == nil, "%v", err)
		if err == nil {
			mmio.Readl(reg)
		}
	})
}
