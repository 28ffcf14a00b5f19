package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the scripts compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcptaskgen": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as a user does.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// runScripts runs each script of a folder in a module of its own. A stub stands for the runtime: the generator needs its
// names alone.
func runScripts(t *testing.T, dir string) {
	t.Helper()
	// The scripts' HOME is empty, so that these are not where the go command would look.
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	buildCache, moduleCache, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
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
	files := map[string]string{
		// For a script that needs the runtime as it is: what go get and go mod tidy would leave, had this
		// checkout been released.
		"checkout.mod": strings.Replace(read("go.mod"), "module github.com/mcptaskgen/mcptaskgen\n", "module example.com/app\n", 1) +
			"\nrequire github.com/mcptaskgen/mcptaskgen v0.0.0\n\nreplace github.com/mcptaskgen/mcptaskgen => " + strconv.Quote(checkout) + "\n",
		"checkout.sum":               read("go.sum"),
		"mcptask/go.mod":             "module github.com/mcptaskgen/mcptaskgen\n\ngo 1.26\n",
		"mcptask/runtime/runtime.go": "package mcptask\n\ntype Task struct{}\n\ntype Result struct{}\n",
		"go.mod": "module example.com/m\n\ngo 1.26\n\nrequire github.com/mcptaskgen/mcptaskgen v0.0.0\n\n" +
			"replace github.com/mcptaskgen/mcptaskgen => ./mcptask\n",
	}
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		UpdateScripts: *update,
		Condition: func(condition string) (bool, error) {
			if condition == "root" { // whom no permission keeps from anything
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", buildCache)
			env.Setenv("GOMODCACHE", moduleCache)
			env.Setenv("GOFLAGS", "-mod=mod")
			env.Setenv("GOPROXY", "off")
			env.Setenv("GOWORK", "off")
			env.Setenv("SCHEMAS", filepath.Join(checkout, "schema"))
			for name, content := range files {
				path := filepath.Join(env.WorkDir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
