// Package pause tells the processor that the program is spinning.
package pause
