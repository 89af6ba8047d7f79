package wait_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// runChild runs the named child in a process of its own, with more variables
// in its environment, and fails if it does.
func runChild(t testing.TB, name string, variables ...string) string {
	t.Helper()
	if runtime.GOOS == "js" {
		t.Skip("no processes here")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), childVar+"="+name), variables...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}
