//go:build !purego

package mmio

// Accesses in assembly, each a single one. The ordered forms carry the
// barriers of the kernel's readl and writel: a load is complete before any
// later access begins, memory that was written before a store is seen by the
// device before the store.

//go:noescape
func load8(p *uint8) uint8

//go:noescape
func load16(p *uint16) uint16

//go:noescape
func load32(p *uint32) uint32

//go:noescape
func load64(p *uint64) uint64

//go:noescape
func load8Ordered(p *uint8) uint8

//go:noescape
func load16Ordered(p *uint16) uint16

//go:noescape
func load32Ordered(p *uint32) uint32

//go:noescape
func load64Ordered(p *uint64) uint64

//go:noescape
func store8(p *uint8, v uint8)

//go:noescape
func store16(p *uint16, v uint16)

//go:noescape
func store32(p *uint32, v uint32)

//go:noescape
func store64(p *uint64, v uint64)

//go:noescape
func store8Ordered(p *uint8, v uint8)

//go:noescape
func store16Ordered(p *uint16, v uint16)

//go:noescape
func store32Ordered(p *uint32, v uint32)

//go:noescape
func store64Ordered(p *uint64, v uint64)
