// Package pause holds what a spin has to tell the processor.
package pause
