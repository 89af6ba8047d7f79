//go:build linux

package main

import (
	"fmt"
	"io"
)

// A cpioWriter writes an archive in the one format that the kernel takes for
// an initial file system: "newc", of the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst.
type cpioWriter struct {
	w   io.Writer
	ino int
	err error
}

// add appends a file, or a directory if mode says so.
func (c *cpioWriter) add(name string, mode uint32, content []byte) {
	c.ino++
	c.writef("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		c.ino, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
	c.pad(110 + len(name) + 1)
	c.write(content)
	c.pad(len(content))
}

// close ends the archive.
func (c *cpioWriter) close() error {
	c.add("TRAILER!!!", 0, nil)
	return c.err
}

func (c *cpioWriter) writef(format string, args ...any) { c.write(fmt.Appendf(nil, format, args...)) }
func (c *cpioWriter) pad(written int)                   { c.write(make([]byte, -written&3)) }

func (c *cpioWriter) write(b []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(b)
	}
}
