package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"mcptaskvet": main}) }

// TestScripts runs the command as users do, by itself and by go vet, in a module without the runtime.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", map[string]string{"go.mod": "module example.com/app\n\ngo 1.26\n"})
}

// runScripts runs each script of a folder in a module of its own, with files in it.
func runScripts(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	// The scripts' HOME is empty, so that these are not where the go command would look.
	caches := strings.Split(runCommand(t, "go", "env", "GOCACHE", "GOMODCACHE"), "\n")
	tool, err := exec.LookPath("mcptaskvet")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("VET", tool)
			env.Setenv("GOCACHE", caches[0])
			env.Setenv("GOMODCACHE", caches[1])
			env.Setenv("GOFLAGS", "-mod=mod")
			env.Setenv("GOPROXY", "off")
			env.Setenv("GOWORK", "off")
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(content), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func runCommand(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
