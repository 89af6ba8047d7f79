//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// testChecks are the test binaries that the host has put into /tests. Each is
// a check; which there are is the host's to know.
func testChecks() []check {
	var list []check
	binaries, _ := filepath.Glob("/tests/*.test")
	for _, b := range binaries {
		name := strings.TrimSuffix(filepath.Base(b), ".test")
		list = append(list, check{"tests: " + name, func() (string, error) { return runTests(b) }})
	}
	return list
}

// exampleChecks are the examples that drive a device.
func exampleChecks() []check {
	example := func(name, want string, args ...string) check {
		return check{"example: " + name, func() (string, error) {
			out, err := exec.Command("/examples/"+name, args...).CombinedOutput()
			text := strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; ")
			if err == nil && !strings.Contains(text, want) {
				err = fmt.Errorf("does not say %q", want)
			}
			return text, err
		}}
	}
	return []check{
		example("edu", "12! is 479001600"),
		example("uio", "0x10000ed", "/sys/bus/pci/devices/0000:00:01.0/resource0", "0", "0xff", "0xed"),
	}
}

// outcome is the line that a test ends with.
var outcome = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): .*`)

// start is the line that a test begins with, but for tests within tests.
var start = regexp.MustCompile(`(?m)^=== RUN   [^/\n]+\n`)

// runTests runs a test binary, with the flags from the file beside it.
func runTests(binary string) (string, error) {
	flags, err := os.ReadFile(binary + ".flags")
	if err != nil {
		return "", err
	}
	cmd := exec.Command(binary, append(strings.Fields(string(flags)), "-test.v", "-test.timeout=2m")...)
	cmd.Dir = "/tests"
	cmd.Env = []string{"PATH=/", "HOME=/tmp", "TMPDIR=/tmp"}
	out, err := cmd.CombinedOutput()
	counts := map[string]int{}
	var skipped []string
	for _, m := range outcome.FindAllSubmatch(out, -1) {
		counts[string(m[1])]++
		if string(m[1]) == "SKIP" {
			skipped = append(skipped, strings.Fields(string(m[0]))[2])
		}
	}
	figures := fmt.Sprintf("%d passed, %d failed, %d skipped", counts["PASS"], counts["FAIL"], counts["SKIP"])
	if len(skipped) > 0 {
		figures += " (" + strings.Join(skipped, ", ") + ")"
	}
	if err == nil && counts["PASS"] == 0 {
		err = errors.New("no test passed")
	}
	if err != nil {
		comment(failures(out))
	}
	return figures, err
}

// failures returns what the tests that did not pass wrote, or, if there are
// none, the end of it all.
func failures(out []byte) string {
	var failed []string
	for _, block := range start.Split(string(out), -1) {
		if !strings.Contains(block, "--- PASS: ") && !strings.Contains(block, "--- SKIP: ") || strings.Contains(block, "--- FAIL: ") {
			failed = append(failed, block)
		}
	}
	text := strings.Join(failed, "")
	return text[max(0, len(text)-16<<10):]
}

// comment writes lines that are no checks.
func comment(text string) {
	for line := range strings.Lines(text) {
		fmt.Printf("# %s\n", strings.TrimRight(line, "\r\n"))
	}
}
