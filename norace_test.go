//go:build !race

package wait_test

const underRace = false
