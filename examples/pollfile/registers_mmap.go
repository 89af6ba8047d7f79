//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// createRegisters returns a new file that holds registers, all zero. Its name
// is gone already: the file ends with the last process that has it open,
// however that process ends.
func createRegisters() (*os.File, error) {
	f, err := os.CreateTemp("", "pollfile-*")
	if err != nil {
		return nil, err
	}
	err = errors.Join(os.Remove(f.Name()), f.Truncate(int64(unsafe.Sizeof(registers{}))))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// mapRegisters maps the registers that f holds.
func mapRegisters(f *os.File) (r *registers, unmap func() error, err error) {
	mem, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(registers{})),
		syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return (*registers)(unsafe.Pointer(unsafe.SliceData(mem))), func() error { return syscall.Munmap(mem) }, nil
}
