//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func verdictOf(console string) *verdict {
	v := &verdict{}
	for line := range strings.Lines(console) {
		v.take(strings.TrimRight(line, "\r\n"))
	}
	return v
}

func TestAGuestPassesByItsPlanAlone(t *testing.T) {
	v := verdictOf("SeaBIOS\r\n1..2\r\n# Linux\r\nok 1 - a: 1 us (2ms)\r\nok 2 - b\r\n")
	assert.Empty(t, v.faults(2))
	assert.Equal(t, 2, v.passed)
	assert.Equal(t, 0, v.failed)
}

func TestChecksThatFailAreCounted(t *testing.T) {
	v := verdictOf("1..2\nnot ok 1 - a: late\nok 2 - b\n")
	assert.Empty(t, v.faults(2))
	assert.Equal(t, 1, v.passed)
	assert.Equal(t, 1, v.failed)
}

func TestWhatAGuestLeavesOutIsAFault(t *testing.T) {
	for name, c := range map[string]struct{ console, fault string }{
		"silence":              {"", "no plan"},
		"no plan":              {"ok 1 - a\nok 2 - b\n", "no plan"},
		"a plan of too few":    {"1..1\nok 1 - a\n", "plans 1 checks, not 2"},
		"a plan of too many":   {"1..3\nok 1 - a\nok 2 - b\nok 3 - c\n", "plans 3 checks, not 2"},
		"two plans":            {"1..2\n1..2\nok 1 - a\nok 2 - b\n", "more than one plan"},
		"a check not made":     {"1..2\nok 1 - a\n", "made 1 checks of 2"},
		"a check made twice":   {"1..2\nok 1 - a\nok 1 - a\n", "check 1 comes after 1 others"},
		"a check made after b": {"1..2\nok 2 - b\nok 1 - a\n", "check 2 comes after 0 others"},
		"a panic at the end":   {"1..2\nok 1 - a\nok 2 - b\n[    1.0] Kernel panic - not syncing\n", "Kernel panic"},
		"no file systems":      {"1..2\nBail out! mount /sys\n", "Bail out! mount /sys"},
	} {
		assert.Contains(t, strings.Join(verdictOf(c.console).faults(2), "\n"), c.fault, name)
	}
}

func TestArchivesAreInTheFormOfTheKernel(t *testing.T) {
	var b bytes.Buffer
	c := cpioWriter{w: &b}
	c.add("a", 0o100755, []byte("hello"))
	require.NoError(t, c.close())
	// Each header has 110 bytes, and it and the content end at a multiple of 4.
	archive := b.String()
	assert.Equal(t, "070701"+"00000001"+"000081ed", archive[:22])
	assert.Equal(t, "00000005", archive[54:62])
	assert.Equal(t, "a\x00hello\x00\x00\x00", archive[110:120])
	assert.Equal(t, "070701", archive[120:126])
	assert.Equal(t, "TRAILER!!!\x00", archive[230:241])
	assert.Zero(t, len(archive)%4)
}
