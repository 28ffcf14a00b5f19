//go:build long

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/scripts"
)

// TestLongScripts runs the scripts that compile generated code, in a module that requires this one.
func TestLongScripts(t *testing.T) {
	bin := t.TempDir()
	scripts.Command(t, "go", "build", "-o", bin+string(filepath.Separator), "../mcptaskgen")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	mod, sum := scripts.RequireCheckout(t)
	runScripts(t, "testdata/long", map[string]string{"go.mod": mod, "go.sum": sum})
}
