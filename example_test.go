package wait_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/precisewait/wait"
)

// A wait is picked by what may be given up for being on time.
func Example() {
	start := time.Now()
	wait.Sleep(200 * time.Microsecond)                          // late by about the floor, next to no CPU
	wait.SleepRange(200*time.Microsecond, 400*time.Microsecond) // anything in the range, less CPU still
	wait.Hybrid(200 * time.Microsecond)                         // hardly late, some CPU
	wait.Spin(5 * time.Microsecond)                             // hardly late, all the CPU
	wait.For(200 * time.Microsecond)                            // the cheapest that is at most a quarter late
	fmt.Println("early:", time.Since(start) < 805*time.Microsecond)
	// Output: early: false
}

// Sleep goes wherever time.Sleep is called or kept.
func ExampleSleep() {
	blinker := struct{ sleep func(time.Duration) }{sleep: wait.Sleep} // was time.Sleep

	start := time.Now()
	blinker.sleep(300 * time.Microsecond)
	fmt.Println("early:", time.Since(start) < 300*time.Microsecond)
	// Output: early: false
}

func ExampleSleepContext() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(wait.SleepContext(ctx, time.Minute))
	// Output: context deadline exceeded
}

// A device that needs at least 1 ms after a reset, and does not mind 2 ms,
// leaves it to the program when to wake up.
func ExampleSleepRange() {
	reset := time.Now()
	wait.SleepRange(1*time.Millisecond, 2*time.Millisecond)
	fmt.Println("early:", time.Since(reset) < time.Millisecond)
	// Output: early: false
}

// The gap between two frames on a bus is too short for the host to sleep
// through on time, and too long to burn it all.
func ExampleHybrid() {
	sent := time.Now()
	wait.Hybrid(250 * time.Microsecond)
	fmt.Println("early:", time.Since(sent) < 250*time.Microsecond)
	// Output: early: false
}

// Each step of a motor counts from the one before and not from the end of the
// wait for it, so that lateness does not add up.
func ExampleHybridUntil() {
	const period = 500 * time.Microsecond
	next := time.Now()
	for step := 1; step <= 3; step++ {
		next = next.Add(period)
		wait.HybridUntil(next)
		fmt.Println("step", step, "early:", time.Now().Before(next))
	}
	// Output:
	// step 1 early: false
	// step 2 early: false
	// step 3 early: false
}

// Where the length of a wait is not known beforehand, For spins the short
// ones and sleeps the long ones.
func ExampleFor() {
	for _, d := range []time.Duration{2 * time.Microsecond, 5 * time.Millisecond} {
		start := time.Now()
		wait.For(d)
		fmt.Println(d, "early:", time.Since(start) < d)
	}
	// Output:
	// 2µs early: false
	// 5ms early: false
}

// A floor that was measured once need not be measured at every start.
func ExampleSetFloor() {
	// At the first start, with nothing else to do:
	floor, err := wait.Calibrate(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	saved, err := json.Marshal(floor)
	if err != nil {
		fmt.Println(err)
		return
	}

	// At the next one:
	var loaded wait.Floor
	if err := json.Unmarshal(saved, &loaded); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same:", reflect.DeepEqual(floor, loaded))
	fmt.Println(wait.SetFloor(loaded))

	// A figure that cannot be does not get in.
	loaded.ClockCost = -1
	err = wait.SetFloor(loaded)
	fmt.Println(err, errors.Is(err, os.ErrInvalid))
	// Output:
	// the same: true
	// <nil>
	// wait: floor: field ClockCost is negative (-1ns): invalid argument true
}

func ExampleFloor_Advise() {
	floor := wait.Floor{Classes: []wait.FloorClass{
		{UpTo: time.Millisecond, P50: 40 * time.Microsecond, P90: 50 * time.Microsecond, P99: 80 * time.Microsecond},
	}}
	for _, d := range []time.Duration{20 * time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		fmt.Println(d, floor.Advise(d))
	}
	// Output:
	// 20µs Spin
	// 100µs Hybrid
	// 1ms Sleep
}

// A host with a tick of 15.625 ms ends all sleeps on the tick. Those asked for
// here take the same number of ticks every time.
func ExampleFloor_MidBand() {
	floor := wait.Floor{Tick: 15625 * time.Microsecond}
	for ticks := 1; ticks <= 3; ticks++ {
		fmt.Println(ticks, floor.MidBand(ticks))
	}
	// Output:
	// 1 7.8125ms
	// 2 23.4375ms
	// 3 39.0625ms
}

func ExampleReadPollTimeout() {
	const busy = 1 << 7
	reads := 0
	readStatus := func() uint8 { // a device that is done at the third look
		if reads++; reads < 3 {
			return busy
		}
		return 0x01
	}

	status, err := wait.ReadPollTimeout(readStatus,
		func(status uint8) bool { return status&busy == 0 },
		100*time.Microsecond, time.Second)
	fmt.Printf("%#x %v\n", status, err)
	// Output: 0x1 <nil>
}

func ExampleReadPollTimeout_timeout() {
	const busy = 1 << 7
	readStatus := func() uint8 { return busy } // a device that hangs

	status, err := wait.ReadPollTimeout(readStatus,
		func(status uint8) bool { return status&busy == 0 },
		100*time.Microsecond, 2*time.Millisecond)
	if errors.Is(err, wait.ErrTimeout) {
		fmt.Printf("time-out, status %#x\n", status)
	}
	// For a message, or to decide whether to try again:
	var timeout wait.TimeoutError
	if errors.As(err, &timeout) {
		fmt.Println("allowed", timeout.Timeout, "and took longer:", timeout.Elapsed > timeout.Timeout)
		fmt.Printf("last value %#x, looked more than once: %v\n", timeout.Last, timeout.Polls > 1)
	}
	// Output:
	// time-out, status 0x80
	// allowed 2ms and took longer: true
	// last value 0x80, looked more than once: true
}

// What takes a few microseconds is over sooner than a sleep would be.
func ExampleReadPollTimeoutAtomic() {
	var status atomic.Uint32
	go status.Store(1) // the device

	s, err := wait.ReadPollTimeoutAtomic(status.Load,
		func(s uint32) bool { return s != 0 },
		time.Microsecond, time.Second)
	fmt.Println(s, err)
	// Output: 1 <nil>
}

// An op with an address needs no closure.
func ExampleReadxPollTimeout() {
	var register uint32
	go func() { // the device
		wait.Sleep(time.Millisecond)
		atomic.StoreUint32(&register, 1)
	}()

	status, err := wait.ReadxPollTimeout(atomic.LoadUint32, &register,
		func(status uint32) bool { return status != 0 },
		100*time.Microsecond, time.Second)
	fmt.Println(status, err)
	// Output: 1 <nil>
}

// A read that fails ends the poll at once, whatever the timeout.
func ExampleTryReadPollTimeout() {
	errBus := errors.New("no answer on the bus")
	readStatus := func() (uint8, error) { return 0xff, errBus }

	_, err := wait.TryReadPollTimeout(readStatus,
		func(status uint8) bool { return status&1 != 0 },
		100*time.Microsecond, time.Minute)
	switch {
	case errors.Is(err, wait.ErrTimeout):
		fmt.Println("not ready in time")
	case err != nil:
		fmt.Println("cannot tell:", err)
	}
	// Output: cannot tell: no answer on the bus
}

func ExamplePollTimeout() {
	var linkUp atomic.Bool
	go linkUp.Store(true)

	err := wait.PollTimeout(linkUp.Load, 100*time.Microsecond, time.Second)
	fmt.Println(err)
	// Output: <nil>
}

// A timeout of 0 is none, and leaves it to the context to end the poll.
func ExamplePollContext() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	never := func() bool { return false }

	err := wait.PollTimeout(never, 100*time.Microsecond, 0, wait.PollContext(ctx))
	fmt.Println(err)
	// Output: context deadline exceeded
}

// What is mostly done at once, but may take long, is looked at often at first
// and less and less later: after at most 50, 100, 200, 400, 800 us, and from
// then on every 1 ms.
func ExampleBackoff() {
	looks := 0
	done := func() bool { looks++; return looks == 6 }

	err := wait.PollTimeout(done, 50*time.Microsecond, time.Second, wait.Backoff(time.Millisecond))
	fmt.Println(looks, err)
	// Output: 6 <nil>
}

// The device needs its queue emptied by the goroutine that waits for it.
func ExampleOnPoll() {
	queue := []string{"header", "payload", "checksum"}
	flushed := func() bool { return len(queue) == 0 }
	send := func() {
		fmt.Println("sent", queue[0])
		queue = queue[1:]
	}

	err := wait.PollTimeout(flushed, 100*time.Microsecond, time.Second, wait.OnPoll(send))
	fmt.Println("flushed:", err == nil)
	// Output:
	// sent header
	// sent payload
	// sent checksum
	// flushed: true
}

// An answer that mostly comes within some microseconds is worth a short spin.
func ExampleRecvTimeout() {
	answers := make(chan string, 1) // so that the sender need not wait
	go func() { answers <- "pong" }()

	answer, err := wait.RecvTimeout(answers, 50*time.Microsecond, time.Second)
	switch {
	case errors.Is(err, wait.ErrTimeout):
		fmt.Println("no answer")
	case errors.Is(err, wait.ErrClosed):
		fmt.Println("nobody there any more")
	default:
		fmt.Println(answer)
	}
	// Output: pong
}

// Who changes what the condition looks at wakes the waiter afterwards. The
// buffer of one keeps a wake-up that comes while it looks.
func ExampleEventTimeout() {
	var received atomic.Int64
	wake := make(chan struct{}, 1)
	go func() { // an interrupt, as it were
		for range 3 {
			received.Add(1)
			select {
			case wake <- struct{}{}:
			default: // one is under way
			}
		}
	}()

	left, err := wait.EventTimeout(func() bool { return received.Load() == 3 }, wake, time.Minute)
	fmt.Println(err, left > 0)
	// Output: <nil> true
}

// Any number of goroutines wait for one thing.
func ExampleEvent() {
	var ready wait.Event
	var workers sync.WaitGroup
	var started atomic.Int32
	for range 3 {
		workers.Go(func() {
			ready.Wait()
			started.Add(1)
		})
	}
	fmt.Println("started:", started.Load())
	ready.Set()
	workers.Wait()
	fmt.Println("started:", started.Load())
	// Output:
	// started: 0
	// started: 3
}

// The second turn takes three and a half periods, so two ticks are left out; the
// phase stays.
func ExamplePacer() {
	const period = 20 * time.Millisecond
	pacer := wait.NewPacer(period, wait.PaceBy(wait.MethodHybrid))
	start := time.Now()
	for tick := range pacer.Ticks(context.Background()) {
		fmt.Println("tick", tick.Index, "missed", tick.Missed, "at", tick.Scheduled.Sub(start).Round(period/4))
		if tick.Index == 2 {
			time.Sleep(period * 7 / 2)
		}
		if tick.Index > 5 {
			break
		}
	}
}

// What sleeps on a thread by other means than this package, such as a library
// in C, is up to 50 us less late without the slack.
func ExampleSetTimerSlack() {
	restore, err := wait.SetTimerSlack(1)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		// There is no timer slack on this system, so none to be rid of.
	case err != nil:
		log.Print(err) // and go on with the slack there is
	default:
		defer func() {
			if err := restore(); err != nil {
				log.Print(err)
			}
		}()
	}
	// The calls into C go here: the goroutine keeps this thread until restore.
	fmt.Println("done")
	// Output: done
}
