//go:build !(amd64 || arm64) || purego

package mmio

import (
	"runtime"
	"sync/atomic"
)

// plain32 and plain64 say that a plain access is better than one of
// sync/atomic: where a store of sync/atomic is an exchange, which reads the
// register too, and on riscv64 a load a reservation, which devices refuse. On
// 386 a plain access of 64 bits would be two, and sync/atomic makes one move of
// it.
const (
	plain64 = runtime.GOARCH == "amd64" || runtime.GOARCH == "loong64" || runtime.GOARCH == "riscv64"
	plain32 = runtime.GOARCH == "386" || plain64
)

func load32Ordered(p *uint32) uint32 {
	if plain32 {
		return plainLoad32(p)
	}
	return atomic.LoadUint32(p)
}

func store32Ordered(p *uint32, v uint32) {
	if plain32 {
		plainStore32(p, v)
	} else {
		atomic.StoreUint32(p, v)
	}
}

func load64Ordered(p *uint64) uint64 {
	if plain64 {
		return plainLoad64(p)
	}
	return atomic.LoadUint64(p)
}

func store64Ordered(p *uint64, v uint64) {
	if plain64 {
		plainStore64(p, v)
	} else {
		atomic.StoreUint64(p, v)
	}
}

func load8Ordered(p *uint8) uint8    { return load8(p) }
func load16Ordered(p *uint16) uint16 { return load16(p) }
func load32(p *uint32) uint32        { return load32Ordered(p) }
func load64(p *uint64) uint64        { return load64Ordered(p) }

func store8Ordered(p *uint8, v uint8)    { store8(p, v) }
func store16Ordered(p *uint16, v uint16) { store16(p, v) }
func store32(p *uint32, v uint32)        { store32Ordered(p, v) }
func store64(p *uint64, v uint64)        { store64Ordered(p, v) }

// The compiler makes one access of each of these, because it does not see who
// calls them. The race detector has nothing to say about devices.

//go:noinline
//go:norace
func load8(p *uint8) uint8 { return *p }

//go:noinline
//go:norace
func load16(p *uint16) uint16 { return *p }

//go:noinline
//go:norace
func plainLoad32(p *uint32) uint32 { return *p }

//go:noinline
//go:norace
func plainLoad64(p *uint64) uint64 { return *p }

//go:noinline
//go:norace
func store8(p *uint8, v uint8) { *p = v }

//go:noinline
//go:norace
func store16(p *uint16, v uint16) { *p = v }

//go:noinline
//go:norace
func plainStore32(p *uint32, v uint32) { *p = v }

//go:noinline
//go:norace
func plainStore64(p *uint64, v uint64) { *p = v }
