package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/scripts"
)

var update = flag.Bool("update", false, "write what the scripts compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mcptaskgen": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command as a user does.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// runScripts runs each script of a directory in a module of its own. A stub stands for the runtime, because the generator
// needs only its names.
func runScripts(t *testing.T, dir string) {
	t.Helper()
	checkoutMod, checkoutSum := scripts.RequireCheckout(t)
	params := testscript.Params{
		Dir:           dir,
		UpdateScripts: *update,
		Condition: func(condition string) (bool, error) {
			if condition == "root" { // no permission stops this user
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", condition)
		},
	}
	scripts.Run(t, params, map[string]string{
		"checkout.mod":               checkoutMod, // for a script that needs the runtime as it is
		"checkout.sum":               checkoutSum,
		"mcptask/go.mod":             "module github.com/mcptaskgen/mcptaskgen\n\ngo 1.25\n",
		"mcptask/runtime/runtime.go": "package mcptask\n\ntype Task struct{}\n\ntype Result struct{}\n",
		"go.mod": "module example.com/m\n\ngo 1.25\n\nrequire github.com/mcptaskgen/mcptaskgen v0.0.0\n\n" +
			"replace github.com/mcptaskgen/mcptaskgen => ./mcptask\n",
	}, map[string]string{"SCHEMAS": filepath.Join(scripts.Checkout(t), "schema")})
}
