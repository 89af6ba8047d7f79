//go:build unix

// Gosleep sleeps by time.Sleep, in a program that does nothing else. Each line
// of input, "COUNT REQUEST_NS", is answered by the CPU time in ns and the
// lateness of each wait in ns.
package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"
)

func cpu() int64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // fails for no valid argument
	return r.Utime.Nano() + r.Stime.Nano()
}

func sleep(request time.Duration) time.Duration {
	start := time.Now()
	time.Sleep(request)
	return time.Since(start) - request
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for {
		var count int
		var request time.Duration
		if _, err := fmt.Fscan(in, &count, (*int64)(&request)); err != nil {
			return
		}
		late := make([]time.Duration, count)
		sleep(request) // does not count
		before := cpu()
		for i := range late {
			late[i] = sleep(request)
		}
		fmt.Fprint(out, cpu()-before)
		for _, l := range late {
			fmt.Fprint(out, " ", l.Nanoseconds())
		}
		fmt.Fprintln(out)
		if out.Flush() != nil {
			return
		}
	}
}
