//go:build !(amd64 || arm64) || purego

package pause

// Core does nothing: the processor has no such hint, or purego rules it out.
func Core() {}

// Callers does nothing.
func Callers() {}
