package main

import (
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/scripts"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"mcptaskvet": main}) }

// TestScripts runs the command as users do, by itself and by go vet, in a module without the runtime.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", map[string]string{"go.mod": "module example.com/app\n\ngo 1.25\n"})
}

// runScripts runs each script of a directory in a module of its own, with files in it.
func runScripts(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	tool, err := exec.LookPath("mcptaskvet")
	if err != nil {
		t.Fatal(err)
	}
	scripts.Run(t, testscript.Params{Dir: dir}, files, map[string]string{"VET": tool})
}
