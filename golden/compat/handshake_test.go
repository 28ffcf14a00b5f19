package compat_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/internal/released"
)

// TestReleased runs the tests of the sample on the output of each released version, in the place of the sample. A
// version may have tests of its own in its directory. They run there, and the sample's tests of that package do not.
func TestReleased(t *testing.T) {
	sample, err := released.Files(released.Next)
	if err != nil {
		t.Fatal(err)
	}
	if len(versions(t)) == 0 {
		t.Log("no version is kept yet: make freeze keeps the first")
	}
	tested := map[string]bool{}
	for _, version := range versions(t) {
		if tested[version.Dir] {
			continue
		}
		tested[version.Dir] = true
		files, err := released.Files(version.Dir)
		if err != nil {
			t.Fatal(err)
		}
		replace := map[string]string{}
		for name := range sample {
			if _, own := files[name]; own || !strings.HasSuffix(name, "_test.go") {
				replace[released.Next+"/"+name] = "" // removed
			}
		}
		for name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				replace[released.Next+"/"+name] = version.Dir + "/" + name
			}
		}
		if out, err := runOverlaid(t, replace, "test", "./next/..."); err != nil {
			t.Errorf("what %s wrote no longer works with this runtime. It is in other people's repositories, so mend the runtime, not "+
				"golden/compat. If the sample's tests have changed and no longer fit it, keep those that do in golden/compat/%s: %v\n%s",
				version.Name, version.Dir, err, out)
		}
	}
}

// runOverlaid runs the go command with some files replaced by others. A file without a replacement is removed.
func runOverlaid(t *testing.T, replace map[string]string, command string, args ...string) (string, error) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{command, "-overlay", overlay}, args...)...).CombinedOutput()
	return string(out), err
}

var undefined = regexp.MustCompile(`(?m)^(.+_gen\.go):(\d+):\d+: undefined: mcptask\.(GeneratedV\d+)$`)

// TestHandshake builds the generator's present output with a runtime that does not have its constant, such as an older
// one. The compiler points to a line, and the comment above it tells the way out.
func TestHandshake(t *testing.T) {
	older := filepath.Join(t.TempDir(), "handshake.go")
	if err := os.WriteFile(older, []byte("package mcptask\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := runOverlaid(t, map[string]string{"../../runtime/handshake.go": older}, "build", "./next/...")
	if err == nil {
		t.Fatal("it compiles")
	}
	told := map[string]bool{}
	for _, match := range undefined.FindAllStringSubmatch(out, -1) {
		told[filepath.ToSlash(match[1])] = true
		above, line := around(t, match[1], match[2])
		if line != "const _ = mcptask."+match[3] || !strings.HasSuffix(above, "run: go get github.com/mcptaskgen/mcptaskgen@latest") {
			t.Errorf("the compiler points to %s:%s, which says\n%s\n%s", match[1], match[2], above, line)
		}
	}
	for _, use := range uses(t, "./next/...") {
		if !told[use.Path] {
			t.Errorf("the compiler says nothing of %s:\n%s", use.Path, out)
		}
	}
	if n := strings.Count(out, ".go:"); n != len(told) {
		t.Errorf("%d errors in %d files:\n%s", n, len(told), out)
	}
}

// around returns a line of a file with the one above it.
func around(t *testing.T, path, number string) (above, line string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	n, err := strconv.Atoi(number)
	if err != nil || n < 2 || n > len(lines) {
		t.Fatal(fmt.Errorf("%s has no line %s: %w", path, number, err))
	}
	return lines[n-2], lines[n-1]
}
