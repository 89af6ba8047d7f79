//go:build !purego

#include "textflag.h"

// func Core()
//
// YIELD is a no-op on every core without simultaneous threads; ISB stalls the
// pipeline for some ten nanoseconds, which is what a spin wants.
TEXT ·Core(SB), NOSPLIT, $0-0
	ISB $15
	RET

// func Callers()
TEXT ·Callers(SB), NOSPLIT, $0-0
	MOVD R29, R0
	MOVD $5, R1
next:
	CBZ  R0, done
	MOVD 8(R0), R2
	PRFM (R2), PLDL2KEEP
	PRFM 64(R2), PLDL2KEEP
	PRFM 128(R2), PLDL2KEEP
	MOVD R0, R3
	MOVD (R0), R0
	SUB  R3, R0, R2
	CMP  $65536, R2
	BHI  done
	SUB  $1, R1
	CBNZ R1, next
done:
	RET
