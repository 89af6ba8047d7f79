package mmio

import (
	"os"

	"golang.org/x/sys/unix"
)

// noReserve has memory that nobody touches not count as committed.
const noReserve = unix.MAP_NORESERVE

// ofUnknownSize reports whether f, a regular file, is one whose size does not
// tell what can be mapped: those of /proc/bus/pci are as large as the
// configuration space and map the device's memory, and some of /sys have no
// size.
func ofUnknownSize(f *os.File, info os.FileInfo) bool {
	system, err := onDescriptor(f, func(fd uintptr) (int64, error) {
		var s unix.Statfs_t
		err := unix.Fstatfs(int(fd), &s)
		return int64(s.Type), err
	})
	return err == nil && (system == unix.PROC_SUPER_MAGIC || system == unix.SYSFS_MAGIC && info.Size() == 0)
}
