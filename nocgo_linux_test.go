//go:build !cgo

package wait_test

const withCgo = false
