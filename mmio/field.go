package mmio

import (
	"fmt"
	"math/bits"
	"os"
)

// A BitField is a part of a register's value, such as [Field] makes it. The
// zero BitField is not one.
type BitField[T Width] struct {
	mask  T
	shift uint
}

// Field returns the field that mask has the bits of. A mask without bits, or
// with a gap between them, panics with an error that is [os.ErrInvalid].
//
//	var timeout = mmio.Field[uint64](0xff << 24)
func Field[T Width](mask T) BitField[T] {
	shift := uint(bits.TrailingZeros64(uint64(mask)))
	if ones := mask >> shift; mask == 0 || ones&(ones+1) != 0 {
		panic(fmt.Errorf("mmio: field with a mask of %#x: %w", mask, os.ErrInvalid))
	}
	return BitField[T]{mask, shift}
}

// Get returns the field of v, shifted to the right. It is the kernel's
// FIELD_GET.
func (f BitField[T]) Get(v T) T { return v & f.mask >> f.shift }

// Set returns v with the field replaced by value; with a v of 0 it is the
// kernel's FIELD_PREP. A value that is too large for the field panics with an
// error that is [os.ErrInvalid]: see [BitField.Fits].
func (f BitField[T]) Set(v, value T) T {
	if !f.Fits(value) {
		panic(fmt.Errorf("mmio: value %#x for the field %#x: %w", value, f.mask, os.ErrInvalid))
	}
	return v&^f.mask | value<<f.shift
}

// Fits reports whether the field has room for value. It is the kernel's
// FIELD_FIT.
func (f BitField[T]) Fits(value T) bool { return value <= f.mask>>f.shift }

// BitsSet returns a condition that holds if all bits of mask are set.
func BitsSet[T Width](mask T) func(T) bool {
	return func(v T) bool { return v&mask == mask }
}

// BitsClear returns a condition that holds if no bit of mask is set.
func BitsClear[T Width](mask T) func(T) bool {
	return func(v T) bool { return v&mask == 0 }
}

// Equals returns a condition that holds if the bits of mask are those of
// value. A value with bits outside of mask, for which it could never hold,
// panics with an error that is [os.ErrInvalid].
func Equals[T Width](mask, value T) func(T) bool {
	mustLie(uint64(value), uint64(mask))
	return func(v T) bool { return v&mask == value }
}

// mustLie is a function of its own so that Equals can be inlined, and its
// condition need not be allocated.
func mustLie(value, mask uint64) {
	if value&^mask != 0 {
		panic(fmt.Errorf("mmio: value %#x under a mask of %#x: %w", value, mask, os.ErrInvalid))
	}
}
