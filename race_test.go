//go:build race

package wait_test

// underRace says that the race detector is on, which knows no more than 8128
// goroutines and has allocations of its own.
const underRace = true
