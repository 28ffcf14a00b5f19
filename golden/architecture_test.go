package golden_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var room = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestRooms compares the list of packages in docs/dev/architecture.md with the directories that have Go files. A row that
// ends in /... covers what is below it too, except what is internal there.
func TestRooms(t *testing.T) {
	const root = ".."
	text := readFile(t, "../docs/dev/architecture.md")
	var rooms, wide []string
	for _, row := range room.FindAllStringSubmatch(text, -1) {
		dir, whole := strings.CutSuffix(row[1], "/...")
		if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
			t.Errorf("docs/dev/architecture.md has a row for %s, which is not a directory", dir)
		}
		if slices.Contains(rooms, dir) {
			t.Errorf("docs/dev/architecture.md has two rows for %s", dir)
		}
		rooms = append(rooms, dir)
		if whole {
			wide = append(wide, dir+"/")
		}
	}
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), root+"/")
		if filepath.Ext(name) != ".go" || seen[dir] || slices.Contains(rooms, dir) {
			return nil
		}
		seen[dir] = true
		covered := slices.ContainsFunc(wide, func(prefix string) bool {
			rest, below := strings.CutPrefix(dir, prefix)
			return below && !strings.HasPrefix(rest, "internal/")
		})
		if !covered {
			t.Errorf("docs/dev/architecture.md has no row for %s", dir)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNoTemporal checks that this module requires nothing of Temporal.
func TestNoTemporal(t *testing.T) {
	for _, name := range []string{"go.mod", "go.sum"} {
		for line := range strings.Lines(readFile(t, "../"+name)) {
			if strings.Contains(line, "go.temporal.io") {
				t.Errorf("%s names Temporal: %s\tEvery program with generated code would get its modules. What needs Temporal belongs to the module "+
					"runtime/temporal or examples/temporal: move it there, and run go mod tidy", name, line)
			}
		}
	}
}

// TestModules checks that CI knows each module of the repository: ./... does not enter those below this one.
func TestModules(t *testing.T) {
	list := regexp.MustCompile(`(?m)^modules="(.*)"$`).FindStringSubmatch(readFile(t, "../.ci/run"))
	if list == nil {
		t.Fatal(".ci/run has no list of modules any more")
	}
	known := strings.Fields(list[1])
	slices.Sort(known)
	if found := modules(t); !slices.Equal(known, found) {
		t.Errorf(".ci/run checks the modules %v, and there are %v: change its list", known, found)
	}
}

// modules returns the sorted directories of the repository's modules.
func modules(t *testing.T) (found []string) {
	t.Helper()
	const root = ".."
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if name == "go.mod" {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			found = append(found, filepath.ToSlash(dir))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// TestGoVersions checks that all modules need the same release of Go, and that none needs a patch of it.
func TestGoVersions(t *testing.T) {
	const forced = "examples/temporal/testserver" // by the Temporal server
	line := regexp.MustCompile(`(?m)^go (1\.\d+)(\.\d+)?$`)
	root := line.FindStringSubmatch(readFile(t, "../go.mod"))
	if root == nil {
		t.Fatal("go.mod has no go line")
	}
	for _, module := range modules(t) {
		text := readFile(t, "../"+module+"/go.mod")
		switch version := line.FindStringSubmatch(text); {
		case version == nil:
			t.Errorf("%s/go.mod has no go line", module)
		case version[1] != root[1]:
			t.Errorf("%s/go.mod needs Go %s, and go.mod %s: they have to be the same", module, version[1], root[1])
		case version[2] != "" && version[2] != ".0" && module != forced:
			t.Errorf("%s/go.mod has %q, which shuts out older patches of Go %s: leave out the patch, or require a dependency that does without", module, version[0], version[1])
		}
		if strings.Contains(text, "\ntoolchain ") {
			t.Errorf("%s/go.mod has a toolchain line: remove it, as users choose their own", module)
		}
	}
}

// walked matches a name of the code with the file that declares it.
var walked = regexp.MustCompile("`(?:mcptask\\.)?([\\w.]+)` in `([\\w./]+\\.go)`")

// TestWalk checks each file in which docs/dev/architecture.md says that a name is declared.
func TestWalk(t *testing.T) {
	text := readFile(t, "../docs/dev/architecture.md")
	names := walked.FindAllStringSubmatch(text, -1)
	if len(names) == 0 {
		t.Error("docs/dev/architecture.md names no function with its file")
	}
	for _, said := range names {
		name, file := said[1], said[2]
		source := readFile(t, "../"+file)
		declared := `(?m)^(func|type|var|const) ` + name + `\b`
		if receiver, method, ok := strings.Cut(name, "."); ok {
			declared = `(?m)^func \((\w+ )?\*?` + receiver + `\) ` + method + `\(`
		}
		if !regexp.MustCompile(declared).MatchString(source) {
			t.Errorf("docs/dev/architecture.md says that %s is in %s, which does not declare it: name the file that does", name, file)
		}
	}
}
