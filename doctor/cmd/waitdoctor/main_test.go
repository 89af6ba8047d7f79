package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/precisewait/wait/doctor"
)

func TestTextAndJSON(t *testing.T) {
	var text, asJSON, errOut bytes.Buffer
	require.Equal(t, 0, run(nil, &text, &errOut))
	require.Equal(t, 0, run([]string{"-json"}, &asJSON, &errOut))
	assert.Empty(t, errOut.String())
	var r doctor.Report
	require.NoError(t, json.Unmarshal(asJSON.Bytes(), &r))
	assert.NotEmpty(t, r.Findings)
	for _, f := range r.Findings {
		assert.Contains(t, text.String(), "\n"+f.Name)
	}
}

func TestCommandLineThatIsNotUnderstood(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-fix"}, "not defined: -fix"},
		{[]string{"-json=perhaps"}, "invalid boolean value"},
		{[]string{"all"}, `unexpected argument "all"`},
	} {
		var out, errOut bytes.Buffer
		assert.Equal(t, 2, run(c.args, &out, &errOut), c.args)
		assert.Contains(t, errOut.String(), c.says)
		assert.Contains(t, errOut.String(), "-json")
		assert.Empty(t, out.String())
	}
}

func TestHelpIsNoError(t *testing.T) {
	var out, errOut bytes.Buffer
	assert.Equal(t, 0, run([]string{"-h"}, &out, &errOut))
	assert.Contains(t, errOut.String(), "-json")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReportThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{nil, {"-json"}} {
		var errOut bytes.Buffer
		assert.Equal(t, 1, run(args, fullDisk{}, &errOut))
		assert.Equal(t, "waitdoctor: no space left\n", errOut.String())
	}
}
