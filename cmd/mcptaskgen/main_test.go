package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcptaskgen": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as a user does, in a module of its own. A stub stands for the runtime:
// the generator needs its names alone.
func TestScripts(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"mcptask/go.mod":             "module github.com/mcptaskgen/mcptaskgen\n\ngo 1.26\n",
		"mcptask/runtime/runtime.go": "package mcptask\n\ntype Task struct{}\n\ntype Result struct{}\n",
		"go.mod": "module example.com/m\n\ngo 1.26\n\nrequire github.com/mcptaskgen/mcptaskgen v0.0.0\n\n" +
			"replace github.com/mcptaskgen/mcptaskgen => ./mcptask\n",
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("GOCACHE", filepath.Join(cache, "go-build")) // the scripts' HOME is empty
			if dir := os.Getenv("GOCACHE"); dir != "" {
				env.Setenv("GOCACHE", dir)
			}
			env.Setenv("GOFLAGS", "-mod=mod")
			env.Setenv("GOPROXY", "off")
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
