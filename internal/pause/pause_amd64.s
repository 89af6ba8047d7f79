//go:build !purego

#include "textflag.h"

// func Core()
TEXT ·Core(SB), NOSPLIT, $0-0
	PAUSE
	RET

// func Callers()
TEXT ·Callers(SB), NOSPLIT, $0-0
	MOVQ BP, AX
	MOVQ $5, CX
next:
	TESTQ AX, AX
	JZ   done
	MOVQ 8(AX), BX
	PREFETCHT0 (BX)
	PREFETCHT0 64(BX)
	PREFETCHT0 128(BX)
	MOVQ AX, DX
	MOVQ (AX), AX
	MOVQ AX, BX
	SUBQ DX, BX
	CMPQ BX, $65536
	JHI  done
	DECQ CX
	JNZ  next
done:
	RET
