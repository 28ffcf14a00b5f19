//go:build long

package main

import (
	"strings"
	"testing"
)

// TestLongScripts runs the scripts that build programs, and those that run the command twenty times.
func TestLongScripts(t *testing.T) { runScripts(t, "testdata/long") }

// TestCheckout compares every generated file of this module with what the line of its package makes. What
// released versions wrote is theirs.
func TestCheckout(t *testing.T) {
	var out, errs strings.Builder
	code := run(t.Context(), []string{"--check", "../../..."}, &out, &errs)
	if code == exitFailure || errs.Len() > 0 {
		t.Fatalf("exit code %d\n%s", code, errs.String())
	}
	for name := range strings.Lines(out.String()) {
		if !strings.HasPrefix(name, "../../golden/compat/v") {
			t.Errorf("stale: %s", name)
		}
	}
}
