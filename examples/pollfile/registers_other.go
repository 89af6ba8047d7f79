//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"errors"
	"fmt"
	"os"
)

var errNoMmap = fmt.Errorf("needs mmap, which package syscall does not have here: %w", errors.ErrUnsupported)

func createRegisters() (*os.File, error) { return nil, errNoMmap }

func mapRegisters(*os.File) (*registers, func() error, error) { return nil, nil, errNoMmap }
