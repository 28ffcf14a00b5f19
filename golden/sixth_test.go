package golden_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestSixthRevision adds a revision that was invented for it to a copy of the
// module, by a folder in schema/ and nothing else: by its names the generator, the
// server and the client speak it. What is said on the wire there is in
// testdata/sixth/edge_test.go. It builds a copy of the module, so -short leaves it
// out.
func TestSixthRevision(t *testing.T) {
	if testing.Short() {
		missing(t, "-short leaves out what builds a copy of the module: there is nothing to install, run it without -short")
	}
	t.Parallel()
	dir := t.TempDir()
	module := copyWholeModule(t, dir)
	writeSixth(t, filepath.Join(dir, "schema", "2027-03-01"))

	before := generatedFiles(t, dir)
	runIn(t, dir, "go", "generate", "./runtime/...")
	after := generatedFiles(t, dir)
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			changed = append(changed, name)
		}
	}
	if want := []string{"runtime/internal/dialect/renamings_gen.go", "runtime/wire_gen.go"}; !slices.Equal(changed, want) {
		t.Errorf("go generate has changed %q, want %q", changed, want)
	}

	tool := filepath.Join(dir, "mcptaskgen")
	if runtime.GOOS == "windows" {
		tool += ".exe"
	}
	runIn(t, dir, "go", "build", "-o", tool, "./cmd/mcptaskgen")
	if list := runIn(t, dir, tool, "schema", "list"); !strings.Contains(list, "2027-03-01") {
		t.Errorf("schema list says\n%s", list)
	}
	difference := runIn(t, dir, tool, "schema", "diff", "2026-07-28", "2027-03-01")
	for _, pair := range pairs(t) {
		if from, to := pair[0], pair[1]; !strings.Contains(from, "~1") && (!strings.Contains(difference, from) || !strings.Contains(difference, to)) {
			t.Errorf("schema diff does not say that %s is called %s:\n%s", from, to, difference)
		}
	}

	edge := filepath.Join(dir, "sixth")
	source, err := os.ReadFile(filepath.Join(module, "golden", "pipeline", "pipeline.go"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(edge, "pipeline", "pipeline.go"), string(source))
	program, err := os.ReadFile(filepath.Join("testdata", "sixth", "edge_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(edge, "edge_test.go"), string(program))
	runIn(t, edge, tool, "--revision", "2027-03-01", "./pipeline")
	runIn(t, dir, "go", "test", "-count=1", "./sixth")
}

// copyWholeModule copies what belongs to the module, without its history, and returns
// where it stands.
func copyWholeModule(t *testing.T, to string) (from string) {
	t.Helper()
	from, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	list, err := cmd.Output()
	if err != nil {
		missing(t, "git does not list the module's files: install git, and run this in a clone: "+err.Error())
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue // it is deleted, and git does not know yet
		}
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(to, name), string(data))
	}
	return from
}

// pairs are the names of testdata/sixth/names.txt: what 2026-07-28 has, and what the
// invented revision calls it.
func pairs(t *testing.T) (list [][2]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "sixth", "names.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		from, to, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			t.Fatalf("names.txt: %q", line)
		}
		list = append(list, [2]string{from, to})
	}
	return list
}

// writeSixth writes the folder of the invented revision: 2026-07-28 by other names,
// with an optional member more.
func writeSixth(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"tasks.schema.json", "surface.json"} {
		data, err := os.ReadFile(filepath.Join("..", "schema", "2026-07-28", name))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		for _, pair := range pairs(t) {
			// Names that are a part of another stay.
			whole := regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(pair[0]) + `\b`)
			text = whole.ReplaceAllString(text, "${1}"+pair[1])
		}
		text = strings.ReplaceAll(text, `"pollMs": {`, `"priority": {"description": "How soon its turn comes.", "type": "integer"}, "pollMs": {`)
		text = strings.Replace(text, `"protocolVersion": "2027-03-01"`, `"protocolVersion": "2027-03-01", "base": "2026-07-28"`, 1)
		writeFile(t, filepath.Join(dir, name), text)
	}
	for _, name := range []string{"provenance.json", "rules.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", "sixth", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(data))
	}
}

// generatedFiles are the Go files of the runtime, by their names.
func generatedFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "runtime"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// runIn runs a command that needs nothing but what is on the machine.
func runIn(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, &out, &errors)
	}
	return out.String()
}

// missing skips the test, or fails it where everything has to run.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}
