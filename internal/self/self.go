// Package self tells goroutines apart.
package self
