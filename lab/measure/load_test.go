package measure

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// As the command that the load of other processes runs, the tests burn.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "burn" {
		Burn(os.Stdin)
		return
	}
	os.Exit(m.Run())
}

func TestEachLoadStartsAndStops(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, name := range []string{"none", "cooperative", "hog", "gc", "process"} {
		load, err := ParseLoad(name)
		require.NoError(t, err)
		stop, err := load.Start(t.Context(), []string{self, "burn"})
		require.NoError(t, err, name)
		if before, known := readUsage(); known && load.InProcess() {
			assert.Eventually(t, func() bool {
				after, _ := readUsage()
				return after.cpu-before.cpu > 10*time.Millisecond
			}, time.Minute, 10*time.Millisecond, name)
		}
		require.NoError(t, stop(), name)
	}
}

func TestLoadThatIsNone(t *testing.T) {
	_, err := ParseLoad("heavy")
	assert.ErrorContains(t, err, `unknown load "heavy"; there are none cooperative hog gc process`)
}

func TestLoadThatCannotStart(t *testing.T) {
	_, err := Process.Start(t.Context(), []string{"/nowhere/waitlab"})
	assert.ErrorContains(t, err, "start the load")
}

func TestBurningEndsWithItsInput(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, "burn")
	input, err := c.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	require.NoError(t, input.Close())
	assert.NoError(t, c.Wait())
}
