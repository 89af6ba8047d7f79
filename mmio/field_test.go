package mmio_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/mmio"
)

func TestFieldIsTakenOutAndPutIn(t *testing.T) {
	for _, c := range []struct {
		name                   string
		mask, v, field, to, is uint32
	}{
		{"lowest bit", 1, 0xfffffff1, 1, 0, 0xfffffff0},
		{"highest bit", 1 << 31, 0x7fffffff, 0, 1, 0xffffffff},
		{"in the middle", 0xff00, 0x12345678, 0x56, 0xab, 0x1234ab78},
		{"to the top", 0xfff00000, 0x12345678, 0x123, 0xfff, 0xfff45678},
		{"whole register", 0xffffffff, 0x12345678, 0x12345678, 5, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mmio.Field(c.mask)
			assert.Equal(t, c.field, f.Get(c.v))
			assert.Equal(t, c.is, f.Set(c.v, c.to))
			assert.Equal(t, c.to, f.Get(f.Set(0, c.to)))
		})
	}
	assert.Equal(t, uint8(3), mmio.Field[uint8](0xc0).Get(0xff))
	assert.Equal(t, uint16(0x8001), mmio.Field[uint16](0x8000).Set(1, 1))
	assert.Equal(t, uint64(1)<<63, mmio.Field[uint64](1<<63).Set(0, 1))
	assert.Equal(t, ^uint64(0), mmio.Field(^uint64(0)).Get(^uint64(0)))
}

func TestFieldRefusesMasksThatAreNone(t *testing.T) {
	for _, mask := range []uint64{0, 5, 0xf0f, 1<<63 | 1, ^uint64(0) - 2} {
		err := failure(func() { mmio.Field(mask) })
		assert.ErrorIs(t, err, os.ErrInvalid, "%#x", mask)
	}
	assert.EqualError(t, failure(func() { mmio.Field[uint8](0x90) }), "mmio: field with a mask of 0x90: invalid argument")
}

func TestFieldRefusesValuesThatAreTooLarge(t *testing.T) {
	f := mmio.Field[uint32](0x70)
	assert.True(t, f.Fits(7))
	assert.False(t, f.Fits(8))
	assert.EqualError(t, failure(func() { f.Set(0, 8) }), "mmio: value 0x8 for the field 0x70: invalid argument")
	assert.ErrorIs(t, failure(func() { f.Set(0, 1<<31) }), os.ErrInvalid)
	whole := mmio.Field[uint8](0xff)
	assert.True(t, whole.Fits(0xff))
	assert.ErrorIs(t, failure(func() { new(mmio.BitField[uint8]).Set(0, 1) }), os.ErrInvalid)
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name string
		cond func(uint16) bool
		v    uint16
		want bool
	}{
		{"all set", mmio.BitsSet[uint16](0x8001), 0x9009, true},
		{"one not set", mmio.BitsSet[uint16](0x8001), 0x8000, false},
		{"all clear", mmio.BitsClear[uint16](0x8001), 0x7ffe, true},
		{"one not clear", mmio.BitsClear[uint16](0x8001), 0x8000, false},
		{"equal", mmio.Equals[uint16](0xf0, 0x30), 0xff3f, true},
		{"not equal", mmio.Equals[uint16](0xf0, 0x30), 0x70, false},
		{"equal to none", mmio.Equals[uint16](0xf0, 0), 0xff0f, true},
		{"no bits set", mmio.BitsSet[uint16](0), 0, true},
		{"no bits clear", mmio.BitsClear[uint16](0), 0xffff, true},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, c.cond(c.v)) })
	}
}

func TestEqualsRefusesAValueOutsideOfItsMask(t *testing.T) {
	err := failure(func() { mmio.Equals[uint32](0xf0, 0x31) })
	assert.ErrorIs(t, err, os.ErrInvalid)
}

func FuzzField(f *testing.F) {
	f.Add(uint64(0xff00), uint64(0x1234), uint64(5))
	f.Add(^uint64(0), uint64(1), ^uint64(0))
	f.Add(uint64(1)<<63, uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, mask, v, value uint64) {
		var field mmio.BitField[uint64]
		if err := failure(func() { field = mmio.Field(mask) }); err != nil {
			require.ErrorIs(t, err, os.ErrInvalid)
			return
		}
		var set uint64
		if err := failure(func() { set = field.Set(v, value) }); err != nil {
			require.ErrorIs(t, err, os.ErrInvalid)
			require.False(t, field.Fits(value))
			return
		}
		require.Equal(t, value, field.Get(set))
		require.Equal(t, v&^mask, set&^mask)
	})
}
