// Package scripts runs the test scripts of the commands.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// Run runs scripts, each in a module of its own with files in it. The go command finds its caches there and downloads
// nothing. The scripts see the environment's variables too.
func Run(t *testing.T, params testscript.Params, files, environment map[string]string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		const missing = "sh is missing: the scripts run lines in it (Git for Windows brings one)"
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	// The scripts' HOME is empty, so the go command would not find its caches there.
	caches := strings.Split(Command(t, "go", "env", "GOCACHE", "GOMODCACHE"), "\n")
	params.Setup = func(env *testscript.Env) error {
		env.Setenv("GOCACHE", caches[0])
		env.Setenv("GOMODCACHE", caches[1])
		env.Setenv("GOFLAGS", "-mod=mod -trimpath") // packages that one checkout has compiled serve another
		env.Setenv("GOPROXY", "off")
		env.Setenv("GOWORK", "off")
		for name, value := range environment {
			env.Setenv(name, value)
		}
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
	}
	testscript.Run(t, params)
}

// Command runs a command and returns its output without the space around it.
func Command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// RequireCheckout returns the go.mod and go.sum of a module that needs the runtime as it is here. go get and go mod
// tidy would write the same if this checkout was released.
func RequireCheckout(t *testing.T) (mod, sum string) {
	t.Helper()
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(Checkout(t), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	// The examples need all that a server may, the stores included.
	mod = strings.Replace(read("examples/go.mod"), "module github.com/mcptaskgen/mcptaskgen/examples\n", "module example.com/app\n", 1)
	for line := range strings.Lines(mod) {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), " => "); ok {
			mod = strings.Replace(mod, line, "\t"+from+" => "+strconv.Quote(filepath.Join(Checkout(t), "examples", to))+"\n", 1)
		}
	}
	return mod + "\ntool github.com/mcptaskgen/mcptaskgen/cmd/mcptask\n", read("examples/go.sum")
}

// Checkout returns the directory of this checkout. The test has to be of a command.
func Checkout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
