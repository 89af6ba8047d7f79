//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mmio

import (
	"os"

	"golang.org/x/sys/unix"
)

// isWritable reports whether f is open for writing. It leaves the file in the
// mode that it is in, which File.Fd would not.
func isWritable(f *os.File) (bool, error) {
	flags, err := onDescriptor(f, func(fd uintptr) (int, error) {
		return unix.FcntlInt(fd, unix.F_GETFL, 0)
	})
	return flags&unix.O_ACCMODE != unix.O_RDONLY, err
}

func mapShared(f *os.File, offset int64, size uintptr, writable bool) (mapping, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	page := uintptr(os.Getpagesize())
	size = (size + page - 1) &^ (page - 1)
	return onDescriptor(f, func(fd uintptr) (mapping, error) {
		base, err := unix.MmapPtr(int(fd), offset, nil, size, prot, unix.MAP_SHARED)
		return mapping{base, size}, err
	})
}

func onDescriptor[T any](f *os.File, do func(fd uintptr) (T, error)) (v T, err error) {
	c, err := f.SyscallConn()
	if err != nil {
		return v, err
	}
	if e := c.Control(func(fd uintptr) { v, err = do(fd) }); e != nil {
		return v, e
	}
	return v, err
}

// replace puts memory of no meaning in the place of the mapping, in one step:
// whoever accesses it meanwhile finds the one or the other. Pages that nobody
// touches take no memory.
func (m mapping) replace() error {
	_, err := unix.MmapPtr(-1, 0, m.base, m.size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED|noReserve)
	return err
}

func (m mapping) unmap() {
	// It fails if the pages are no whole mappings, and there are none to be
	// had in addition: then they stay.
	_ = unix.MunmapPtr(m.base, m.size)
}
