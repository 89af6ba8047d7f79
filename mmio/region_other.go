//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package mmio

import (
	"errors"
	"os"
)

func ofUnknownSize(*os.File, os.FileInfo) bool { return false }

func isWritable(*os.File) (bool, error) { return true, nil }

func mapShared(*os.File, int64, uintptr, bool) (mapping, error) {
	return mapping{}, errors.ErrUnsupported
}

func (m mapping) replace() error { return nil }

func (m mapping) unmap() {}
