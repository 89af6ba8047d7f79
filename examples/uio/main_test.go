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

// host makes a host with one device, whose mapping 1 has a register of the
// given value.
func host(t *testing.T, value uint32) (root string) {
	root = t.TempDir()
	page := os.Getpagesize()
	registers := make([]byte, 2*page)
	binary.LittleEndian.PutUint32(registers[page+0x20:], value)
	for name, content := range map[string]string{
		"sys/class/uio/uio0/name":           "frame grabber\n",
		"sys/class/uio/uio0/maps/map1/size": "0x0000000000000100\n",
		"sys/class/uio/uio0/maps/map1/addr": "0x00000000febf1000\n",
		"sys/class/uio/uio0/maps/map2/size": "much\n",
		"dev/uio0":                          string(registers),
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return root
}

func TestRun(t *testing.T) {
	at := func(change func(*request)) request {
		r := request{device: "uio0", number: 1, offset: 0x20, mask: 0xff00, value: 0x300, sleep: time.Microsecond, timeout: time.Millisecond}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		root  string
		r     request
		says  string
		fails string
	}{
		"the devices": {host(t, 0), request{}, "uio0: frame grabber\n  map1: 0x0000000000000100 bytes at 0x00000000febf1000\n  map2: much bytes at unknown\n", ""},
		"no devices":  {t.TempDir(), request{}, "there are no UIO devices here (/sys/class/uio)\n", ""},
		"it holds":    {host(t, 0x12345301), at(func(r *request) { r.value = 0x5300 }), "0x12345301\n", ""},
		"it does not": {host(t, 0x12340001), at(func(*request) {}), "", "looks it is still 0x12340001"},
		"no device":   {host(t, 0), at(func(r *request) { r.device = "uio7" }), "", "no mapping 1 of uio7"},
		"no mapping":  {host(t, 0), at(func(r *request) { r.number = 3 }), "", "no mapping 3 of uio0"},
		"bad size":    {host(t, 0), at(func(r *request) { r.number = 2 }), "", "size of mapping 2 of uio0"},
		"misaligned":  {host(t, 0), at(func(r *request) { r.offset = 0x21 }), "", "misaligned"},
		"outside":     {host(t, 0), at(func(r *request) { r.offset = 0x100 }), "", "offset 0x100"},
	} {
		var out strings.Builder
		err := run(&out, c.root, c.r)
		assert.Equal(t, c.says, out.String(), name)
		if c.fails == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.fails, name)
		}
	}
}
