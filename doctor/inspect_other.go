//go:build !linux

package doctor

import "runtime"

// Inspect reports on this host. On Linux it reads what bears on a wait; here,
// where none of it exists, every finding is [Unknown].
func Inspect() Report {
	r := Report{Host: Host{
		System:       runtime.GOOS,
		Architecture: runtime.GOARCH,
		GOMAXPROCS:   runtime.GOMAXPROCS(0),
		Go:           runtime.Version(),
	}}
	for _, s := range subjects {
		r.Findings = append(r.Findings, s.unknown("read on Linux only, and this is "+runtime.GOOS))
	}
	return r
}
