// Waitlab measures on this host how late waits end and what they cost, and
// draws it.
//
//	go run -C lab ./cmd/waitlab --help
//
// Its exit status is 0, also if it was interrupted and told what it had
// measured by then; 1 if something went wrong; 2 for a command line that is not
// understood.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	context.AfterFunc(ctx, stop) // a second one ends the program
	// A reader that has gone is an error of the write: what else there is to
	// write and to take away comes after it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// interrupts are the signals that end a measurement early. Under nohup(1) a
// hangup is none.
func interrupts() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// run returns the exit status.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use:           "waitlab",
		Short:         "Measure how late waits end on this host, and what they cost",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	l := &lab{out: out, errOut: errOut}
	l.addFlags(root)
	root.AddCommand(l.floorCommand(), l.tableCommand(), l.peersCommand(), l.jitterCommand(), l.scaleCommand(),
		l.paretoCommand(), l.phaseCommand(), l.showCommand(), burnCommand())
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(errOut, "waitlab:", err)
	if errors.As(err, new(failure)) {
		return 1
	}
	return 2
}

// A failure is an error of something else than the command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// failed returns err as a failure, if it is an error.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}
