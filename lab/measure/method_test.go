package measure

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func names(methods []Method) (all []string) {
	for _, m := range methods {
		all = append(all, m.Name)
	}
	return all
}

func TestMethodsByNameAndGroup(t *testing.T) {
	for _, c := range []struct {
		list, want []string
	}{
		{[]string{"Sleep"}, []string{"Sleep"}},
		{[]string{"go"}, []string{"time.Sleep", "time.Ticker"}},
		{[]string{"time.Ticker", "go", "time.Sleep"}, []string{"time.Ticker", "time.Sleep"}},
		{[]string{"margin=50us", "Spin"}, []string{"margin=50µs", "Spin"}},
		{[]string{"all"}, names(Methods())},
	} {
		got, err := ParseMethods(c.list)
		require.NoError(t, err, c.list)
		assert.Equal(t, c.want, names(got), c.list)
	}
}

func TestMethodsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		list []string
		says string
	}{
		{[]string{"usleep"}, `unknown method "usleep"; there are select`},
		{[]string{""}, "unknown method"},
		{nil, "no method is named"},
		{[]string{"margin=0s"}, "above zero"},
		{[]string{"margin=-1us"}, "above zero"},
		{[]string{"margin=soon"}, "must be a duration"},
	} {
		_, err := ParseMethods(c.list)
		assert.ErrorContains(t, err, c.says, c.list)
	}
}

func TestNoMethodIsEarly(t *testing.T) {
	for _, m := range append(Methods(), Margin(50*time.Microsecond)) {
		t.Run(m.Name, func(t *testing.T) {
			turns, err := m.Open(t.Context(), 300*time.Microsecond)
			if err != nil {
				assert.NotEqual(t, "linux", runtime.GOOS, err)
				return
			}
			taken, cpu, err := turns.Take(t.Context(), make([]time.Duration, 20))
			require.NoError(t, errors.Join(err, turns.Close()))
			assert.Len(t, taken, 20)
			for _, late := range taken {
				assert.GreaterOrEqual(t, late, time.Duration(0))
			}
			assert.GreaterOrEqual(t, cpu, time.Duration(0))
		})
	}
}
