//go:build !linux

package wait_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait"
)

func TestSlackIsUnsupportedHere(t *testing.T) {
	_, err := wait.TimerSlack()
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	restore, err := wait.SetTimerSlack(time.Microsecond)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.Nil(t, restore)
	assert.ErrorIs(t, wait.SetProcessTimerSlack(time.Microsecond), errors.ErrUnsupported)
}
