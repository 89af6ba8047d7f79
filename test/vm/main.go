//go:build linux

// Vm boots virtual machines under QEMU and judges the checks that their init,
// test/vm/guest, makes: see test/vm/run, which gets what this needs and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var s suite
	flag.StringVar(&s.kernels, "kernels", "", "directory with the kernels, vmlinuz-amd64 and vmlinuz-arm64")
	flag.StringVar(&s.scratch, "scratch", "", "directory for what is built")
	flag.BoolVar(&s.verbose, "v", false, "show all that the guests' consoles say")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	start := time.Now()
	passed, failed, err := s.run(ctx, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
	}
	fmt.Printf("%d checks passed, %d failed, in %v\n", passed, failed, time.Since(start).Round(time.Second))
	if err != nil || failed > 0 {
		os.Exit(1)
	}
}
