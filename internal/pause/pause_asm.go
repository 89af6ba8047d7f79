//go:build (amd64 || arm64) && !purego

package pause

// Core gives the core's resources to its sibling, and saves power, for a few
// to some hundred nanoseconds: PAUSE on amd64, ISB on arm64. How long that is
// differs tenfold between processors, so it is never a measure of time.
func Core()
