package wait

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStepAsideSleeps(t *testing.T) {
	interrupted := 0 // by a signal
	for range 20 {
		start := time.Now()
		stepAside()
		if time.Since(start) < 25*time.Microsecond {
			interrupted++
		}
	}
	assert.Less(t, interrupted, 5)
}
