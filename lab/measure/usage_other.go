//go:build !unix

package measure

import "time"

// A usage is what the process has used so far.
type usage struct {
	cpu      time.Duration
	switches int64
}

// readUsage reports that it is not known.
func readUsage() (usage, bool) { return usage{}, false }
