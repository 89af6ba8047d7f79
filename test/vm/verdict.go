//go:build linux

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A verdict is what a guest's console has said so far.
type verdict struct {
	plan           int // how many checks the guest means to make
	planned        bool
	passed, failed int
	trouble        []string // what went wrong apart from checks
}

var (
	planLine  = regexp.MustCompile(`^1\.\.(\d+)$`)
	checkLine = regexp.MustCompile(`^(not )?ok (\d+) - `)
)

// take takes notice of a line, and reports whether it is one to be shown.
func (v *verdict) take(line string) bool {
	if m := planLine.FindStringSubmatch(line); m != nil {
		if v.planned {
			v.trouble = append(v.trouble, "more than one plan")
		}
		v.plan, _ = strconv.Atoi(m[1])
		v.planned = true
		return false
	}
	if m := checkLine.FindStringSubmatch(line); m != nil {
		if number, _ := strconv.Atoi(m[2]); number != v.passed+v.failed+1 {
			v.trouble = append(v.trouble, fmt.Sprintf("check %d comes after %d others", number, v.passed+v.failed))
		}
		if m[1] == "" {
			v.passed++
		} else {
			v.failed++
		}
		return true
	}
	if strings.Contains(line, "Kernel panic") || strings.HasPrefix(line, "Bail out!") {
		v.trouble = append(v.trouble, line)
		return true
	}
	return strings.HasPrefix(line, "#")
}

// faults returns what is wrong with a guest that has ended, apart from checks
// that failed.
func (v *verdict) faults(want int) []string {
	faults := v.trouble
	switch made := v.passed + v.failed; {
	case !v.planned:
		faults = append(faults, "no plan: did it boot?")
	case v.plan != want:
		faults = append(faults, fmt.Sprintf("plans %d checks, not %d", v.plan, want))
	case made != want:
		faults = append(faults, fmt.Sprintf("made %d checks of %d", made, want))
	}
	return faults
}
