//go:build (amd64 || arm64) && !purego

package pause

// Core gives the core's resources to its sibling, and saves power, for a few
// to some hundred nanoseconds: PAUSE on amd64, ISB on arm64. How long that is
// differs tenfold between processors, so it is never a measure of time.
func Core()

// Callers has the processor fetch the code to which the next five callers
// return, and the frames on their stack, into its caches: after a long sleep
// they are no longer there, and who comes back from a spin has no time to wait
// for them. It follows the frame pointers, which Go code keeps, from each frame
// to one at most 64 KB further up, and so never into C code's, which keeps
// none: between the two lie more than five callers.
func Callers()
