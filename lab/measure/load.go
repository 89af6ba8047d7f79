package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Load is what runs beside a measurement.
type Load string

// The loads.
const (
	NoLoad      Load = "none"
	Cooperative Load = "cooperative" // goroutines that work for 50 us at a time, and yield
	Hog         Load = "hog"         // as many goroutines as GOMAXPROCS that never yield
	Garbage     Load = "gc"          // garbage, and its collection
	Process     Load = "process"     // as many other processes as CPUs that never sleep
)

// ParseLoad returns the load of that name.
func ParseLoad(name string) (Load, error) {
	all := []Load{NoLoad, Cooperative, Hog, Garbage, Process}
	if !slices.Contains(all, Load(name)) {
		return "", fmt.Errorf("unknown load %q; there are %s", name, strings.Trim(fmt.Sprint(all), "[]"))
	}
	return Load(name), nil
}

// InProcess reports whether the load counts in what this process has used.
func (l Load) InProcess() bool { return l == Cooperative || l == Hog || l == Garbage }

// Start starts the load. The load of other processes runs the given command,
// which must be one that calls [Burn].
func (l Load) Start(ctx context.Context, burner []string) (stop func() error, err error) {
	switch l {
	case Cooperative:
		return inGoroutines(8, func() {
			for start := now(); now()-start < 50_000; {
			}
			runtime.Gosched()
		}), nil
	case Hog:
		return inGoroutines(runtime.GOMAXPROCS(0), func() {
			for range 1000 {
			}
		}), nil
	case Garbage:
		return inGoroutines(1, litter), nil
	case Process:
		return inProcesses(ctx, runtime.NumCPU(), burner)
	}
	return func() error { return nil }, nil
}

// inGoroutines does the work again and again in n goroutines.
func inGoroutines(n int, work func()) (stop func() error) {
	var over atomic.Bool
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			for !over.Load() {
				work()
			}
		})
	}
	return func() error {
		over.Store(true)
		running.Wait()
		return nil
	}
}

// litter leaves garbage behind, and with it a heap that takes time to mark.
func litter() {
	var kept [][]*int
	for range 64 {
		some := make([]*int, 1024)
		for i := range some {
			some[i] = new(int)
		}
		kept = append(kept, some)
	}
	runtime.KeepAlive(kept)
	time.Sleep(100 * time.Microsecond)
}

// inProcesses runs a command n times. Each ends when its input does, so none
// outlives this process, whatever becomes of that.
func inProcesses(ctx context.Context, n int, command []string) (stop func() error, err error) {
	var inputs []io.Closer
	var started []*exec.Cmd
	stop = func() error {
		var errs []error
		for i, c := range started {
			errs = append(errs, inputs[i].Close())
			if err := c.Wait(); ctx.Err() == nil {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	for range n {
		c := exec.CommandContext(ctx, command[0], command[1:]...)
		c.Stderr = os.Stderr
		input, err := c.StdinPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start the load: %w", err), stop())
		}
		inputs, started = append(inputs, input), append(started, c)
	}
	return stop, nil
}

// Burn keeps a CPU busy until the input ends.
func Burn(input io.Reader) {
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, input)
		over.Store(true)
	}()
	for !over.Load() {
	}
}
