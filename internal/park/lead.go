package park

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// maxLead bounds the lead, and with it how long a sleeper may spin.
const maxLead = int64(50 * time.Microsecond)

// Leads are the leads of sleeps by the binary logarithm of their length: the
// longer the sleep, the slower the wake-up. The zero value knows none yet.
type Leads [64]atomic.Int64

// Of returns how long before its deadline the kernel's timer of a sleep of
// the given length is to expire. A sleep that is hardly longer than a wake-up
// still sleeps for half of its time.
func (l *Leads) Of(length int64) int64 {
	return min(l[bits.Len64(uint64(length))].Load(), length/2)
}

// Learn takes notice of how long after the expiry a sleeper of the given
// length ran. Of two sleepers that learn at once one may be lost.
func (l *Leads) Learn(length, took int64) {
	lead := &l[bits.Len64(uint64(length))]
	lead.Store(nextLead(lead.Load(), took))
}

// nextLead returns the lead after a wake-up that took so long from the
// timer's expiry. The lead goes down quickly and up slowly, so it stays near
// the quickest wake-ups, and no single slow one but the first moves it by
// more than 1 us.
func nextLead(lead, took int64) int64 {
	switch {
	case lead == 0:
		lead = took / 2
	case took < lead:
		lead -= (lead - took) / 2
	default:
		lead += min((took-lead)/32, 1000)
	}
	return min(lead, maxLead)
}
