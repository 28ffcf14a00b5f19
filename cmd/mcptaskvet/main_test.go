package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts builds the command and runs it as users do, by itself and by go vet, in a module that
// requires this one.
func TestScripts(t *testing.T) {
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	bin := t.TempDir()
	run("go", "build", "-o", bin+string(filepath.Separator), ".", "../mcptaskgen")
	// The scripts' HOME is empty, so that these are not where the go command would look.
	buildCache, moduleCache, _ := strings.Cut(run("go", "env", "GOCACHE", "GOMODCACHE"), "\n")
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
		// What go get and go mod tidy would leave, had this checkout been released.
		"go.mod": strings.Replace(read("go.mod"), "module github.com/mcptaskgen/mcptaskgen\n", "module example.com/app\n", 1) +
			"\nrequire github.com/mcptaskgen/mcptaskgen v0.0.0\n\nreplace github.com/mcptaskgen/mcptaskgen => " + strconv.Quote(checkout) + "\n",
		"go.sum": read("go.sum"),
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("VET", filepath.Join(bin, "mcptaskvet"))
			env.Setenv("GOCACHE", buildCache)
			env.Setenv("GOMODCACHE", moduleCache)
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
