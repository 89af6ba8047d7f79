//go:build (amd64 || arm64) && !purego

package self

// Goroutine returns a number that is the calling goroutine's as long as it
// runs: the address of what the runtime keeps about it, which is not looked at.
// A later goroutine may have the same one. It takes a nanosecond.
func Goroutine() uintptr
