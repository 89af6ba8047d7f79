// Waitdoctor tells what stands between this host and waits that end on time.
// It only reads.
//
//	go run -C doctor ./cmd/waitdoctor
//
// As root it finds out a little more.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/precisewait/wait/doctor"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status: 0, 1 if the report could not be written, 2 for
// a command line that is not understood.
func run(args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("waitdoctor", flag.ContinueOnError)
	flags.SetOutput(errOut)
	asJSON := flags.Bool("json", false, "write the report as JSON")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil: // flags has said why
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errOut, "waitdoctor: unexpected argument %q; it takes flags only\n", flags.Arg(0))
		flags.Usage()
		return 2
	}
	if err := write(out, doctor.Inspect(), *asJSON); err != nil {
		fmt.Fprintf(errOut, "waitdoctor: %v\n", err)
		return 1
	}
	return 0
}

func write(out io.Writer, r doctor.Report, asJSON bool) error {
	if !asJSON {
		_, err := io.WriteString(out, r.String())
		return err
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
