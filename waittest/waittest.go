// Package waittest has what a test of code that waits for hardware needs: a
// register whose values follow a script, by the time or by the number of reads.
//
// Its Read is an op for [wait.ReadPollTimeout], its TryRead one for
// [wait.TryReadPollTimeout]:
//
//	status := waittest.NewRegister(busy).After(3*time.Millisecond, ready)
//	v, err := wait.ReadPollTimeout(status.Read, isReady, 100*time.Microsecond, 10*time.Millisecond)
//
// In a testing/synctest bubble the time is the bubble's, so that such a test
// takes microseconds, whatever it waits for, and sees exact times.
package waittest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A Register is a register that plays a script: it holds a first value, and
// others or errors from certain times or reads on. The last one stays. It
// keeps a record of its reads, which the messages of its checks show.
//
// All its methods may be called by any number of goroutines. A Register made
// in a testing/synctest bubble is for use there only.
type Register[T any] struct {
	mu    sync.Mutex
	steps []step[T] // the first one is the initial value
	at    int       // the step whose value the register holds
	begun time.Time // when it did
	since int       // reads since then

	start         time.Time
	reads         int
	last          time.Time
	shortest      time.Duration // between two reads
	longest       time.Duration
	record        []read // the first and the latest
	shortestAfter int    // the number of the read before
	longestAfter  int
}

// A step holds its value once the step before has lasted for a time, or for a
// number of reads.
type step[T any] struct {
	value T
	err   error
	delay time.Duration
	reads int // 0 if it is the time that counts
}

// A read is a line of the record.
type read struct {
	number int
	at     time.Duration // since the start of the script
	what   string
}

// recorded is how many of the first reads, and how many of the latest, the
// record shows.
const recorded = 8

// NewRegister returns a register that holds value. Its time counts from now,
// see [Register.Restart].
func NewRegister[T any](value T) *Register[T] {
	r := &Register[T]{steps: []step[T]{{value: value}}}
	r.Restart()
	return r
}

// After has the register hold value once what it held before has lasted for d.
// It returns the register. A negative d panics.
func (r *Register[T]) After(d time.Duration, value T) *Register[T] {
	return r.then(step[T]{value: value, delay: d})
}

// AfterReads has the register hold value once what it held before was read n
// times. It returns the register. An n of zero or less panics.
func (r *Register[T]) AfterReads(n int, value T) *Register[T] {
	return r.thenReads(step[T]{value: value, reads: n})
}

// FailAfter is [Register.After] with an error: TryRead returns it together with
// the zero value, which is what Read returns. A nil err panics.
func (r *Register[T]) FailAfter(d time.Duration, err error) *Register[T] {
	return r.then(step[T]{err: mustErr(err), delay: d})
}

// FailAfterReads is [Register.AfterReads] with an error, as
// [Register.FailAfter].
func (r *Register[T]) FailAfterReads(n int, err error) *Register[T] {
	return r.thenReads(step[T]{err: mustErr(err), reads: n})
}

func mustErr(err error) error {
	if err == nil {
		panic("waittest: nil error")
	}
	return err
}

func (r *Register[T]) thenReads(s step[T]) *Register[T] {
	if s.reads <= 0 {
		panic(fmt.Sprintf("waittest: a value after %d reads", s.reads))
	}
	return r.then(s)
}

func (r *Register[T]) then(s step[T]) *Register[T] {
	if s.delay < 0 {
		panic(fmt.Sprintf("waittest: a value after %v", s.delay))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
	return r
}

// Restart plays the script from the beginning, from now, and forgets the reads
// so far: the place for it is where the code under test writes the command to
// which the script is the answer.
func (r *Register[T]) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.at, r.begun, r.since, r.start = 0, now, 0, now
	r.reads, r.record, r.shortest, r.longest = 0, nil, 0, 0
}

// Read returns the value that the register holds now.
func (r *Register[T]) Read() T {
	v, _ := r.TryRead()
	return v
}

// TryRead returns the value that the register holds now, or the error of
// [Register.FailAfter].
func (r *Register[T]) TryRead() (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.start) {
		panic("waittest: Register made outside of the testing/synctest bubble that reads it")
	}
	r.advance(now)
	r.since++
	s := r.steps[r.at]
	r.note(now, s)
	return s.value, s.err
}

// advance goes on to the step that the script has reached.
func (r *Register[T]) advance(now time.Time) {
	for r.at+1 < len(r.steps) {
		next := r.steps[r.at+1]
		begins := r.begun.Add(next.delay)
		if next.reads > 0 {
			if r.since < next.reads {
				return
			}
			begins = now
		} else if now.Before(begins) {
			return
		}
		r.at++
		r.begun, r.since = begins, 0
	}
}

// note puts a read on the record.
func (r *Register[T]) note(now time.Time, s step[T]) {
	r.reads++
	if r.reads > 1 {
		gap := now.Sub(r.last)
		if r.reads == 2 || gap < r.shortest {
			r.shortest, r.shortestAfter = gap, r.reads-1
		}
		if r.reads == 2 || gap > r.longest {
			r.longest, r.longestAfter = gap, r.reads-1
		}
	}
	r.last = now
	what := format(s.value)
	if s.err != nil {
		what = "error: " + s.err.Error()
	}
	if len(r.record) == 2*recorded {
		r.record = append(r.record[:recorded], r.record[recorded+1:]...)
	}
	r.record = append(r.record, read{r.reads, now.Sub(r.start), what})
}

// format prints integers as registers are usually told.
func format(v any) string {
	switch v.(type) {
	case uint8, uint16, uint32, uint64, uintptr:
		return fmt.Sprintf("%#x", v)
	}
	return fmt.Sprint(v)
}

// Reads returns how often the register was read since its start.
func (r *Register[T]) Reads() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}

// String returns the record: when which read saw what.
func (r *Register[T]) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.string()
}

func (r *Register[T]) string() string {
	if r.reads == 0 {
		return "register: no reads"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "register: %d reads", r.reads)
	number := 0
	for _, l := range r.record {
		if number++; l.number != number {
			fmt.Fprintf(&b, "\n  ... %d more", l.number-number)
			number = l.number
		}
		fmt.Fprintf(&b, "\n  read %d at %v: %s", l.number, l.at, l.what)
	}
	return b.String()
}

// A TB is the part of testing.TB that the checks need.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// CheckReads fails the test unless the register was read at least min and at
// most max times. It reports whether it was.
func (r *Register[T]) CheckReads(tb TB, min, max int) bool {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reads < min || r.reads > max {
		tb.Errorf("the register was read %d times, want %s\n%s", r.reads, between(min, max), r.string())
		return false
	}
	return true
}

// CheckGaps fails the test unless at least min and at most max has passed
// between each read and the next. It reports whether it has. With fewer than
// two reads there is nothing to check, and it fails.
func (r *Register[T]) CheckGaps(tb TB, min, max time.Duration) bool {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.reads < 2:
		tb.Errorf("the register was read %d times, so there is no time between reads to check\n%s", r.reads, r.string())
	case r.shortest < min:
		tb.Errorf("%v between reads %d and %d of the register, want %s\n%s", r.shortest, r.shortestAfter, r.shortestAfter+1, between(min, max), r.string())
	case r.longest > max:
		tb.Errorf("%v between reads %d and %d of the register, want %s\n%s", r.longest, r.longestAfter, r.longestAfter+1, between(min, max), r.string())
	default:
		return true
	}
	return false
}

func between[T comparable](min, max T) string {
	if min == max {
		return fmt.Sprint(min)
	}
	return fmt.Sprintf("%v to %v", min, max)
}
