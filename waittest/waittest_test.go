package waittest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait/waittest"
)

const (
	busy  = uint8(0x80)
	ready = uint8(0x01)
	fault = uint8(0x02)
)

func TestValuesFollowTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waittest.NewRegister(busy).After(3*time.Millisecond, ready).After(2*time.Millisecond, fault)
		for _, c := range []struct {
			sleep time.Duration
			want  uint8
		}{{0, busy}, {3*time.Millisecond - 1, busy}, {1, ready}, {2*time.Millisecond - 1, ready}, {1, fault}, {time.Hour, fault}} {
			time.Sleep(c.sleep)
			assert.Equal(t, c.want, r.Read())
		}
	})
}

func TestStepsThatNobodyReadStillTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waittest.NewRegister(busy).After(time.Millisecond, ready).After(time.Millisecond, fault).After(time.Millisecond, busy)
		time.Sleep(2500 * time.Microsecond)
		assert.Equal(t, fault, r.Read())
		time.Sleep(500 * time.Microsecond)
		assert.Equal(t, busy, r.Read())
	})
}

func TestValuesFollowTheReads(t *testing.T) {
	r := waittest.NewRegister(busy).AfterReads(3, ready).AfterReads(1, fault)
	for i, want := range []uint8{busy, busy, busy, ready, fault, fault} {
		assert.Equal(t, want, r.Read(), "read %d", i+1)
	}
	assert.Equal(t, 6, r.Reads())
}

func TestTimeAndReadsMayBeMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waittest.NewRegister(busy).AfterReads(2, ready).After(time.Second, fault).AfterReads(1, busy)
		assert.Equal(t, busy, r.Read())
		time.Sleep(time.Minute)
		assert.Equal(t, busy, r.Read(), "time does not count here")
		time.Sleep(time.Minute)
		assert.Equal(t, ready, r.Read(), "its second begins with this read")
		time.Sleep(time.Second)
		assert.Equal(t, fault, r.Read())
		assert.Equal(t, busy, r.Read())
	})
}

func TestErrorsComeWithTheZeroValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		r := waittest.NewRegister(busy).FailAfterReads(1, gone).AfterReads(1, ready).FailAfter(time.Second, gone)
		for i, want := range []struct {
			value uint8
			err   error
		}{{busy, nil}, {0, gone}, {ready, nil}} {
			v, err := r.TryRead()
			assert.Equal(t, want.value, v, "read %d", i+1)
			assert.Equal(t, want.err, err, "read %d", i+1)
		}
		time.Sleep(time.Second)
		assert.Zero(t, r.Read())
	})
}

func TestRestartPlaysTheScriptAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waittest.NewRegister(busy).After(time.Second, ready)
		time.Sleep(time.Second)
		assert.Equal(t, ready, r.Read())
		r.Restart()
		assert.Zero(t, r.Reads())
		time.Sleep(time.Second - 1)
		assert.Equal(t, busy, r.Read())
		time.Sleep(time.Nanosecond)
		assert.Equal(t, ready, r.Read())
	})
}

func TestARegisterOutsideOfABubbleGoesByTheRealTime(t *testing.T) {
	r := waittest.NewRegister(busy).After(2*time.Millisecond, ready)
	start := time.Now()
	for r.Read() == busy {
		time.Sleep(100 * time.Microsecond)
	}
	assert.GreaterOrEqual(t, time.Since(start), 1900*time.Microsecond, "since just before the start")
}

func TestARegisterFromOutsideIsToldInABubble(t *testing.T) {
	r := waittest.NewRegister(busy)
	synctest.Test(t, func(t *testing.T) {
		assert.PanicsWithValue(t, "waittest: Register made outside of the testing/synctest bubble that reads it", func() { r.Read() })
	})
	assert.Equal(t, busy, r.Read(), "it is not locked for ever")
}

func TestManyGoroutinesMayRead(t *testing.T) {
	r := waittest.NewRegister(0).AfterReads(100, 1).AfterReads(100, 2)
	var mu sync.Mutex
	seen := map[int]int{}
	var readers sync.WaitGroup
	for range 30 {
		readers.Go(func() {
			for range 10 {
				v := r.Read()
				_ = r.String()
				mu.Lock()
				seen[v]++
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	assert.Equal(t, map[int]int{0: 100, 1: 100, 2: 100}, seen)
}

func TestNonsenseInAScriptPanics(t *testing.T) {
	r := waittest.NewRegister(busy)
	assert.PanicsWithValue(t, "waittest: a value after -1ns", func() { r.After(-1, ready) })
	assert.PanicsWithValue(t, "waittest: a value after 0 reads", func() { r.AfterReads(0, ready) })
	assert.PanicsWithValue(t, "waittest: a value after -2 reads", func() { r.FailAfterReads(-2, errors.New("x")) })
	assert.PanicsWithValue(t, "waittest: nil error", func() { r.FailAfter(0, nil) })
}

// failures is a test that keeps what it is told.
type failures []string

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// readAt reads the register at the given times.
func readAt(r *waittest.Register[uint8], times ...time.Duration) *waittest.Register[uint8] {
	var now time.Duration
	for _, at := range times {
		time.Sleep(at - now)
		now = at
		_, _ = r.TryRead()
	}
	return r
}

func TestChecksTellWhatWasRead(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		times []time.Duration
		check func(r *waittest.Register[uint8], tb waittest.TB) bool
		want  string
	}{
		"enough reads": {[]time.Duration{0, ms}, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckReads(tb, 2, 2) }, ""},
		"too few reads": {[]time.Duration{0, ms}, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckReads(tb, 3, 5) },
			"the register was read 2 times, want 3 to 5\nregister: 2 reads\n  read 1 at 0s: 0x80\n  read 2 at 1ms: 0x80"},
		"too many reads": {[]time.Duration{0, ms, 3 * ms}, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckReads(tb, 1, 1) },
			"the register was read 3 times, want 1\nregister: 3 reads\n  read 1 at 0s: 0x80\n  read 2 at 1ms: 0x80\n  read 3 at 3ms: error: gone"},
		"gaps as wanted": {[]time.Duration{0, ms, 3 * ms}, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckGaps(tb, ms, 2*ms) }, ""},
		"a short gap": {[]time.Duration{0, 2 * ms, 3*ms - 1}, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckGaps(tb, ms, 2*ms) },
			"999.999µs between reads 2 and 3 of the register, want 1ms to 2ms\nregister: 3 reads\n  read 1 at 0s: 0x80\n  read 2 at 2ms: 0x80\n  read 3 at 2.999999ms: error: gone"},
		"a long gap": {[]time.Duration{0, 2*ms + 1}, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckGaps(tb, ms, 2*ms) },
			"2.000001ms between reads 1 and 2 of the register, want 1ms to 2ms\nregister: 2 reads\n  read 1 at 0s: 0x80\n  read 2 at 2.000001ms: 0x80"},
		"no gap": {nil, func(r *waittest.Register[uint8], tb waittest.TB) bool { return r.CheckGaps(tb, 0, ms) },
			"the register was read 0 times, so there is no time between reads to check\nregister: no reads"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := readAt(waittest.NewRegister(busy).FailAfterReads(2, errors.New("gone")), c.times...)
				var told failures
				assert.Equal(t, c.want == "", c.check(r, &told))
				assert.Equal(t, c.want, strings.Join(told, "\n"))
			})
		})
	}
}

func TestTheRecordShowsTheFirstAndTheLatestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waittest.NewRegister(0)
		for range 100 {
			r.Read()
			time.Sleep(time.Microsecond)
		}
		lines := strings.Split(r.String(), "\n")
		assert.Len(t, lines, 18)
		assert.Equal(t, "register: 100 reads", lines[0])
		assert.Equal(t, "  read 8 at 7µs: 0", lines[8])
		assert.Equal(t, "  ... 84 more", lines[9])
		assert.Equal(t, "  read 93 at 92µs: 0", lines[10])
		assert.Equal(t, "  read 100 at 99µs: 0", lines[17])
	})
}
