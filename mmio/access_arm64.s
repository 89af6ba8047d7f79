//go:build !purego

#include "textflag.h"

// Options of DMB, which order accesses across the outer shareable domain, where
// the devices are.
#define OSHLD $1 // what was read, before what comes next
#define OSHST $2 // what was written, before what is written next

// func load8(p *uint8) uint8
TEXT ·load8(SB), NOSPLIT, $0-9
	MOVD p+0(FP), R0
	MOVBU (R0), R1
	MOVB R1, ret+8(FP)
	RET

// func load16(p *uint16) uint16
TEXT ·load16(SB), NOSPLIT, $0-10
	MOVD p+0(FP), R0
	MOVHU (R0), R1
	MOVH R1, ret+8(FP)
	RET

// func load32(p *uint32) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU (R0), R1
	MOVW R1, ret+8(FP)
	RET

// func load64(p *uint64) uint64
TEXT ·load64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD (R0), R1
	MOVD R1, ret+8(FP)
	RET

// func load8Ordered(p *uint8) uint8
//
// The branch is never taken. It depends on what was read, so that what follows,
// a reading of the clock for instance, does not begin before that has arrived.
TEXT ·load8Ordered(SB), NOSPLIT, $0-9
	MOVD p+0(FP), R0
	MOVBU (R0), R1
	DMB  OSHLD
	EOR  R1, R1, R2
never:
	CBNZ R2, never
	MOVB R1, ret+8(FP)
	RET

// func load16Ordered(p *uint16) uint16
TEXT ·load16Ordered(SB), NOSPLIT, $0-10
	MOVD p+0(FP), R0
	MOVHU (R0), R1
	DMB  OSHLD
	EOR  R1, R1, R2
never:
	CBNZ R2, never
	MOVH R1, ret+8(FP)
	RET

// func load32Ordered(p *uint32) uint32
TEXT ·load32Ordered(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU (R0), R1
	DMB  OSHLD
	EOR  R1, R1, R2
never:
	CBNZ R2, never
	MOVW R1, ret+8(FP)
	RET

// func load64Ordered(p *uint64) uint64
TEXT ·load64Ordered(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD (R0), R1
	DMB  OSHLD
	EOR  R1, R1, R2
never:
	CBNZ R2, never
	MOVD R1, ret+8(FP)
	RET

// func store8(p *uint8, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-9
	MOVD p+0(FP), R0
	MOVBU v+8(FP), R1
	MOVB R1, (R0)
	RET

// func store16(p *uint16, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-10
	MOVD p+0(FP), R0
	MOVHU v+8(FP), R1
	MOVH R1, (R0)
	RET

// func store32(p *uint32, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	MOVW R1, (R0)
	RET

// func store64(p *uint64, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	MOVD R1, (R0)
	RET

// func store8Ordered(p *uint8, v uint8)
TEXT ·store8Ordered(SB), NOSPLIT, $0-9
	MOVD p+0(FP), R0
	MOVBU v+8(FP), R1
	DMB  OSHST
	MOVB R1, (R0)
	RET

// func store16Ordered(p *uint16, v uint16)
TEXT ·store16Ordered(SB), NOSPLIT, $0-10
	MOVD p+0(FP), R0
	MOVHU v+8(FP), R1
	DMB  OSHST
	MOVH R1, (R0)
	RET

// func store32Ordered(p *uint32, v uint32)
TEXT ·store32Ordered(SB), NOSPLIT, $0-12
	MOVD p+0(FP), R0
	MOVWU v+8(FP), R1
	DMB  OSHST
	MOVW R1, (R0)
	RET

// func store64Ordered(p *uint64, v uint64)
TEXT ·store64Ordered(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	DMB  OSHST
	MOVD R1, (R0)
	RET
