//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/precisewait/wait/mmio"
)

// findPCI returns the directory of the one device with the given ids.
func findPCI(vendor, device string) (string, error) {
	all, err := filepath.Glob("/sys/bus/pci/devices/*")
	if err != nil {
		return "", err
	}
	for _, dir := range all {
		if idOf(dir, "vendor") == vendor && idOf(dir, "device") == device {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no device %s:%s among %d", vendor, device, len(all))
}

func idOf(dir, name string) string {
	id, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(id))
}

// mapBAR takes a device from its driver, if it has one, enables it, and maps
// the beginning of its first region of memory.
func mapBAR(vendor, device string, size int) (*mmio.Region, error) {
	dir, err := findPCI(vendor, device)
	if err != nil {
		return nil, err
	}
	unbind := filepath.Join(dir, "driver", "unbind")
	if err := os.WriteFile(unbind, []byte(filepath.Base(dir)), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "enable"), []byte("1"), 0); err != nil {
		return nil, err
	}
	return mmio.Map(filepath.Join(dir, "resource0"), 0, size)
}

// withBAR makes a check of one that is given the mapped device.
func withBAR(vendor, device string, size int, f func(bar *mmio.Region) (string, error)) func() (string, error) {
	return func() (string, error) {
		bar, err := mapBAR(vendor, device, size)
		if err != nil {
			return "", err
		}
		defer bar.Close()
		return f(bar)
	}
}
