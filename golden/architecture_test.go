package golden_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var room = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestRooms compares the list of packages in docs/dev/architecture.md with the directories that have Go files. A row
// that ends in /... covers the directories below it too, except internal ones.
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

// TestLightModules checks that the modules that users get require nothing of the databases, exporters and SDKs that they do
// not link. Otherwise their go.mod would have it too, or a newer version of it.
func TestLightModules(t *testing.T) {
	heavy := map[string]string{ // with the modules that may require it
		"go.temporal.io": "", "github.com/prometheus": "", "github.com/chromedp": "",
		"modernc.org": "runtime/sqlite", "github.com/jackc": "runtime/postgres", "go.opentelemetry.io": "runtime/oteltask",
		"github.com/mark3labs": "runtime/mcpgo",
	}
	for _, module := range []string{".", "runtime/sqlite", "runtime/postgres", "runtime/oteltask", "runtime/mcpgo"} {
		text := readFile(t, "../"+module+"/go.mod")
		for name, owner := range heavy {
			if module != owner && strings.Contains(text, "\t"+name+"/") {
				t.Errorf("%s/go.mod requires a module of %s: move what needs it to a module of its own, and run go mod tidy", module, name)
			}
		}
	}
}

// TestModules checks that CI knows each module of the repository: ./... does not enter those below this one.
func TestModules(t *testing.T) {
	script := readFile(t, "../.ci/run")
	list := func(name string) []string {
		found := regexp.MustCompile(`(?m)^` + name + `="(.*)"$`).FindStringSubmatch(script)
		if found == nil {
			t.Fatalf(".ci/run has no list %s any more", name)
		}
		return strings.Fields(found[1])
	}
	joined := list("joined")
	known := slices.Concat(joined, list("apart"), list("modules")[2:])
	slices.Sort(known)
	if found := modules(t); !slices.Equal(known, found) {
		t.Errorf(".ci/run checks the modules %v, and there are %v: change its lists", known, found)
	}
	var used []string
	for _, match := range regexp.MustCompile(`(?m)^\t\./?(\S*)$`).FindAllStringSubmatch(readFile(t, "../go.work"), -1) {
		used = append(used, cmp.Or(match[1], "."))
	}
	if !slices.Equal(used, joined) {
		t.Errorf(".ci/run says that go.work joins %v, and it joins %v: change its list", joined, used)
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

// TestGoVersions checks that all modules need the same release of Go, and that none needs a patch of it unless a
// dependency does.
func TestGoVersions(t *testing.T) {
	forced := map[string]string{
		"examples/temporal/testserver": "the Temporal server",
		"examples/temporal":            "Temporal's SDK",
		"runtime/temporal":             "Temporal's SDK",
		"runtime/mcpgo":                "mcp-go, since it has titles of tools",
		"examples":                     "mcp-go",
	}
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
		case forced[module] != "":
		case version[1] != root[1]:
			t.Errorf("%s/go.mod needs Go %s, and go.mod %s: they have to be the same", module, version[1], root[1])
		case version[2] != "" && version[2] != ".0":
			t.Errorf("%s/go.mod has %q, which shuts out older patches of Go %s: leave out the patch, or require a dependency that does without", module, version[0], version[1])
		}
		if strings.Contains(text, "\ntoolchain ") {
			t.Errorf("%s/go.mod has a toolchain line: remove it, as users choose their own", module)
		}
	}
}

// walked matches a name of the code with the file that declares it.
var walked = regexp.MustCompile("`(?:mcptask\\.)?([\\w.]+)` in `([\\w./]+\\.go)`")

// TestWalk checks that each name is declared in the file that docs/dev/architecture.md gives for
// it.
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
