//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A suite is a run of all guests or some.
type suite struct {
	kernels, scratch string
	verbose          bool
}

// run boots the guests with the given names, or if there are none all that need
// not be asked for, two at a time, and returns how many checks passed and
// failed. A guest that did not do what it should is a failed check too.
func (s *suite) run(ctx context.Context, names []string) (passed, failed int, err error) {
	var chosen []guest
	for _, g := range guests {
		if len(names) == 0 && !g.asked || slices.Contains(names, g.name) {
			chosen = append(chosen, g)
		}
	}
	if len(chosen) < len(names) {
		return 0, 0, fmt.Errorf("no such guests: %q", names)
	}
	if err := s.compile(ctx, chosen); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports := make([]chan report, len(chosen))
	free := make(chan struct{}, 2)
	for i, g := range chosen {
		reports[i] = make(chan report, 1)
		go func() {
			// QEMU is told to die with the thread that started it.
			runtime.LockOSThread()
			free <- struct{}{}
			reports[i] <- s.boot(ctx, g)
			<-free
		}()
	}
	for i, g := range chosen {
		r := <-reports[i]
		fmt.Printf("-- %s: %s\n%s", g.name, g.about, &r.text)
		if r.err != nil {
			// The others are to be gone before their files are.
			cancel()
			for _, c := range reports[i+1:] {
				<-c
			}
			return passed, failed, fmt.Errorf("%s: %w", g.name, r.err)
		}
		for _, fault := range r.faults(g.checks) {
			fmt.Printf("not ok - %s: %s\n", g.name, fault)
			failed++
		}
		passed, failed = passed+r.passed, failed+r.failed
		fmt.Printf("-- %s: %d of %d checks passed, in %.1f s\n", g.name, r.passed, g.checks, r.took.Seconds())
	}
	return passed, failed, nil
}

// A report is what became of a guest.
type report struct {
	verdict
	text strings.Builder // what is to be shown
	took time.Duration
	err  error // why it could not be tried
}

// boot runs a guest to its end.
func (s *suite) boot(ctx context.Context, g guest) (r report) {
	start := time.Now()
	defer func() { r.took = time.Since(start) }()
	dir, err := os.MkdirTemp(s.scratch, g.name+"-")
	if err != nil {
		return report{err: err}
	}
	defer os.RemoveAll(dir)
	initramfs, disk, monitor := filepath.Join(dir, "initramfs"), filepath.Join(dir, "disk"), filepath.Join(dir, "monitor")
	err = errors.Join(s.pack(g, initramfs), os.WriteFile(disk, make([]byte, 1<<20), 0o600))
	if err != nil {
		return report{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	qemu, console, kernel := "qemu-system-x86_64", "ttyS0", "vmlinuz-amd64" // which runs programs of 32 bits too
	if g.arch == "arm64" {
		qemu, console, kernel = "qemu-system-aarch64", "ttyAMA0", "vmlinuz-arm64"
	}
	args := []string{
		"-nodefaults", "-display", "none", "-no-reboot", "-m", "1024", "-accel", "tcg",
		"-serial", "stdio", "-qmp", "unix:" + monitor + ",server=on,wait=off",
		"-kernel", filepath.Join(s.kernels, kernel), "-initrd", initramfs,
		"-append", fmt.Sprintf("console=%s loglevel=1 panic=-1 %s -- %s", console, g.kernel, g.name),
	}
	for _, a := range g.machine {
		args = append(args, strings.Replace(a, "DISK", disk, 1))
	}
	cmd := exec.CommandContext(ctx, qemu, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return report{err: err}
	}
	err = s.listen(out, &r, monitor)
	ended := cmd.Wait()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.trouble = append(r.trouble, fmt.Sprintf("not done after %v", g.timeout))
	case ctx.Err() != nil:
		r.err = ctx.Err()
	case ended != nil || err != nil:
		r.trouble = append(r.trouble, fmt.Sprintf("%s: %v: %s", qemu, errors.Join(err, ended), strings.TrimSpace(complaints.String())))
	}
	return r
}

// listen reads the console to its end, and does what the guest asks for.
func (s *suite) listen(console io.Reader, r *report, monitor string) error {
	var err error
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimRight(lines.Text(), "\r")
		if r.take(line) || s.verbose {
			fmt.Fprintln(&r.text, line)
		}
		if device, ok := strings.CutPrefix(line, "# host: unplug "); ok {
			err = errors.Join(err, unplug(monitor, device))
		}
	}
	return errors.Join(err, lines.Err())
}

// compile has the go command make the programs for the guests.
func (s *suite) compile(ctx context.Context, guests []guest) error {
	done := map[string]bool{}
	for _, g := range guests {
		for _, p := range g.programs() {
			path := s.compiled(g, p)
			if done[path] {
				continue
			}
			done[path] = true
			cmd := exec.CommandContext(ctx, "go", append(p.build, "-ldflags=-s -w", "-o", path, p.pkg)...)
			cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+g.arch, "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("build %s: %w: %s", p.pkg, err, out)
			}
		}
	}
	return nil
}

func (s *suite) compiled(g guest, p program) string {
	return filepath.Join(s.scratch, strings.ReplaceAll(p.path, "/", "-")+"-"+g.arch)
}

// A program is a file in a guest, made from a package.
type program struct {
	path, pkg string
	build     []string
}

func (g guest) programs() []program {
	list := []program{{"init", "./test/vm/guest", []string{"build"}}}
	for _, t := range g.tests {
		list = append(list, program{"tests/" + t.name + ".test", t.pkg, []string{"test", "-c"}})
	}
	for _, name := range g.examples {
		list = append(list, program{"examples/" + name, "./examples/" + name, []string{"build"}})
	}
	return list
}

// pack makes the guest's initial file system.
func (s *suite) pack(g guest, initramfs string) error {
	f, err := os.Create(initramfs)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	archive := cpioWriter{w: w}
	archive.add("tests", 0o040755, nil)
	archive.add("examples", 0o040755, nil)
	for _, p := range g.programs() {
		content, err := os.ReadFile(s.compiled(g, p))
		if err != nil {
			return err
		}
		archive.add(p.path, 0o100755, content)
	}
	for _, t := range g.tests {
		archive.add("tests/"+t.name+".test.flags", 0o100644, []byte(t.flags))
	}
	return errors.Join(archive.close(), w.Flush(), f.Close())
}
