//go:build !linux

package wait_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait"
)

func TestThreadOptionsAreUnsupported(t *testing.T) {
	for _, o := range []wait.ThreadOption{
		wait.OnCPU(0), wait.RealTime(1), wait.LockMemory(), wait.CPULatency(0), wait.OwnProcessor(), wait.ShortSlice(),
	} {
		_, err := wait.LockThread(o)
		assert.ErrorIs(t, err, errors.ErrUnsupported)
	}
}
