//go:build !purego

package mmio

// Accesses in assembly, each a single one. The processor keeps accesses to
// uncached memory in the order of the program, and so does the compiler across
// calls that it knows nothing of: the ordered forms need nothing more.

//go:noescape
func load8(p *uint8) uint8

//go:noescape
func load16(p *uint16) uint16

//go:noescape
func load32(p *uint32) uint32

//go:noescape
func load64(p *uint64) uint64

//go:noescape
func store8(p *uint8, v uint8)

//go:noescape
func store16(p *uint16, v uint16)

//go:noescape
func store32(p *uint32, v uint32)

//go:noescape
func store64(p *uint64, v uint64)

func load8Ordered(p *uint8) uint8    { return load8(p) }
func load16Ordered(p *uint16) uint16 { return load16(p) }
func load32Ordered(p *uint32) uint32 { return load32(p) }
func load64Ordered(p *uint64) uint64 { return load64(p) }

func store8Ordered(p *uint8, v uint8)    { store8(p, v) }
func store16Ordered(p *uint16, v uint16) { store16(p, v) }
func store32Ordered(p *uint32, v uint32) { store32(p, v) }
func store64Ordered(p *uint64, v uint64) { store64(p, v) }
