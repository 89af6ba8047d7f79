//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package mmio

import "os"

const noReserve = 0

func ofUnknownSize(*os.File, os.FileInfo) bool { return false }
