package doctor

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/sysfs"
)

// A host is what is inspected. A test has one of its own, with files that
// were recorded and calls that answer as they did there.
type host struct {
	root string // what proc, sys, dev and boot lie in; empty for /
	calls
}

// calls is what is asked of the kernel and the runtime other than by files.
type calls struct {
	slack      func() (time.Duration, error) // of the calling thread, PR_GET_TIMERSLACK
	resolution func() (time.Duration, error) // clock_getres(CLOCK_MONOTONIC)
	clockCost  func() time.Duration          // of a reading; 0 where it is not measured
	maxProcs   int
	arch       string
	goVersion  string
}

// A reading is what was made of a subject. Sources are those of the subject
// if there are none here.
type reading struct {
	verdict Verdict
	value   string
	sources []string
}

// inspect reports on the host.
func (h host) inspect() Report {
	r := Report{Host: h.describe()}
	for _, s := range subjects {
		r.Findings = append(r.Findings, h.examine(s))
	}
	return r
}

// examine returns the finding on s. What a reader returns with an error is
// that part of the value that could be read.
func (h host) examine(s subject) (f Finding) {
	// procfs indexes the fields of a line without counting them in places.
	defer func() {
		if p := recover(); p != nil {
			f = s.unknown(fmt.Sprintf("malformed: %v", p))
		}
	}()
	r, err := readers[s.name](h)
	if err != nil {
		f = s.unknown(h.reason(err))
		f.Value = oneLine(r.value)
		return f
	}
	f = s.finding(r.verdict, oneLine(r.value))
	if len(r.sources) > 0 {
		f.Sources = r.sources
	}
	return f
}

// reason returns an error's text, with file names as they are on the host
// itself.
func (h host) reason(err error) string {
	text := err.Error()
	if h.root != "" {
		text = strings.ReplaceAll(text, h.root, "")
	}
	return oneLine(text)
}

// oneLine returns what was read as it can be shown.
func oneLine(text string) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
}

// describe returns what the host is, as far as it can be read.
func (h host) describe() Host {
	release, _ := h.read("/proc/sys/kernel/osrelease")
	version, _ := h.read("/proc/sys/kernel/version")
	online, _ := h.read(cpuDir + "/online")
	return Host{
		System:       "linux",
		Architecture: h.arch,
		Kernel:       release,
		Version:      version,
		CPUs:         online,
		GOMAXPROCS:   h.maxProcs,
		Go:           h.goVersion,
	}
}

func (h host) path(name string) string { return filepath.Join(h.root+"/", name) }

// read returns the content of a file without the space around it.
func (h host) read(name string) (string, error) {
	b, err := os.ReadFile(h.path(name))
	return strings.TrimSpace(string(b)), err
}

// glob returns the names that match the pattern, as they are on the host.
func (h host) glob(pattern string) []string {
	names, _ := filepath.Glob(h.path(pattern)) // the patterns are well formed
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], h.root)
	}
	return names
}

func (h host) proc() (procfs.FS, error) { return procfs.NewFS(h.path("/proc")) }
func (h host) sys() (sysfs.FS, error)   { return sysfs.NewFS(h.path("/sys")) }

// self returns this process.
func (h host) self() (procfs.Proc, error) {
	fs, err := h.proc()
	if err != nil {
		return procfs.Proc{}, err
	}
	return fs.Self()
}

// holds returns an error unless a file has the text in it: procfs takes a
// line that is not there for a value of zero.
func (h host) holds(name, text string) error {
	content, err := h.read(name)
	if err == nil && !strings.Contains(content, text) {
		err = fmt.Errorf("%s holds no %q", name, text)
	}
	return err
}

// sysctl returns the first number of a sysctl.
func (h host) sysctl(name string) (int, error) {
	fs, err := h.proc()
	if err != nil {
		return 0, err
	}
	values, err := fs.SysctlInts(name)
	if err != nil {
		return 0, err
	}
	if len(values) == 0 {
		return 0, fmt.Errorf("sysctl %s is empty", name)
	}
	return values[0], nil
}

// parameter returns the last value that a parameter has on the kernel's
// command line, and whether it has one. What comes after -- is for init.
func (h host) parameter(name string) (value string, ok bool, err error) {
	fs, err := h.proc()
	if err != nil {
		return "", false, err
	}
	words, err := fs.CmdLine()
	if err != nil {
		return "", false, err
	}
	for _, word := range words {
		if word == "--" {
			break
		}
		// To the kernel - and _ are the same in a name.
		key, v, _ := strings.Cut(word, "=")
		if strings.ReplaceAll(key, "-", "_") == name {
			value, ok = v, true
		}
	}
	return value, ok, nil
}

// config returns the value of an option that the kernel was built with, empty
// if it was built without, and the file that tells.
func (h host) config(option string) (value, source string, err error) {
	source = "/proc/config.gz"
	text, err := h.readGzip(source)
	if errors.Is(err, os.ErrNotExist) {
		var release string
		if release, err = h.read("/proc/sys/kernel/osrelease"); err != nil {
			return "", "", err
		}
		source = "/boot/config-" + release
		text, err = h.read(source)
	}
	if err != nil {
		return "", "", err
	}
	if !strings.Contains(text, "\nCONFIG_") {
		return "", "", fmt.Errorf("%s holds no configuration", source)
	}
	return configValue(text, option), source, nil
}

func (h host) readGzip(name string) (string, error) {
	f, err := os.Open(h.path(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(b), nil
}

func configValue(text, option string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), option+"="); ok {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// chosen returns the word that the kernel marks as the one in force, by the
// given brackets: "always [madvise] never".
func chosen(text, brackets string) (string, error) {
	for word := range strings.FieldsSeq(text) {
		if len(word) > 2 && word[0] == brackets[0] && word[len(word)-1] == brackets[1] {
			return word[1 : len(word)-1], nil
		}
	}
	return "", fmt.Errorf("no choice is marked in %q", text)
}

// cpuList matches a list of CPUs as the kernel writes it, with numbers that a
// CPU can have.
var cpuList = regexp.MustCompile(`^\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*$`)

func noList(file, text string) error {
	return fmt.Errorf("%s holds no list of CPUs: %q", file, text)
}

// checkList returns an error unless a file holds a list of CPUs, which may be
// empty. procfs takes any list, and memory for each number in it.
func (h host) checkList(file string) error {
	text, err := h.read(file)
	if err == nil && text != "" && !cpuList.MatchString(text) {
		err = noList(file, text)
	}
	return err
}

// ranges writes ascending numbers as the kernel writes a list of CPUs.
func ranges(cpus []int) string {
	var b strings.Builder
	for i := 0; i < len(cpus); {
		last := i
		for last+1 < len(cpus) && cpus[last+1] == cpus[last]+1 {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%d", cpus[i])
		if last > i {
			fmt.Fprintf(&b, "-%d", cpus[last])
		}
		i = last + 1
	}
	return b.String()
}
