//go:build !purego

#include "textflag.h"

// func Core()
//
// YIELD is a no-op on every core without simultaneous threads; ISB stalls the
// pipeline for some ten nanoseconds, which is what a spin wants.
TEXT ·Core(SB), NOSPLIT, $0-0
	ISB $15
	RET
