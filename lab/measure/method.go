package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/precisewait/wait"
)

// A Group is what methods have in common.
type Group string

// The groups of methods.
const (
	Kernel   Group = "kernel" // system calls
	Runtime  Group = "go"     // the standard library
	Verbs    Group = "wait"   // the functions of package wait
	Threads  Group = "thread" // the methods of wait.Thread
	Margins  Group = "margin" // sleep up to a fixed margin, then spin
	Programs Group = "peer"   // other programs
)

// A Method is a way to wait.
type Method struct {
	Name  string
	Group Group

	// open prepares the calling goroutine. Its error is why the method
	// cannot be had here.
	open func(request time.Duration) (waiter, error)
}

// A waiter is a method that is ready to wait in one goroutine.
type waiter struct {
	// wait waits until the deadline, and returns it, or the one that it had
	// instead: a ticker has its own.
	wait func(now, deadline int64) int64

	close func() error
}

// HoldsThread reports whether each sleeper holds an OS thread of its own.
func (m Method) HoldsThread() bool { return m.Group == Kernel || m.Group == Threads }

// Margin returns the method that sleeps until the margin before the deadline,
// by wait.Sleep, and spins the rest.
func Margin(margin time.Duration) Method {
	return Method{marginPrefix + margin.String(), Margins, simple(func(now, deadline int64) {
		wait.Sleep(time.Duration(deadline - now - int64(margin)))
		wait.SpinUntil(at(deadline))
	})}
}

const marginPrefix = "margin="

// Methods returns every method but for the margins.
func Methods() []Method {
	return slices.Concat(kernelMethods, runtimeMethods, verbMethods, threadMethods("Thread"),
		threadMethods("OwnProcessor", wait.OwnProcessor()))
}

// ParseMethods returns the methods of a list of names and groups, each once.
func ParseMethods(list []string) ([]Method, error) {
	var found []Method
	for _, name := range list {
		some, err := parseMethod(name)
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if !slices.ContainsFunc(found, func(f Method) bool { return f.Name == m.Name }) {
				found = append(found, m)
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no method is named")
	}
	return found, nil
}

func parseMethod(name string) ([]Method, error) {
	if value, ok := strings.CutPrefix(name, marginPrefix); ok {
		margin, err := time.ParseDuration(value)
		if err != nil || margin <= 0 {
			return nil, fmt.Errorf("method %q: the margin must be a duration above zero", name)
		}
		return []Method{Margin(margin)}, nil
	}
	var names []string
	var some []Method
	for _, m := range Methods() {
		names = append(names, m.Name)
		if name == "all" || name == m.Name || name == string(m.Group) {
			some = append(some, m)
		}
	}
	if some == nil {
		return nil, fmt.Errorf("unknown method %q; there are %s, %sDURATION, and the groups all, %s, %s, %s and %s",
			name, strings.Join(names, ", "), marginPrefix, Kernel, Runtime, Verbs, Threads)
	}
	return some, nil
}

// simple opens a method that needs no preparation.
func simple(f func(now, deadline int64)) func(time.Duration) (waiter, error) {
	return func(time.Duration) (waiter, error) {
		return waiter{to(f), func() error { return nil }}, nil
	}
}

// to is a wait that keeps to the deadline that it is given.
func to(f func(now, deadline int64)) func(now, deadline int64) int64 {
	return func(now, deadline int64) int64 {
		f(now, deadline)
		return deadline
	}
}

// lasting is a wait by a function of a duration, until by one of a time.
func lasting(f func(time.Duration)) func(now, deadline int64) {
	return func(now, deadline int64) { f(time.Duration(deadline - now)) }
}

func until(f func(time.Time)) func(now, deadline int64) {
	return func(_, deadline int64) { f(at(deadline)) }
}

func at(deadline int64) time.Time { return epoch.Add(time.Duration(deadline)) }

var runtimeMethods = []Method{
	{"time.Sleep", Runtime, simple(lasting(time.Sleep))},
	{"time.Ticker", Runtime, openTicker},
}

// openTicker opens a ticker whose period is the request. A tick tells the time
// at which it was due, but for what it took to read the clock once more.
func openTicker(request time.Duration) (waiter, error) {
	first := now()
	ticker := time.NewTicker(request)
	return waiter{
		wait: func(int64, int64) int64 {
			due := int64((<-ticker.C).Sub(epoch))
			return due - (due-first)%int64(request)
		},
		close: func() error {
			ticker.Stop()
			return nil
		},
	}, nil
}

// rangeOf is how much longer than the request a SleepRange may take.
const rangeOf = 4

var verbMethods = []Method{
	{"Sleep", Verbs, simple(lasting(wait.Sleep))},
	{"SleepUntil", Verbs, simple(until(wait.SleepUntil))},
	{"SleepContext", Verbs, withContext(wait.SleepContext)},
	{"SleepRange", Verbs, simple(lasting(func(d time.Duration) { wait.SleepRange(d, d+d/rangeOf) }))},
	{"Spin", Verbs, simple(lasting(wait.Spin))},
	{"SpinUntil", Verbs, simple(until(wait.SpinUntil))},
	{"Hybrid", Verbs, simple(lasting(wait.Hybrid))},
	{"HybridUntil", Verbs, simple(until(wait.HybridUntil))},
	{"HybridContext", Verbs, withContext(wait.HybridContext)},
	{"For", Verbs, simple(lasting(wait.For))},
	{"Until", Verbs, simple(until(wait.Until))},
}

// withContext opens a verb with a context that can be cancelled, and is not.
func withContext(verb func(context.Context, time.Duration) error) func(time.Duration) (waiter, error) {
	return func(time.Duration) (waiter, error) {
		ctx, cancel := context.WithCancel(context.Background())
		return waiter{
			wait:  to(lasting(func(d time.Duration) { _ = verb(ctx, d) })),
			close: func() error { cancel(); return nil },
		}, nil
	}
}

// threadMethods returns the methods of a wait.Thread that was locked with the
// given options.
func threadMethods(name string, opts ...wait.ThreadOption) []Method {
	method := func(verb string, of func(*wait.Thread) func(now, deadline int64)) Method {
		return Method{name + "." + verb, Threads, func(time.Duration) (waiter, error) {
			thread, err := wait.LockThread(opts...)
			if err != nil {
				return waiter{}, err
			}
			return waiter{to(of(thread)), thread.Close}, nil
		}}
	}
	return []Method{
		method("Sleep", func(t *wait.Thread) func(now, deadline int64) { return lasting(t.Sleep) }),
		method("SleepUntil", func(t *wait.Thread) func(now, deadline int64) { return until(t.SleepUntil) }),
		method("SleepRange", func(t *wait.Thread) func(now, deadline int64) {
			return lasting(func(d time.Duration) { t.SleepRange(d, d+d/rangeOf) })
		}),
		method("Spin", func(t *wait.Thread) func(now, deadline int64) { return lasting(t.Spin) }),
		method("Hybrid", func(t *wait.Thread) func(now, deadline int64) { return lasting(t.Hybrid) }),
		method("HybridUntil", func(t *wait.Thread) func(now, deadline int64) { return until(t.HybridUntil) }),
	}
}
