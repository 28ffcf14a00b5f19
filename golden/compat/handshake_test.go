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
)

// TestReleasedCompile builds what released versions wrote against today's runtime.
func TestReleasedCompile(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "build", "./v...").CombinedOutput()
	if err != nil {
		t.Errorf("what released versions wrote does not compile with this runtime; it is in other people's repositories, so mend the "+
			"runtime, not golden/compat: %v\n%s", err, out)
	}
}

var undefined = regexp.MustCompile(`(?m)^(.+_gen\.go):(\d+):\d+: undefined: mcptask\.(GeneratedV\d+)$`)

// TestHandshake builds what the generator writes today with a runtime that does not have its constant,
// which an older one is. The compiler points to a line, and the comment above it says what to do.
func TestHandshake(t *testing.T) {
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	older := filepath.Join(filepath.Dir(overlay), "handshake.go")
	handshake, err := filepath.Abs("../../runtime/handshake.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{handshake: older}})
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{overlay: string(replace), older: "package mcptask\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./next/...").CombinedOutput()
	if err == nil {
		t.Fatal("it compiles")
	}
	told := map[string]bool{}
	for _, match := range undefined.FindAllStringSubmatch(string(out), -1) {
		told[filepath.ToSlash(match[1])] = true
		above, line := around(t, match[1], match[2])
		if line != "const _ = mcptask."+match[3] || !strings.HasSuffix(above, "run: go get github.com/mcptaskgen/mcptaskgen@latest") {
			t.Errorf("the compiler shows to %s:%s, where stands\n%s\n%s", match[1], match[2], above, line)
		}
	}
	for _, use := range uses(t, "./next/...") {
		if !told[use.Path] {
			t.Errorf("the compiler says nothing of %s:\n%s", use.Path, out)
		}
	}
	if n := strings.Count(string(out), ".go:"); n != len(told) {
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
