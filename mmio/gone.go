package mmio

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
)

// ErrDeviceGone is what the error is, by [errors.Is], of a poll or a
// [Region.Guard] whose device was there no more: the file was truncated, the
// device removed, so that the access faulted (SIGBUS); or, by the option
// [AllOnesGone], the device answered with nothing but ones.
var ErrDeviceGone = errors.New("mmio: device gone")

var errAllOnes = fmt.Errorf("%w: it reads as all ones", ErrDeviceGone)

// Guard calls f, and returns nil if f returns. If an access to the region that
// f makes, in this goroutine, faults, f ends there and Guard returns an
// [ErrDeviceGone]; without a Guard, such a fault ends the program. If f
// accesses the region after [Region.Close], or writes to it where it is
// read-only, Guard returns that error, which is [os.ErrClosed] or
// [os.ErrPermission].
//
// Any other panic passes through, faults at other addresses as a
// [runtime.Error] with a method Addr: see [debug.SetPanicOnFault], which is on
// while f runs. A Guard costs a few nanoseconds and allocates nothing but the
// error; it need not be around each access, but around what makes no sense any
// more once the device is gone.
func (r *Region) Guard(f func()) (err error) {
	faults := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(faults)
		if v := recover(); v != nil {
			if err = r.explain(v); err == nil {
				panic(v)
			}
		}
	}()
	f()
	return nil
}

// explain returns the error that a panic stands for, or nil if it is not about
// the region.
func (r *Region) explain(panicked any) error {
	switch e := panicked.(type) {
	case *accessError:
		if e.region == r {
			return e
		}
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		if at := e.Addr() - uintptr(r.pages.base); at < r.pages.size {
			return fmt.Errorf("%w: fault at offset %#x", ErrDeviceGone, r.offset+int64(at))
		}
	}
	return nil
}
