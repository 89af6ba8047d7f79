// Package peers measures what else one could wait with: small programs in
// other languages, built when they are needed, and cyclictest(8). A program
// reads requests, "COUNT REQUEST_NS" in a line, and answers each with a line
// that has the CPU time and the lateness of each wait, so that several can
// take turns within one run.
//
// What cannot be built or is not installed is absent, which is no error.
package peers

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/precisewait/wait/lab/measure"
)

//go:embed programs
var sources embed.FS

// A program is a peer and how to build it. In its command lines, DIR is the
// directory that has the source.
type program struct {
	name      string
	source    string
	compilers []string // the first that is installed is used
	build     []string // its arguments
	run       []string
}

// The order is that of the table.
var programs = []program{
	{"C clock_nanosleep", "nanosleep.c", []string{"cc", "gcc", "clang"},
		[]string{"-O2", "-o", "DIR/nanosleep", "DIR/nanosleep.c"}, []string{"DIR/nanosleep", "50000"}},
	{"C clock_nanosleep:1ns", "nanosleep.c", []string{"cc", "gcc", "clang"},
		[]string{"-O2", "-o", "DIR/nanosleep", "DIR/nanosleep.c"}, []string{"DIR/nanosleep", "1"}},
	{"C++ sleep_for", "sleep_for.cpp", []string{"c++", "g++", "clang++"},
		[]string{"-O2", "-pthread", "-o", "DIR/sleep_for", "DIR/sleep_for.cpp"}, []string{"DIR/sleep_for"}},
	{"Rust thread::sleep", "sleep.rs", []string{"rustc"},
		[]string{"--edition=2021", "-O", "-o", "DIR/rust_sleep", "DIR/sleep.rs"}, []string{"DIR/rust_sleep"}},
	{"Java parkNanos", "ParkNanos.java", []string{"javac"},
		[]string{"-d", "DIR", "DIR/ParkNanos.java"}, []string{"java", "-cp", "DIR", "ParkNanos"}},
	{"Go time.Sleep", "gosleep/main.go", []string{"go"},
		[]string{"build", "-o", "DIR/gosleep", "DIR/main.go"}, []string{"DIR/gosleep"}},
}

// Peers are the peers of this host.
type Peers struct {
	dir      string
	subjects []measure.Subject
}

// Build builds all peers in a temporary directory, which Close removes. Before
// each, step is called with its name.
func Build(ctx context.Context, step func(name string)) (*Peers, error) {
	dir, err := os.MkdirTemp("", "waitlab-peers-")
	if err != nil {
		return nil, err
	}
	p := &Peers{dir: dir}
	built := map[string]error{}
	for _, prog := range programs {
		step(prog.name)
		err, done := built[prog.source]
		if !done {
			err = prog.make(ctx, dir)
			built[prog.source] = err
		}
		peer := &peer{name: prog.name, absent: err}
		for _, arg := range prog.run {
			peer.command = append(peer.command, in(dir, arg))
		}
		p.subjects = append(p.subjects, peer)
	}
	p.subjects = append(p.subjects, cyclictest{})
	return p, nil
}

// Close removes what was built.
func (p *Peers) Close() error { return os.RemoveAll(p.dir) }

// Subjects returns the peers.
func (p *Peers) Subjects() []measure.Subject { return p.subjects }

func in(dir, arg string) string { return strings.ReplaceAll(arg, "DIR", dir) }

// make writes the source and compiles it.
func (p program) make(ctx context.Context, dir string) error {
	compiler, err := lookPath(p.compilers)
	if err != nil {
		return err
	}
	text, err := fs.ReadFile(sources, path.Join("programs", p.source))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, path.Base(p.source)), text, 0o600); err != nil {
		return err
	}
	var args []string
	for _, arg := range p.build {
		args = append(args, in(dir, arg))
	}
	c := exec.CommandContext(ctx, compiler, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "TMPDIR="+dir, "GOTMPDIR="+dir)
	c.WaitDelay = time.Second
	alone(c)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(compiler), err, firstLine(string(out)))
	}
	return nil
}

func lookPath(names []string) (string, error) {
	for _, name := range names {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", strings.Join(names, " or "))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// A peer is a program that was built, or is absent.
type peer struct {
	name    string
	command []string
	absent  error
}

func (p *peer) Describe() (string, measure.Group) { return p.name, measure.Programs }

// Open starts the program. It ends when its input does, so it does not outlive
// this process, whatever becomes of that.
func (p *peer) Open(ctx context.Context, request time.Duration) (measure.Turns, error) {
	if p.absent != nil {
		return nil, p.absent
	}
	t := &talk{request: request, process: exec.CommandContext(ctx, p.command[0], p.command[1:]...)}
	t.process.Stderr = &t.said
	t.process.WaitDelay = time.Second
	alone(t.process)
	var err error
	if t.input, err = t.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := t.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.output = bufio.NewReader(output)
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	return t, nil
}

// A talk is one with a program that runs.
type talk struct {
	request time.Duration
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
	said    strings.Builder // on its standard error
}

func (t *talk) Take(_ context.Context, late []time.Duration) ([]time.Duration, time.Duration, error) {
	if _, err := fmt.Fprintln(t.input, len(late), t.request.Nanoseconds()); err != nil {
		return nil, 0, t.broken(err)
	}
	line, err := t.output.ReadString('\n')
	if err != nil {
		return nil, 0, t.broken(err)
	}
	return parseAnswer(line, late)
}

func (t *talk) broken(err error) error {
	_ = t.Close() // has said all then
	if said := firstLine(t.said.String()); said != "" {
		return fmt.Errorf("the program ended: %s", said)
	}
	return fmt.Errorf("the program ended: %w", err)
}

// patience is how long a program has to end once its input has.
const patience = time.Second

// Close ends the program, whose own end is no error of the measurement.
func (t *talk) Close() error {
	_ = t.input.Close()
	kill := time.AfterFunc(patience, func() { _ = t.process.Process.Kill() })
	defer kill.Stop()
	_ = t.process.Wait()
	return nil
}

// parseAnswer reads "CPU_NS LATE_NS..." into late.
func parseAnswer(line string, late []time.Duration) ([]time.Duration, time.Duration, error) {
	fields := strings.Fields(line)
	if len(fields) != len(late)+1 {
		return nil, 0, fmt.Errorf("asked for %d waits, the program answered %d numbers", len(late), len(fields))
	}
	var errs []error
	number := func(field string) time.Duration {
		n, err := strconv.ParseInt(field, 10, 64)
		errs = append(errs, err)
		return time.Duration(n)
	}
	cpu := number(fields[0])
	for i, field := range fields[1:] {
		late[i] = number(field)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, 0, fmt.Errorf("the program's answer: %w", err)
	}
	return late, cpu, nil
}
