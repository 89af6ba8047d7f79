//go:build !linux

package doctor_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/precisewait/wait/doctor"
)

func TestInspectIsUnknownElsewhere(t *testing.T) {
	for _, f := range doctor.Inspect().Findings {
		assert.Equal(t, doctor.Unknown, f.Verdict, f.Name)
		assert.Contains(t, f.Why, "Linux only", f.Name)
	}
}
