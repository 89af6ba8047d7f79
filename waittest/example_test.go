package waittest_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/waittest"
)

// A converter is a driver as many are: it writes a command, polls a status
// register until the device is ready, and tells a fault and a device that does
// not answer apart.
type converter struct {
	command func(uint8)
	status  func() uint8
}

const (
	pollEvery = 200 * time.Microsecond
	allowed   = 10 * time.Millisecond
)

var errFault = errors.New("converter: fault")

func (c *converter) convert() error {
	c.command(1)
	status, err := wait.ReadPollTimeout(c.status,
		func(s uint8) bool { return s&(ready|fault) != 0 }, pollEvery, allowed)
	switch {
	case err != nil:
		return fmt.Errorf("converter: no answer: %w", err)
	case status&fault != 0:
		return errFault
	}
	return nil
}

// TestDriver shows how to test a poll loop with its timeouts: the device is a
// script, and time is that of a bubble. It takes microseconds, and no machine
// is too slow for it.
func TestDriver(t *testing.T) {
	for name, c := range map[string]struct {
		script func() *waittest.Register[uint8] // it has to be made in the bubble
		want   error
		takes  time.Duration // at least
		reads  [2]int        // at least and at most
	}{
		"ready at once": {
			script: func() *waittest.Register[uint8] { return waittest.NewRegister(ready) },
			takes:  0, reads: [2]int{1, 1},
		},
		"ready after 3 ms": {
			script: func() *waittest.Register[uint8] { return waittest.NewRegister(busy).After(3*time.Millisecond, ready) },
			takes:  3 * time.Millisecond, reads: [2]int{15, 62},
		},
		"fault at the fifth look": {
			script: func() *waittest.Register[uint8] { return waittest.NewRegister(busy).AfterReads(4, fault) },
			want:   errFault, takes: pollEvery, reads: [2]int{5, 5},
		},
		"ready just when the time is over": {
			script: func() *waittest.Register[uint8] { return waittest.NewRegister(busy).After(allowed, ready) },
			takes:  allowed, reads: [2]int{50, 202},
		},
		"never ready": {
			script: func() *waittest.Register[uint8] { return waittest.NewRegister(busy) },
			want:   wait.ErrTimeout, takes: allowed, reads: [2]int{50, 202},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				status := c.script()
				driver := converter{
					command: func(uint8) { status.Restart() }, // the device begins
					status:  status.Read,
				}
				start := time.Now()
				assert.ErrorIs(t, driver.convert(), c.want)
				assert.GreaterOrEqual(t, time.Since(start), c.takes)
				assert.Less(t, time.Since(start), c.takes+4*pollEvery)
				status.CheckReads(t, c.reads[0], c.reads[1])
				if status.Reads() > 2 { // the last sleep may be cut by the deadline
					status.CheckGaps(t, 1, pollEvery)
				}
			})
		})
	}
}

// A register that is busy for a while is a script of two values. Outside of a
// testing/synctest bubble it goes by the real time.
func ExampleRegister() {
	status := waittest.NewRegister(busy).After(500*time.Microsecond, ready)

	v, err := wait.ReadPollTimeout(status.Read, func(s uint8) bool { return s&ready != 0 },
		50*time.Microsecond, time.Second)
	fmt.Printf("%#x %v, looked more than once: %v\n", v, err, status.Reads() > 1)
	// Output: 0x1 <nil>, looked more than once: true
}

// A bus that fails at the third read ends a poll at once.
func ExampleRegister_FailAfterReads() {
	errBus := errors.New("no answer on the bus")
	status := waittest.NewRegister(busy).FailAfterReads(2, errBus)

	_, err := wait.TryReadPollTimeout(status.TryRead, func(s uint8) bool { return s&ready != 0 },
		50*time.Microsecond, time.Minute)
	fmt.Println(err)
	fmt.Println("reads:", status.Reads())
	// Output:
	// no answer on the bus
	// reads: 3
}
