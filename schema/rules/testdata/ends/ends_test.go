// Package ends has tests that end in every way. Some are meant to fail.
package ends

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

func TestPasses(t *testing.T) { rules.Covers(t, "C-01", "C-02") }

func TestParts(t *testing.T) {
	t.Run("passes", func(t *testing.T) { rules.Covers(t, "C-03") })
	t.Run("fails", func(t *testing.T) {
		rules.Covers(t, "C-04")
		t.Error("as it is meant to")
	})
}

func TestFailsInAPart(t *testing.T) {
	rules.Covers(t, "C-05")
	t.Run("part", func(t *testing.T) { t.Error("as it is meant to") })
}

func TestParallel(t *testing.T) {
	rules.Covers(t, "C-06")
	t.Parallel()
}

func TestFailsInParallel(t *testing.T) {
	rules.Covers(t, "C-07")
	t.Run("part", func(t *testing.T) {
		t.Parallel()
		t.Error("as it is meant to")
	})
}

func TestFailsAtItsEnd(t *testing.T) {
	rules.Covers(t, "C-08")
	t.Cleanup(func() { t.Error("as it is meant to") })
}

func TestIsSkipped(t *testing.T) {
	rules.Covers(t, "C-09")
	t.SkipNow() // a skip is what the test of Covers wants to see: nothing is missing
}

func TestUnknown(t *testing.T) { rules.Covers(t, "C-999") }

func TestNinth(t *testing.T) {
	rules.Covers(t, "C-11", "C-12", "C-13", "C-14")
	rules.Covers(t, "C-15", "C-16", "C-17", "C-18", "C-19")
}
