package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/lab/measure"
	"github.com/precisewait/wait/lab/report"
)

// A lab is what all commands share: where to write, and in which form.
type lab struct {
	out, errOut            io.Writer
	asJSON, asCSV, asBench bool
	pictureName, floorName string
	picture                *newFile
	floor                  *wait.Floor // as loaded
}

func (l *lab) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.BoolVar(&l.asJSON, "json", false, "write JSON")
	flags.BoolVar(&l.asCSV, "csv", false, "write CSV, durations in nanoseconds")
	flags.BoolVar(&l.asBench, "bench", false, "write the Go benchmark format, for benchstat")
	flags.StringVar(&l.pictureName, "plot", "", "draw a picture into this `file`, .svg or .png")
	flags.StringVar(&l.floorName, "floor", "", "start from the floor in this `file`, saved by: waitlab floor --save FILE")
	root.MarkFlagsMutuallyExclusive("json", "csv", "bench")
}

// prepare does what can fail before anything is measured: it loads the floor
// and makes sure that the picture can be written.
func (l *lab) prepare() error {
	if l.pictureName != "" {
		if err := report.Pictured(l.pictureName); err != nil {
			return err
		}
		f, err := createFile(l.pictureName)
		if err != nil {
			return failed(err)
		}
		l.picture = f
	}
	if l.floorName != "" {
		f, err := loadFloor(l.floorName)
		if err != nil {
			l.discard()
			return failed(err)
		}
		l.floor = &f
	}
	return nil
}

func (l *lab) discard() {
	if l.picture != nil {
		l.picture.discard()
	}
}

func loadFloor(name string) (f wait.Floor, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, fmt.Errorf("floor file %s: %w", name, err)
	}
	if err := wait.SetFloor(f); err != nil {
		return f, fmt.Errorf("floor file %s: %w", name, err)
	}
	return f, nil
}

// measured is what every command is: it checks its flags, and measures. Between
// the two, what can fail is prepared. What was measured is told, even if
// measuring ended early or failed; after a failure without a picture.
func (l *lab) measured(check func(args []string) error, take func(*cobra.Command) (measure.Result, error)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if err := check(args); err != nil {
			return err
		}
		if err := l.prepare(); err != nil {
			return err
		}
		defer l.discard()
		r, err := take(c)
		if err == nil {
			return failed(l.tell(r))
		}
		if v, ok := views[r.Command]; ok && len(r.Rows) > 0 {
			err = errors.Join(err, l.write(r, v))
		}
		return failed(err)
	}
}

// tell writes a result in the form that was asked for, and its picture.
func (l *lab) tell(r measure.Result) error {
	v, ok := views[r.Command]
	if !ok {
		return fmt.Errorf("there is no command %q whose result could be shown", r.Command)
	}
	return errors.Join(l.write(r, v), l.draw(r, v))
}

// draw draws the picture, if one was asked for.
func (l *lab) draw(r measure.Result, v view) error {
	if l.picture == nil {
		return nil
	}
	panels := v.panels(r)
	if len(report.Names(panels)) == 0 {
		if r.Interrupted {
			return nil
		}
		return errors.New("nothing was measured that could be drawn")
	}
	if err := report.Draw(l.picture, l.pictureName, panels); err != nil {
		return err
	}
	return l.picture.keep()
}

func (l *lab) write(r measure.Result, v view) error {
	switch {
	case l.asJSON:
		return report.JSON(l.out, r)
	case l.asCSV:
		return report.CSV(l.out, v.columns, r.Rows)
	case l.asBench:
		return report.Benchmarks(l.out, r)
	}
	return v.write(l.out, r)
}

// A newFile is written beside the place where it will be, so that nothing is
// left there unless it is whole.
type newFile struct {
	*os.File
	name string
	kept bool
}

func createFile(name string) (*newFile, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file that could be replaced", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".waitlab-*")
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	return &newFile{File: f, name: name}, nil
}

func (f *newFile) keep() error {
	err := errors.Join(f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.name)
	}
	f.kept = err == nil
	return err
}

func (f *newFile) discard() {
	if !f.kept {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// onTerminal reports whether errors go to a terminal. Progress is shown only
// there.
func (l *lab) onTerminal() bool {
	f, ok := l.errOut.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress returns a function that shows a step of so many, and one that takes
// the last away.
func (l *lab) progress(steps int) (step func(what string), done func()) {
	if !l.onTerminal() {
		return func(string) {}, func() {}
	}
	return showProgress(l.errOut, steps)
}

// showProgress writes only when there is a step: a spinner that turns by itself
// would wake up beside the measurement, and not end.
func showProgress(w io.Writer, steps int) (step func(what string), done func()) {
	bar := progressbar.NewOptions(steps, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetSpinnerChangeInterval(0))
	return func(what string) {
			bar.Describe(what)
			_ = bar.Add(1) // a progress that cannot be written is no reason to stop
		}, func() {
			_ = bar.Clear()
		}
}
