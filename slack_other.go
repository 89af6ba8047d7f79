//go:build !linux

package wait

import (
	"errors"
	"fmt"
	"time"
)

// TimerSlack returns the timer slack of the calling thread on Linux, and
// [errors.ErrUnsupported] here, where there is no such thing.
func TimerSlack() (time.Duration, error) { return 0, noSlack("get") }

// SetTimerSlack sets the timer slack of the calling thread on Linux, and
// returns [errors.ErrUnsupported] here, where there is no such thing.
func SetTimerSlack(d time.Duration) (restore func() error, err error) { return nil, noSlack("set") }

// SetProcessTimerSlack sets the timer slack of every thread on Linux, and
// returns [errors.ErrUnsupported] here, where there is no such thing.
func SetProcessTimerSlack(d time.Duration) error { return noSlack("set") }

func noSlack(verb string) error {
	return fmt.Errorf("wait: %s timer slack: %w", verb, errors.ErrUnsupported)
}
