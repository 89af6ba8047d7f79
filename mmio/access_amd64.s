//go:build !purego

#include "textflag.h"

// func load8(p *uint8) uint8
TEXT ·load8(SB), NOSPLIT, $0-9
	MOVQ p+0(FP), AX
	MOVBLZX (AX), AX
	MOVB AX, ret+8(FP)
	RET

// func load16(p *uint16) uint16
TEXT ·load16(SB), NOSPLIT, $0-10
	MOVQ p+0(FP), AX
	MOVWLZX (AX), AX
	MOVW AX, ret+8(FP)
	RET

// func load32(p *uint32) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL (AX), AX
	MOVL AX, ret+8(FP)
	RET

// func load64(p *uint64) uint64
TEXT ·load64(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ (AX), AX
	MOVQ AX, ret+8(FP)
	RET

// func store8(p *uint8, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-9
	MOVQ p+0(FP), AX
	MOVBLZX v+8(FP), CX
	MOVB CX, (AX)
	RET

// func store16(p *uint16, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-10
	MOVQ p+0(FP), AX
	MOVWLZX v+8(FP), CX
	MOVW CX, (AX)
	RET

// func store32(p *uint32, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET

// func store64(p *uint64, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ CX, (AX)
	RET
