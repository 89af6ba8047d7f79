//go:build !purego

#include "textflag.h"

// func Core()
TEXT ·Core(SB), NOSPLIT, $0-0
	PAUSE
	RET

// func Callers()
TEXT ·Callers(SB), NOSPLIT, $0-0
	MOVQ BP, AX
	MOVQ $6, CX
next:
	TESTQ AX, AX
	JZ   done
	MOVQ 8(AX), BX
	PREFETCHT0 (BX)
	PREFETCHT0 64(BX)
	PREFETCHT0 128(BX)
	MOVQ (AX), AX
	DECQ CX
	JNZ  next
done:
	RET
