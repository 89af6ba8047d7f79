package mmio

import (
	"runtime/debug"
	"time"

	"github.com/precisewait/wait"
)

// AllOnesGone has a poll take a value of all ones for a device that is gone,
// and end with [ErrDeviceGone]: so does a PCI device answer that fell off the
// bus. It is for registers that never have all of their bits set. The polls of
// package wait do not know this option.
func AllOnesGone() wait.PollOption { return wait.PollOption{Value: allOnesGone{}} }

type allOnesGone struct{}

// poll is the one function behind all polls: those of package wait with a
// region around them that may vanish or be closed.
func poll[T Width](atomic bool, read func(Reg[T]) T, r Reg[T], cond func(T) bool, sleep, timeout time.Duration, opts []wait.PollOption) (last T, err error) {
	onesGone := false
	for _, o := range opts {
		if o.Value == (allOnesGone{}) {
			onesGone = true
		}
	}
	op := func() (T, error) {
		v := read(r)
		if onesGone && v == ^T(0) {
			return last, errAllOnes
		}
		last = v
		return v, nil
	}
	// Once per poll and not per read: it would take as long as the read.
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if v := recover(); v != nil {
			if err = r.region.explain(v); err == nil {
				panic(v)
			}
		}
	}()
	if atomic {
		return wait.TryReadPollTimeoutAtomic(op, cond, sleep, timeout, opts...)
	}
	return wait.TryReadPollTimeout(op, cond, sleep, timeout, opts...)
}

// ReadbPollTimeout polls r by [Readb] until cond holds, as [wait.ReadPollTimeout]
// does, with the same options and errors. It is the kernel's
// readb_poll_timeout.
//
// Two errors come in addition, both with the last value that the device gave:
// [ErrDeviceGone], if an access to the region faults, in cond too, or by the
// option [AllOnesGone]; and [os.ErrClosed], if the region is closed meanwhile.
// Any other panic and any other fault in cond pass through the poll, but while
// it runs a fault at a bad address is a panic in this goroutine, as
// [debug.SetPanicOnFault] has it, and not the end of the program.
//
// All this holds for all polls of this package. They allocate nothing but the
// error. (None is inlined: across packages the compiler would no longer know
// that cond does not escape, and allocate a cond that captures variables.)
//
//go:noinline
func ReadbPollTimeout(r Reg[uint8], cond func(uint8) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint8, error) {
	return poll(false, Readb, r, cond, sleep, timeout, opts)
}

// ReadbPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [Readb], the kernel's
// readb_poll_timeout_atomic.
//
//go:noinline
func ReadbPollTimeoutAtomic(r Reg[uint8], cond func(uint8) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint8, error) {
	return poll(true, Readb, r, cond, delay, timeout, opts)
}

// ReadbRelaxedPollTimeout is [wait.ReadPollTimeout] of [ReadbRelaxed], the kernel's
// readb_relaxed_poll_timeout.
//
//go:noinline
func ReadbRelaxedPollTimeout(r Reg[uint8], cond func(uint8) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint8, error) {
	return poll(false, ReadbRelaxed, r, cond, sleep, timeout, opts)
}

// ReadbRelaxedPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [ReadbRelaxed], the kernel's
// readb_relaxed_poll_timeout_atomic.
//
//go:noinline
func ReadbRelaxedPollTimeoutAtomic(r Reg[uint8], cond func(uint8) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint8, error) {
	return poll(true, ReadbRelaxed, r, cond, delay, timeout, opts)
}

// ReadwPollTimeout is [wait.ReadPollTimeout] of [Readw], the kernel's
// readw_poll_timeout.
//
//go:noinline
func ReadwPollTimeout(r Reg[uint16], cond func(uint16) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint16, error) {
	return poll(false, Readw, r, cond, sleep, timeout, opts)
}

// ReadwPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [Readw], the kernel's
// readw_poll_timeout_atomic.
//
//go:noinline
func ReadwPollTimeoutAtomic(r Reg[uint16], cond func(uint16) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint16, error) {
	return poll(true, Readw, r, cond, delay, timeout, opts)
}

// ReadwRelaxedPollTimeout is [wait.ReadPollTimeout] of [ReadwRelaxed], the kernel's
// readw_relaxed_poll_timeout.
//
//go:noinline
func ReadwRelaxedPollTimeout(r Reg[uint16], cond func(uint16) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint16, error) {
	return poll(false, ReadwRelaxed, r, cond, sleep, timeout, opts)
}

// ReadwRelaxedPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [ReadwRelaxed], the kernel's
// readw_relaxed_poll_timeout_atomic.
//
//go:noinline
func ReadwRelaxedPollTimeoutAtomic(r Reg[uint16], cond func(uint16) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint16, error) {
	return poll(true, ReadwRelaxed, r, cond, delay, timeout, opts)
}

// ReadlPollTimeout is [wait.ReadPollTimeout] of [Readl], the kernel's
// readl_poll_timeout.
//
//go:noinline
func ReadlPollTimeout(r Reg[uint32], cond func(uint32) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint32, error) {
	return poll(false, Readl, r, cond, sleep, timeout, opts)
}

// ReadlPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [Readl], the kernel's
// readl_poll_timeout_atomic.
//
//go:noinline
func ReadlPollTimeoutAtomic(r Reg[uint32], cond func(uint32) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint32, error) {
	return poll(true, Readl, r, cond, delay, timeout, opts)
}

// ReadlRelaxedPollTimeout is [wait.ReadPollTimeout] of [ReadlRelaxed], the kernel's
// readl_relaxed_poll_timeout.
//
//go:noinline
func ReadlRelaxedPollTimeout(r Reg[uint32], cond func(uint32) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint32, error) {
	return poll(false, ReadlRelaxed, r, cond, sleep, timeout, opts)
}

// ReadlRelaxedPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [ReadlRelaxed], the kernel's
// readl_relaxed_poll_timeout_atomic.
//
//go:noinline
func ReadlRelaxedPollTimeoutAtomic(r Reg[uint32], cond func(uint32) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint32, error) {
	return poll(true, ReadlRelaxed, r, cond, delay, timeout, opts)
}

// ReadqPollTimeout is [wait.ReadPollTimeout] of [Readq], the kernel's
// readq_poll_timeout.
//
//go:noinline
func ReadqPollTimeout(r Reg[uint64], cond func(uint64) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint64, error) {
	return poll(false, Readq, r, cond, sleep, timeout, opts)
}

// ReadqPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [Readq], the kernel's
// readq_poll_timeout_atomic.
//
//go:noinline
func ReadqPollTimeoutAtomic(r Reg[uint64], cond func(uint64) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint64, error) {
	return poll(true, Readq, r, cond, delay, timeout, opts)
}

// ReadqRelaxedPollTimeout is [wait.ReadPollTimeout] of [ReadqRelaxed], the kernel's
// readq_relaxed_poll_timeout.
//
//go:noinline
func ReadqRelaxedPollTimeout(r Reg[uint64], cond func(uint64) bool, sleep, timeout time.Duration, opts ...wait.PollOption) (uint64, error) {
	return poll(false, ReadqRelaxed, r, cond, sleep, timeout, opts)
}

// ReadqRelaxedPollTimeoutAtomic is [wait.ReadPollTimeoutAtomic] of [ReadqRelaxed], the kernel's
// readq_relaxed_poll_timeout_atomic.
//
//go:noinline
func ReadqRelaxedPollTimeoutAtomic(r Reg[uint64], cond func(uint64) bool, delay, timeout time.Duration, opts ...wait.PollOption) (uint64, error) {
	return poll(true, ReadqRelaxed, r, cond, delay, timeout, opts)
}
