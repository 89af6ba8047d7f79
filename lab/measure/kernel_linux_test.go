package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait"
)

func TestMethodsHaveTheSlackThatTheyName(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"nanosleep": defaultSlack, "nanosleep:1ns": 1, "clock_nanosleep": defaultSlack, "clock_nanosleep:1ns": 1,
	} {
		w, err := method(t, name).open(time.Millisecond)
		require.NoError(t, err)
		slack, err := wait.TimerSlack()
		require.NoError(t, err)
		assert.Equal(t, want, slack, name)
		require.NoError(t, w.close())
	}
}
