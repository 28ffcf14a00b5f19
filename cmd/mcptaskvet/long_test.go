//go:build long

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestLongScripts runs the scripts that compile what is generated, in a module that requires this one.
func TestLongScripts(t *testing.T) {
	bin := t.TempDir()
	runCommand(t, "go", "build", "-o", bin+string(filepath.Separator), "../mcptaskgen")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(checkout, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	runScripts(t, "testdata/long", map[string]string{
		// What go get and go mod tidy would leave, had this checkout been released.
		"go.mod": strings.Replace(read("go.mod"), "module github.com/mcptaskgen/mcptaskgen\n", "module example.com/app\n", 1) +
			"\nrequire github.com/mcptaskgen/mcptaskgen v0.0.0\n\nreplace github.com/mcptaskgen/mcptaskgen => " + strconv.Quote(checkout) + "\n",
		"go.sum": read("go.sum"),
	})
}
