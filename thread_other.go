//go:build !linux

package wait

import (
	"errors"
	"time"

	"github.com/precisewait/wait/internal/park"
)

const threadWakeup = WakeupRuntime

// A sleeper sleeps as Sleep does.
type sleeper struct{ keepsP bool }

func (*sleeper) begin() (undo func() error, err error) {
	return func() error { return nil }, nil
}

func (*sleeper) sleep(now, expiry int64, slack time.Duration) int64 {
	return park.Until(now, expiry)
}

// threadID returns the same number for every thread: there is none to be had.
func threadID() int { return 0 }

func setAffinity(cpu int) (func() error, error)      { return nil, errors.ErrUnsupported }
func setRealTime(priority int) (func() error, error) { return nil, errors.ErrUnsupported }
func setCPULatency(us int32) (func() error, error)   { return nil, errors.ErrUnsupported }
func lockMemory() (func() error, error)              { return nil, errors.ErrUnsupported }
func ownProcessor() (func() error, error)            { return nil, errors.ErrUnsupported }
func shortSlice() (func() error, error)              { return nil, errors.ErrUnsupported }
