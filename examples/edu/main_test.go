//go:build unix

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// device makes a directory of devices with one whose registers are a file:
// it computes nothing, so a number is its own factorial.
func device(t *testing.T, vendor, id string, status uint32) (devices string) {
	devices = t.TempDir()
	dir := filepath.Join(devices, "0000:00:04.0")
	require.NoError(t, os.Mkdir(dir, 0o755))
	registers := make([]byte, 4096)
	binary.LittleEndian.PutUint32(registers, 0x010000ed)
	binary.LittleEndian.PutUint32(registers[regStatus:], status)
	for name, content := range map[string]string{
		"vendor": vendor + "\n", "device": id + "\n", "enable": "0\n", "resource0": string(registers),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return devices
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		devices string
		says    string
		fails   string
	}{
		"done":         {device(t, "0x1234", "0x11e8", 0), "0000:00:04.0: identification 0x010000ed\n7! = 7 (modulo 2^32)\n", ""},
		"too slow":     {device(t, "0x1234", "0x11e8", statusComputing), "0000:00:04.0: identification 0x010000ed\n", "7! is not done after 2ms"},
		"unplugged":    {device(t, "0x1234", "0x11e8", 1<<32-1), "0000:00:04.0: identification 0x010000ed\n", "unplugged"},
		"another":      {device(t, "0x8086", "0x11e8", 0), "there is no edu device here; test/vm/run boots a machine that has one\n", ""},
		"no PCI":       {filepath.Join(t.TempDir(), "none"), "there is no edu device here; test/vm/run boots a machine that has one\n", ""},
		"not readable": {os.Args[0], "", "not a directory"},
	} {
		var out strings.Builder
		err := run(&out, c.devices, 7, 2*time.Millisecond)
		assert.Equal(t, c.says, out.String(), name)
		if c.fails == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.fails, name)
		}
	}
}
