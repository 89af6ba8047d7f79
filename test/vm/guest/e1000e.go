//go:build linux

package main

import (
	"fmt"
	"time"

	"github.com/precisewait/wait"
	"github.com/precisewait/wait/mmio"
)

// Intel's 82574L: its data sheet, section 10.2.2.4, EEPROM Read Register.
const (
	e1000eVendor, e1000eDevice = "0x8086", "0x10d3"
	e1000eSize                 = 4096

	e1000eEERD = 0x14

	eerdStart = 1 << 0
	eerdDone  = 1 << 1
)

var (
	eerdAddress = mmio.Field[uint32](0x3fff << 2) // of a word
	eerdData    = mmio.Field[uint32](0xffff << 16)
)

func e1000eChecks() []check {
	return []check{{"e1000e: EEPROM", withBAR(e1000eVendor, e1000eDevice, e1000eSize, readEEPROM)}}
}

// readWord reads a word of the EEPROM.
func readWord(bar *mmio.Region, address uint32, polls *int) (uint16, error) {
	eerd := mmio.MustAt[uint32](bar, e1000eEERD)
	mmio.Writel(eerd, eerdAddress.Set(eerdStart, address))
	v, err := mmio.ReadlPollTimeoutAtomic(eerd, mmio.BitsSet[uint32](eerdDone),
		5*time.Microsecond, 100*time.Millisecond, mmio.AllOnesGone(), wait.OnPoll(func() { *polls++ }))
	if err != nil {
		return 0, fmt.Errorf("word %#x: EERD %#x: %w", address, v, err)
	}
	if eerdAddress.Get(v) != address {
		return 0, fmt.Errorf("word %#x: EERD %#x", address, v)
	}
	return uint16(eerdData.Get(v)), nil
}

// readEEPROM reads all words, which begin with the address that test/vm gave
// the card, and whose sum the data sheet says.
func readEEPROM(bar *mmio.Region) (string, error) {
	const (
		words = 0x40
		want  = 0xbaba
	)
	var station []byte
	sum, polls := uint16(0), 0
	for i := range uint32(words) {
		w, err := readWord(bar, i, &polls)
		if err != nil {
			return "", err
		}
		if i < 3 {
			station = append(station, byte(w), byte(w>>8))
		}
		sum += w
	}
	if fmt.Sprintf("%x", station) != "525400a1b2c3" || sum != want {
		return "", fmt.Errorf("address % x, sum %#x", station, sum)
	}
	return fmt.Sprintf("address % x, sum of %d words %#x, %d looks in vain", station, words, sum, polls), nil
}
