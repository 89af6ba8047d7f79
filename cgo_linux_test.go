//go:build cgo

package wait_test

// withCgo is whether these tests, of which some packages use it, contain cgo.
const withCgo = true
