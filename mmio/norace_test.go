//go:build !race

package mmio_test

const underRace = false
