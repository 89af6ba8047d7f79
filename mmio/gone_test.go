package mmio_test

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// newVanishing returns a region whose device the function takes away: no
// access to its second page is possible any more.
func newVanishing(t testing.TB) (r *mmio.Region, offset int, vanish func()) {
	page := os.Getpagesize()
	r, f := newRegion(t, 2*page)
	return r, page, func() { assert.NoError(t, f.Truncate(int64(page))) }
}

// requirePanicOnFault fails if the goroutine is not as it was, that is, if a
// fault would not end the program.
func requirePanicOnFault(t *testing.T, want bool) {
	t.Helper()
	was := debug.SetPanicOnFault(false)
	debug.SetPanicOnFault(was)
	require.Equal(t, want, was)
}

func TestPollOfADeviceThatVanishes(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		for _, faults := range []bool{false, true} {
			r, offset, vanish := newVanishing(t)
			mmio.Writeb(mmio.MustAt[uint8](r, offset), 0x42)
			debug.SetPanicOnFault(faults)
			v, err := p.poll(r, offset, countdown(10, func(call int) {
				if call == 3 {
					vanish()
				}
			}), time.Microsecond, time.Minute)
			requirePanicOnFault(t, faults)
			debug.SetPanicOnFault(false)
			assert.ErrorIs(t, err, mmio.ErrDeviceGone)
			assert.Equal(t, uint64(0x42), v, "the last good value")
		}
	})
}

func TestPollOfADeviceThatHasVanished(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, offset, vanish := newVanishing(t)
		vanish()
		v, err := p.poll(r, offset, func(uint64) bool { panic("cond called") }, 0, 0)
		assert.ErrorIs(t, err, mmio.ErrDeviceGone)
		assert.Zero(t, v)
		assert.NoError(t, r.Close())
	})
}

func TestPollWhoseConditionFindsTheDeviceVanished(t *testing.T) {
	r, offset, vanish := newVanishing(t)
	other := mmio.MustAt[uint16](r, offset+2)
	forEachPoll(t, func(t *testing.T, p pollForm) {
		_, err := p.poll(r, 0, func(uint64) bool {
			vanish()
			return mmio.Readw(other) == 0
		}, 0, 0)
		assert.ErrorIs(t, err, mmio.ErrDeviceGone)
	})
}

func TestVanishedDeviceIsToldByItsOffset(t *testing.T) {
	page := int64(os.Getpagesize())
	f := newDevice(t, 3*page)
	r := mapped(t, f, page+100, 100)
	require.NoError(t, f.Truncate(0))
	_, err := mmio.ReadlPollTimeout(mmio.MustAt[uint32](r, 4), mmio.BitsClear[uint32](0), 0, 0)
	require.ErrorIs(t, err, mmio.ErrDeviceGone)
	if runtime.GOOS == "linux" {
		assert.Contains(t, []string{
			"mmio: device gone: fault at offset 0x1068",
			"mmio: device gone: fault at offset 0x1000", // where the hardware tells the page only
		}, err.Error())
	}
}

func TestPollTakesAllOnesForAValue(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		mmio.Writeq(mmio.MustAt[uint64](r, 0), ^uint64(0))
		v, err := p.poll(r, 0, func(v uint64) bool { return v == p.ones }, 0, time.Minute)
		assert.NoError(t, err)
		assert.Equal(t, p.ones, v)
	})
}

func TestPollTakesAllOnesForGone(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		reg := mmio.MustAt[uint64](r, 0)
		for _, opts := range [][]wait.PollOption{
			{mmio.AllOnesGone()},
			{wait.Backoff(0), mmio.AllOnesGone(), wait.OnPoll(func() {})},
		} {
			mmio.Writeq(reg, p.ones>>1)
			v, err := p.poll(r, 0, countdown(10, func(call int) {
				if call == 3 {
					mmio.Writeq(reg, p.ones)
				}
				assert.Less(t, call, 4, "cond saw all ones")
			}), 0, time.Minute, opts...)
			assert.ErrorIs(t, err, mmio.ErrDeviceGone)
			assert.Equal(t, p.ones>>1, v, "the last good value")
		}
	})
}

func TestOtherValuesInOptionsChangeNothing(t *testing.T) {
	r, _ := newRegion(t, 1)
	mmio.Writeb(mmio.MustAt[uint8](r, 0), 0xff)
	for _, value := range []any{nil, 1, struct{}{}, []int{1}, func() {}} {
		v, err := mmio.ReadbPollTimeout(mmio.MustAt[uint8](r, 0), mmio.BitsSet[uint8](1), 0, time.Minute, wait.PollOption{Value: value})
		assert.NoError(t, err)
		assert.Equal(t, uint8(0xff), v)
	}
}

func TestPanicsInAConditionPassThrough(t *testing.T) {
	r, _ := newRegion(t, 8)
	reg := mmio.MustAt[uint32](r, 0)
	closed := mapped(t, newDevice(t, 8), 0, 8)
	onClosed := mmio.MustAt[uint32](closed, 0)
	require.NoError(t, closed.Close())
	mine := errors.New("mine")
	var nobody *struct{ n int }

	for _, c := range []struct {
		name  string
		cond  func()
		check func(t *testing.T, v any)
	}{
		{"of its own", func() { panic(mine) }, func(t *testing.T, v any) {
			assert.Same(t, mine, v)
		}},
		{"nil dereference", func() { nobody.n++ }, func(t *testing.T, v any) {
			err, ok := v.(runtime.Error)
			require.True(t, ok, "%v", v)
			assert.EqualError(t, err, "runtime error: invalid memory address or nil pointer dereference")
		}},
		{"index", func() { _ = make([]int, 1)[mmio.Readl(reg)+1] }, func(t *testing.T, v any) {
			assert.ErrorContains(t, v.(error), "out of range")
		}},
		{"use of another region that is closed", func() { mmio.Readl(onClosed) }, func(t *testing.T, v any) {
			assert.ErrorIs(t, v.(error), os.ErrClosed)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, panicked(func() {
				_, err := mmio.ReadlPollTimeout(reg, func(uint32) bool { c.cond(); return true }, 0, 0)
				t.Error("returned", err)
			}))
			requirePanicOnFault(t, false)
			c.check(t, panicked(func() {
				err := r.Guard(c.cond)
				t.Error("returned", err)
			}))
			requirePanicOnFault(t, false)
		})
	}
}

func TestFaultOfAnotherDeviceThatVanishedPassesThrough(t *testing.T) {
	r, _ := newRegion(t, 8)
	reg := mmio.MustAt[uint32](r, 0)
	gone, offset, vanish := newVanishing(t)
	vanish()
	elsewhere := mmio.MustAt[uint32](gone, offset)
	for name, f := range map[string]func(){
		"poll": func() {
			_, _ = mmio.ReadlPollTimeout(reg, func(uint32) bool { return mmio.Readl(elsewhere) == 0 }, 0, 0)
		},
		"Guard": func() { _ = r.Guard(func() { mmio.Readl(elsewhere) }) },
	} {
		err, ok := panicked(f).(interface {
			runtime.Error
			Addr() uintptr
		})
		require.True(t, ok, name)
		assert.NotZero(t, err.Addr(), name)
		requirePanicOnFault(t, false)
	}
}

func TestGoexitInAConditionPassesThrough(t *testing.T) {
	r, _ := newRegion(t, 8)
	reg := mmio.MustAt[uint32](r, 0)
	ended := make(chan bool)
	go func() {
		defer func() { ended <- debug.SetPanicOnFault(false) }()
		_, _ = mmio.ReadlPollTimeout(reg, func(uint32) bool { runtime.Goexit(); return true }, 0, 0)
	}()
	assert.False(t, <-ended)
}

func TestGuardOfADeviceThatVanishes(t *testing.T) {
	r, offset, vanish := newVanishing(t)
	for _, a := range append(littleAccessors, swappedAccessors...) {
		access := a.bind(r, offset)
		t.Run(a.name, func(t *testing.T) {
			done := false
			err := r.Guard(func() {
				vanish()
				access(0)
				done = true
			})
			assert.ErrorIs(t, err, mmio.ErrDeviceGone)
			assert.False(t, done)
			requirePanicOnFault(t, false)
		})
	}
}

func TestGuardsOfDevicesThatVanishNest(t *testing.T) {
	outer, _ := newRegion(t, 8)
	inner, offset, vanish := newVanishing(t)
	vanish()
	reg := mmio.MustAt[uint32](inner, offset)
	assert.NoError(t, outer.Guard(func() {
		assert.ErrorIs(t, inner.Guard(func() { mmio.Readl(reg) }), mmio.ErrDeviceGone)
		requirePanicOnFault(t, true)
	}))
	assert.ErrorIs(t, inner.Guard(func() {
		_ = outer.Guard(func() { mmio.Readl(reg) })
	}), mmio.ErrDeviceGone)
	requirePanicOnFault(t, false)
}

func TestGuardDoesNotAllocate(t *testing.T) {
	r, _ := newRegion(t, 8)
	reg := mmio.MustAt[uint32](r, 0)
	sum := uint32(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := r.Guard(func() { sum += mmio.Readl(reg) }); err != nil {
			panic(err)
		}
	}))
}

func BenchmarkGuard(b *testing.B) {
	r, _ := newRegion(b, 8)
	reg := mmio.MustAt[uint32](r, 0)
	for b.Loop() {
		_ = r.Guard(func() { mmio.Readl(reg) })
	}
}
