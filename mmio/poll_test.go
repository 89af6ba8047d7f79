package mmio_test

import (
	"context"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// A pollForm is one of the sixteen polls, in a shape that all of them can be
// called by.
type pollForm struct {
	name string
	ones uint64 // the largest value
	poll func(r *mmio.Region, offset int, cond func(uint64) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint64, error)
	nil  func(r *mmio.Region) // polls without a cond
	last func(e wait.TimeoutError) (v uint64, ok bool)

	allocations func(r *mmio.Region, opts ...wait.PollOption) float64
}

func form[T mmio.Width](name string, poll func(mmio.Reg[T], func(T) bool, time.Duration, time.Duration, ...wait.PollOption) (T, error)) pollForm {
	return pollForm{
		name: name,
		ones: uint64(^T(0)),
		poll: func(r *mmio.Region, offset int, cond func(uint64) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint64, error) {
			v, err := poll(mmio.MustAt[T](r, offset), func(v T) bool { return cond(uint64(v)) }, sleep, timeout, opts...)
			return uint64(v), err
		},
		nil: func(r *mmio.Region) { _, _ = poll(mmio.MustAt[T](r, 0), nil, 0, 0) },
		last: func(e wait.TimeoutError) (uint64, bool) {
			v, ok := e.Last.(T)
			return uint64(v), ok
		},
		allocations: func(r *mmio.Region, opts ...wait.PollOption) float64 {
			reg, n := mmio.MustAt[T](r, 0), 0
			cond := func(T) bool { n++; return n%3 == 0 }
			return testing.AllocsPerRun(100, func() {
				if _, err := poll(reg, cond, time.Microsecond, time.Minute, opts...); err != nil {
					panic(err)
				}
			})
		},
	}
}

var pollForms = []pollForm{
	form("ReadbPollTimeout", mmio.ReadbPollTimeout),
	form("ReadbPollTimeoutAtomic", mmio.ReadbPollTimeoutAtomic),
	form("ReadbRelaxedPollTimeout", mmio.ReadbRelaxedPollTimeout),
	form("ReadbRelaxedPollTimeoutAtomic", mmio.ReadbRelaxedPollTimeoutAtomic),
	form("ReadwPollTimeout", mmio.ReadwPollTimeout),
	form("ReadwPollTimeoutAtomic", mmio.ReadwPollTimeoutAtomic),
	form("ReadwRelaxedPollTimeout", mmio.ReadwRelaxedPollTimeout),
	form("ReadwRelaxedPollTimeoutAtomic", mmio.ReadwRelaxedPollTimeoutAtomic),
	form("ReadlPollTimeout", mmio.ReadlPollTimeout),
	form("ReadlPollTimeoutAtomic", mmio.ReadlPollTimeoutAtomic),
	form("ReadlRelaxedPollTimeout", mmio.ReadlRelaxedPollTimeout),
	form("ReadlRelaxedPollTimeoutAtomic", mmio.ReadlRelaxedPollTimeoutAtomic),
	form("ReadqPollTimeout", mmio.ReadqPollTimeout),
	form("ReadqPollTimeoutAtomic", mmio.ReadqPollTimeoutAtomic),
	form("ReadqRelaxedPollTimeout", mmio.ReadqRelaxedPollTimeout),
	form("ReadqRelaxedPollTimeoutAtomic", mmio.ReadqRelaxedPollTimeoutAtomic),
}

func forEachPoll(t *testing.T, f func(t *testing.T, p pollForm)) {
	for _, p := range pollForms {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

func never(uint64) bool { return false }

// countdown returns a cond that holds when it is called for the nth time, and
// calls before with the number of each earlier call.
func countdown(n int, before func(call int)) func(uint64) bool {
	call := 0
	return func(uint64) bool {
		call++
		if call == n {
			return true
		}
		before(call)
		return false
	}
}

func TestPollReturnsTheValueForWhichTheConditionHolds(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 24)
		for i := range 24 {
			mmio.Writeb(mmio.MustAt[uint8](r, i), 0xff) // the neighbours
		}
		mmio.Writeq(mmio.MustAt[uint64](r, 8), 0)
		var seen []uint64
		v, err := p.poll(r, 8, func(v uint64) bool {
			seen = append(seen, v)
			if v == 0 {
				mmio.Writeq(mmio.MustAt[uint64](r, 8), math.MaxUint64)
			}
			return v != 0
		}, 0, time.Minute)
		assert.NoError(t, err)
		assert.Equal(t, p.ones, v)
		assert.Equal(t, []uint64{0, p.ones}, seen)
	})
}

func TestPollSeesWhatADeviceDoes(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, f := newRegion(t, 8)
		device := mmio.MustAt[uint8](mapped(t, f, 0, 8), 0)
		go func() {
			wait.Sleep(200 * time.Microsecond)
			mmio.Writeb(device, 0x80)
		}()
		v, err := p.poll(r, 0, func(v uint64) bool { return v != 0 }, 10*time.Microsecond, time.Minute)
		assert.NoError(t, err)
		assert.Equal(t, uint64(0x80), v)
	})
}

func TestPollTimesOut(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		mmio.Writeb(mmio.MustAt[uint8](r, 0), 0x42)
		const timeout = 2 * time.Millisecond
		begin := time.Now()
		v, err := p.poll(r, 0, never, 10*time.Microsecond, timeout)
		assert.GreaterOrEqual(t, time.Since(begin), timeout)
		assert.Equal(t, uint64(0x42), v)
		assert.ErrorIs(t, err, wait.ErrTimeout)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
		var e wait.TimeoutError
		require.ErrorAs(t, err, &e)
		last, ok := p.last(e)
		assert.True(t, ok, "last value is a %T", e.Last)
		assert.Equal(t, uint64(0x42), last)
	})
}

func TestPollTimesOutInABubble(t *testing.T) {
	newRegion(t, 8) // or skip
	for _, p := range pollForms {
		t.Run(p.name, func(t *testing.T) {
			r, _ := newRegion(t, 8)
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				_, err := p.poll(r, 0, never, time.Second, time.Hour)
				assert.ErrorIs(t, err, wait.ErrTimeout)
				assert.Equal(t, time.Hour, time.Since(begin).Truncate(time.Millisecond))
			})
		})
	}
}

func TestPollTakesTheOptionsOfPackageWait(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		ctx, cancel := context.WithCancel(t.Context())
		pumps := 0
		pump := func() {
			if pumps++; pumps == 3 {
				cancel()
			}
		}
		_, err := p.poll(r, 0, never, time.Microsecond, 0, wait.SleepBeforeRead(), mmio.AllOnesGone(),
			wait.PollContext(ctx), wait.OnPoll(pump), wait.Backoff(time.Millisecond))
		assert.Equal(t, context.Canceled, err)
		assert.Equal(t, 3, pumps)
	})
}

func TestPollRefusesNegativeTimesBeforeItReads(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, f := newRegion(t, 8)
		require.NoError(t, f.Truncate(0)) // a read would fault
		_, err := p.poll(r, 0, never, -1, 0)
		assert.ErrorIs(t, err, os.ErrInvalid)
		_, err = p.poll(r, 0, never, 0, -1)
		assert.ErrorIs(t, err, os.ErrInvalid)
	})
}

func TestPollWithoutAConditionPanics(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		assert.PanicsWithValue(t, "wait: nil cond", func() { p.nil(r) })
	})
}

func TestPollOfTheZeroRegIsLikeANilPointer(t *testing.T) {
	var e runtime.Error
	require.ErrorAs(t, failure(func() {
		_, _ = mmio.ReadlPollTimeout(mmio.Reg[uint32]{}, mmio.BitsClear[uint32](1), 0, 0)
	}), &e)
	assert.Contains(t, e.Error(), "nil pointer")
}

func TestPollDoesNotAllocate(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		if underRace {
			t.Skip("the race detector has sync.Pool forget things at random")
		}
		assert.Zero(t, p.allocations(r))
		assert.Zero(t, p.allocations(r, mmio.AllOnesGone(), wait.SleepBeforeRead()))
	})
}

func TestPollThatIsWrittenOutDoesNotAllocate(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("conditions that are counted are not inlined")
	}
	r, _ := newRegion(t, 8)
	reg := mmio.MustAt[uint32](r, 0)
	mask, none := uint32(os.Getpid()), uint32(os.Getpid()>>30) // not known to the compiler
	for name, poll := range map[string]func() (uint32, error){
		"cond that captures": func() (uint32, error) {
			reads := 0
			return mmio.ReadlPollTimeout(reg, func(uint32) bool { reads++; return reads > 1 }, 0, time.Minute)
		},
		"BitsSet": func() (uint32, error) {
			return mmio.ReadlPollTimeout(reg, mmio.BitsSet(none), 0, time.Minute)
		},
		"BitsClear": func() (uint32, error) {
			return mmio.ReadlPollTimeoutAtomic(reg, mmio.BitsClear(mask), 0, time.Minute)
		},
		"Equals": func() (uint32, error) {
			return mmio.ReadlPollTimeout(reg, mmio.Equals(mask, none), 0, time.Minute)
		},
		"options": func() (uint32, error) {
			return mmio.ReadlPollTimeout(reg, mmio.BitsClear(mask), 0, time.Minute, mmio.AllOnesGone(), wait.Backoff(0))
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := poll(); err != nil {
				panic(err)
			}
		}), name)
	}
}

func TestPollOfAClosedRegionEndsWithTheLastValue(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		r, _ := newRegion(t, 8)
		mmio.Writeb(mmio.MustAt[uint8](r, 0), 0x42)
		v, err := p.poll(r, 0, countdown(10, func(call int) {
			if call == 3 {
				assert.NoError(t, r.Close())
			}
		}), time.Microsecond, time.Minute)
		assert.ErrorIs(t, err, os.ErrClosed)
		assert.Equal(t, uint64(0x42), v)
	})
}

func TestPollIsEndedByACloseElsewhere(t *testing.T) {
	forEachPoll(t, func(t *testing.T, p pollForm) {
		f := newDevice(t, 8)
		for range 20 {
			r := mapped(t, f, 0, 8)
			mmio.Writeb(mmio.MustAt[uint8](r, 0), 0x42)
			var began atomic.Bool
			go func() {
				for !began.Load() {
					wait.Sleep(10 * time.Microsecond)
				}
				assert.NoError(t, r.Close())
			}()
			v, err := p.poll(r, 0, func(v uint64) bool {
				began.Store(true)
				return v != 0x42
			}, 0, time.Minute)
			assert.ErrorIs(t, err, os.ErrClosed)
			assert.Equal(t, uint64(0x42), v)
		}
	})
}

// BenchmarkPollAtomic compares a poll without a delay with the same loop
// written by hand around one load. Beside it stands what a call costs that
// finds the condition to hold at once, set-up and all.
func BenchmarkPollAtomic(b *testing.B) {
	const polls = 100000
	r, _ := newRegion(b, 8)
	reg := mmio.MustAt[uint32](r, 0)
	var plain atomic.Uint32
	var ours, hand, ratio, once []float64
	for b.Loop() {
		var n, m int
		start := time.Now()
		_, err := mmio.ReadlPollTimeoutAtomic(reg, func(v uint32) bool { n++; return v != 0 || n == polls }, 0, time.Minute)
		a := time.Since(start)
		require.NoError(b, err)

		start = time.Now()
		for deadline := time.Minute; ; {
			m++
			if v := plain.Load(); v != 0 || m == polls {
				break
			}
			if time.Since(start) > deadline {
				b.Fatal("timeout")
			}
		}
		z := time.Since(start)

		start = time.Now()
		for range polls {
			_, _ = mmio.ReadlPollTimeoutAtomic(reg, mmio.BitsClear[uint32](1), 0, time.Minute)
		}
		c := time.Since(start)
		ours = append(ours, float64(a)/polls)
		hand = append(hand, float64(z)/polls)
		once = append(once, float64(c)/polls)
		ratio = append(ratio, float64(a)/float64(z))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ours), "ns/poll")
	b.ReportMetric(median(hand), "rival-ns/poll")
	b.ReportMetric(median(ratio), "ratio")
	b.ReportMetric(median(once), "ns/call")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// BenchmarkSetPanicOnFault shows what would be paid for each read if faults
// were caught read by read, and is paid once per poll.
func BenchmarkSetPanicOnFault(b *testing.B) {
	for b.Loop() {
		debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	}
}
