package mmio_test

import (
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/precisewait/wait/mmio"
)

func TestMapTakesCharacterDevices(t *testing.T) {
	const zero = "/dev/zero"
	r, err := mmio.Map(zero, 8, 8192)
	require.NoError(t, err)
	reg := mmio.MustAt[uint64](r, 8184)
	assert.Zero(t, mmio.Readq(reg))
	mmio.Writeq(reg, 1<<63)
	assert.Equal(t, uint64(1)<<63, mmio.Readq(reg))
	assert.NoError(t, r.Close())
}

// What cannot be mapped is then for the kernel to say.
func TestMapDoesNotJudgeBySizeInProc(t *testing.T) {
	f, err := os.Open("/proc/version")
	require.NoError(t, err)
	defer f.Close()
	_, err = mmio.MapFile(f, 0, 4096)
	assert.Error(t, err)
	assert.NotErrorIs(t, err, os.ErrInvalid)
}

// mappings returns the lines of /proc/self/maps that contain s.
func mappings(t *testing.T, s string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, s) {
			n++
		}
	}
	return n
}

func descriptors(t *testing.T) int {
	t.Helper()
	dir, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(dir)
}

func TestNoDescriptorStaysOpen(t *testing.T) {
	f := newDevice(t, 4096)
	before := descriptors(t)
	for range 100 {
		r, err := mmio.Map(f.Name(), 0, 4096)
		require.NoError(t, err)
		_, err = mmio.Map(f.Name(), 0, 4097)
		require.Error(t, err)
		_, err = mmio.Map("/proc/self/fd", 0, 1)
		require.Error(t, err)
		defer r.Close()
	}
	assert.Equal(t, before, descriptors(t))
}

func TestCloseLetsTheFileGoAtOnce(t *testing.T) {
	f := newDevice(t, 8192)
	r := mapped(t, f, 4000, 200)
	reg := mmio.MustAt[uint8](r, 0)
	assert.Equal(t, 1, mappings(t, f.Name()))
	require.NoError(t, r.Close())
	assert.Zero(t, mappings(t, f.Name()))
	assert.ErrorIs(t, failure(func() { mmio.Readb(reg) }), os.ErrClosed)
}

func TestForgottenRegionIsUnmapped(t *testing.T) {
	f := newDevice(t, 8192)
	for range 10 {
		_, err := mmio.MapFile(f, 0, 8192)
		require.NoError(t, err)
	}
	assert.Eventually(t, func() bool {
		runtime.GC()
		return mappings(t, f.Name()) == 0
	}, 10*time.Second, time.Millisecond)
}

func TestClosedRegionsGiveTheirAddressesBack(t *testing.T) {
	f := newDevice(t, 8192)
	before := mappings(t, "")
	for i := range 100 {
		r, err := mmio.MapFile(f, int64(i), 8000)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	assert.Eventually(t, func() bool {
		runtime.GC()
		return mappings(t, "") < before+20 // the heap has grown meanwhile
	}, 10*time.Second, time.Millisecond)
}

func TestMapOfTooMuchIsRefused(t *testing.T) {
	// Half of what a program of 32 bits can address is not too much, three
	// halves are.
	var err error
	for range 3 {
		var r *mmio.Region
		if r, err = mmio.Map("/dev/zero", 0, math.MaxInt-1<<20); err != nil {
			break
		}
		defer r.Close()
	}
	assert.ErrorIs(t, err, unix.ENOMEM)
}
