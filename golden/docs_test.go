package golden_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/golden/pages"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// readPages reads every document.
func readPages(t *testing.T) []pages.Page {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}
	err := filepath.WalkDir(filepath.Join("..", "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			names = append(names, strings.TrimPrefix(filepath.ToSlash(path), "../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var read []pages.Page
	for _, name := range names {
		p, err := pages.Parse(name, readFile(t, "../"+name))
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, p)
	}
	return read
}

// byHandOutput is the file that the reader of docs/by-hand.md generates.
const byHandOutput = "ci/mcptask_gen.go"

// quickstart is the page about the files that mcptaskgen init writes.
const quickstart = "docs/quickstart.md"

// TestDocsSnippets checks each block that no other test runs: code from a file is still in it, JSON is JSON, and a
// diagram of the lifecycle has the transitions of both released revisions.
func TestDocsSnippets(t *testing.T) {
	scaffold := renderScaffold(t)
	for _, p := range readPages(t) {
		for _, b := range p.Blocks {
			relation, name := b.File()
			switch {
			case relation == "From" && name == byHandOutput: // TestDocsCompile generates it
			case relation == "From" && p.Name == quickstart:
				if !strings.Contains(string(scaffold.Files[name]), b.Code) {
					t.Errorf("%s: mcptaskgen init does not write this code into %s", b.At, name)
				}
			case b.Language == "diff":
				checkDiff(t, b)
			case relation == "From":
				source, err := os.ReadFile(filepath.Join("..", name))
				if err != nil {
					t.Errorf("%s: %v", b.At, err)
				} else if !strings.Contains(string(source), b.Code) && !strings.Contains(string(source), asComment(b.Code)) {
					t.Errorf("%s: the code is not in %s any more", b.At, name)
				}
			case b.Language == "go" && relation == "":
				t.Errorf("%s: nothing tests this Go code after %q; write In `file`: or From `file`: before it", b.At, b.Lead)
			case b.Language == "json" && !json.Valid([]byte(b.Code)):
				t.Errorf("%s: this is not JSON", b.At)
			case b.Language == "mermaid" && strings.HasPrefix(b.Code, "stateDiagram"):
				checkLifecycle(t, b)
			case !slices.Contains([]string{"go", "golang", "json", "mermaid", "sh", "console", "bash", "text"}, b.Language):
				t.Errorf("%s: no test knows a block of %q", b.At, b.Language)
			case b.Language == "bash":
				t.Errorf("%s: a block of bash has to be From a file", b.At)
			}
		}
	}
}

// checkDiff looks for the parts of a diff, between lines of @@, in that of the server of examples/brownfield that the block
// is From: after one of its tools became a task, and before.
func checkDiff(t *testing.T, b pages.Block) {
	t.Helper()
	_, name := b.File()
	before := strings.Replace(name, "-after/", "-before/", 1)
	if before == name {
		t.Errorf("%s: a diff has to be From the main.go of a server after the change", b.At)
		return
	}
	whole := string(diff.Diff(before, []byte(readFile(t, "../"+before)), name, []byte(readFile(t, "../"+name))))
	for part := range strings.SplitSeq(b.Code, "@@\n") {
		if !strings.Contains(whole, part) {
			t.Errorf("%s: this is not in the diff any more:\n%s\nwhich is\n%s", b.At, part, whole)
		}
	}
}

// renderScaffold returns the files that mcptaskgen init writes into an empty module.
func renderScaffold(t *testing.T) generator.Scaffold {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.com/hello\n\ngo 1.25\n")
	scaffold, err := generator.NewScaffold(t.Context(), generator.ScaffoldConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return scaffold
}

// asComment returns lines as the comment of a function has them: the output of an example.
func asComment(code string) string {
	return "\t// " + strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n\t// ") + "\n"
}

// checkLifecycle compares a diagram with the statuses of the released revisions.
func checkLifecycle(t *testing.T, b pages.Block) {
	t.Helper()
	drawn := map[string]bool{}
	for _, arrow := range regexp.MustCompile(`(?m)^\s+(\w+) --> (\w+)\b`).FindAllStringSubmatch(b.Code, -1) {
		drawn[arrow[1]+" "+arrow[2]] = true
	}
	for _, revision := range schema.ReleasedRevisions() {
		allowed := map[string]bool{}
		for _, status := range load(t, revision).Statuses {
			for _, next := range status.Next {
				allowed[status.Name+" "+next] = true
			}
		}
		if !maps.Equal(drawn, allowed) {
			t.Errorf("%s: the diagram has the arrows %v; %s allows %v", b.At, slices.Sorted(maps.Keys(drawn)), revision, slices.Sorted(maps.Keys(allowed)))
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	dropped = regexp.MustCompile(`[^a-z0-9 _-]`)
	inline  = regexp.MustCompile("`[^`]*`")
)

// TestDocsLinks follows every link within the repository, and finds pages that no page links to.
func TestDocsLinks(t *testing.T) {
	all := readPages(t)
	sections := map[string]map[string]bool{}
	for _, p := range all {
		sections[p.Name] = map[string]bool{}
		for _, h := range heading.FindAllStringSubmatch(p.Text, -1) {
			sections[p.Name][strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
		}
	}
	linked := map[string]bool{"README.md": true}
	for _, p := range all {
		for _, match := range link.FindAllStringSubmatch(inline.ReplaceAllString(p.Text, "`code`"), -1) {
			target, section, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := p.Name
			if target != "" {
				to = path.Join(path.Dir(p.Name), target)
			}
			if _, err := os.Stat(filepath.Join("..", to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", p.Name, match[1])
			} else if section != "" && !sections[to][section] {
				t.Errorf("%s: %s has no section #%s", p.Name, to, section)
			}
			if to != p.Name {
				linked[to] = true
			}
		}
	}
	for _, p := range all {
		if !linked[p.Name] {
			t.Errorf("no page links to %s", p.Name)
		}
		if strings.HasPrefix(p.Name, "docs/") && p.Name != "docs/README.md" {
			index := readFile(t, "../docs/README.md")
			if !strings.Contains(index, "]("+strings.TrimPrefix(p.Name, "docs/")+")") {
				t.Errorf("docs/README.md does not list %s", p.Name)
			}
		}
	}
}

// TestDocsCommands checks the commands of every page: lines of sh blocks and of consoles, code within the text, and
// lines for go generate. Flags and commands of mcptaskgen are those that it has; make targets, directories and scripts
// exist.
func TestDocsCommands(t *testing.T) {
	known := commandFlags(t)
	makefile := readFile(t, "../Makefile")
	c := commandCheck{t: t, flags: known, makefile: makefile}
	for _, p := range readPages(t) {
		for _, b := range p.Blocks {
			for line := range strings.Lines(b.Code) {
				line = strings.TrimSpace(line)
				switch generate, isGenerate := strings.CutPrefix(line, "//go:generate "); {
				case isGenerate:
					c.check(b.At, generate)
				case b.Language == "sh":
					if !c.check(b.At, line) {
						t.Errorf("%s: no test knows the command %q", b.At, line)
					}
				case b.Language == "console" && strings.HasPrefix(line, "$ "):
					c.check(b.At, line[2:])
				}
			}
		}
		for _, code := range inline.FindAllString(p.Text, -1) {
			c.check(p.Name, strings.TrimPrefix(strings.Trim(code, "`"), "//go:generate "))
		}
	}
}

// commandFlags reads the flags of mcptaskgen's commands out of its source: main is not imported. The command without
// a name is "".
func commandFlags(t *testing.T) map[string][]string {
	t.Helper()
	flags := map[string][]string{"": {"help"}, "help": {}, "init": {}}
	declared := regexp.MustCompile(`(?:flags|set)\.\w+\((?:&[\w.]+, )?"([a-z-]+)"`)
	for name, file := range map[string]string{
		"": "cmd/mcptaskgen/generate.go", "docs": "cmd/mcptaskgen/docs.go", "schema": "cmd/mcptaskgen/schema.go",
		"upgrade": "cmd/mcptaskgen/upgrade.go", "init": "cmd/mcptaskgen/init.go", "breaking": "cmd/mcptaskgen/breaking.go", "shared": "generator/commandline/flags.go",
	} {
		source := readFile(t, "../"+file)
		for _, flag := range declared.FindAllStringSubmatch(source, -1) {
			flags[name] = append(flags[name], flag[1])
		}
	}
	flags[""] = append(flags[""], flags["shared"]...)
	delete(flags, "shared")
	server := readFile(t, "../cmd/internal/target/target.go")
	for name, source := range map[string]string{"tools": server + readFile(t, "../cmd/mcptaskgen/tools.go"), "mcptask": server + readFile(t, "../cmd/mcptask/flags.go")} {
		for _, flag := range declared.FindAllStringSubmatch(source, -1) {
			flags[name] = append(flags[name], flag[1])
		}
	}
	if !slices.Contains(flags[""], "check") || !slices.Contains(flags[""], "tools") || !slices.Contains(flags["upgrade"], "revision") {
		t.Fatalf("the flags are not read any more: %v", flags)
	}
	return flags
}

type commandCheck struct {
	t        *testing.T
	flags    map[string][]string
	makefile string
}

// check checks a command. It returns false if it knows nothing about it.
func (c commandCheck) check(at, line string) bool {
	for _, prefix := range []string{"go tool ", "go run " + modulePath + "/cmd/"} {
		if rest, ok := strings.CutPrefix(line, prefix); ok && strings.HasPrefix(rest, "mcptask") {
			line = strings.Replace(rest, "@latest", "", 1)
		}
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "mcptaskgen":
		c.checkTool(at, words[1:])
	case "mcptask":
		c.checkTool(at, words)
	case "make":
		for _, target := range words[1:] {
			if !strings.Contains(target, "=") && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(target)+`:`).MatchString(c.makefile) {
				c.t.Errorf("%s: there is no make target %s", at, target)
			}
		}
	case "bash":
		if _, err := os.Stat(filepath.Join("..", words[1])); err != nil {
			c.t.Errorf("%s: %v", at, err)
		}
	case "go":
		from := ".."
		if len(words) > 2 && words[1] == "-C" {
			from, words = filepath.Join(from, words[2]), words[2:]
			if _, err := os.Stat(from); err != nil {
				c.t.Errorf("%s: %v", at, err)
			}
		}
		for _, word := range words[1:] {
			directory, ok := strings.CutPrefix(strings.TrimSuffix(word, "/..."), "./")
			if ok && !slices.Contains([]string{"server", "client", "durable", "replica", "flowworker", "tools", "person"}, directory) { // the pages write these
				if _, err := os.Stat(filepath.Join(from, directory)); err != nil {
					c.t.Errorf("%s: %v", at, err)
				}
			}
		}
	case "npm":
		for i, word := range words {
			if word == "--prefix" {
				if _, err := os.Stat(filepath.Join("..", strings.TrimSuffix(words[i+1], ","), "package.json")); err != nil {
					c.t.Errorf("%s: %v", at, err)
				}
			}
		}
	case "bin/pipeline": // built from examples/pipeline
		source := readFile(c.t, "../examples/pipeline/main.go")
		for _, word := range words[1:] {
			if flag, ok := strings.CutPrefix(word, "-"); ok && !strings.Contains(source, `, "`+flag+`", `) {
				c.t.Errorf("%s: examples/pipeline has no flag -%s", at, flag)
			}
		}
	case "prometheus":
		for _, word := range words[1:] {
			if file, ok := strings.CutPrefix(word, "--config.file="); ok {
				if _, err := os.Stat(filepath.Join("..", file)); err != nil {
					c.t.Errorf("%s: %v", at, err)
				}
			}
		}
	case "git", "kill", "mkdir", "npx", "sleep", "temporal":
	default:
		return false
	}
	return true
}

// checkTool checks the arguments of mcptaskgen.
func (c commandCheck) checkTool(at string, args []string) {
	command := ""
	if len(args) > 0 {
		if _, ok := c.flags[args[0]]; ok {
			command = args[0]
		}
	}
	for _, arg := range args {
		if arg == "--" { // another command follows
			break
		}
		if flag, ok := strings.CutPrefix(arg, "--"); ok {
			if name, _, _ := strings.Cut(flag, "="); !slices.Contains(c.flags[command], name) && name != "help" {
				c.t.Errorf("%s: mcptaskgen %s has no flag --%s", at, command, name)
			}
		}
	}
}

// TestDocsRevisions finds a row for every revision in the list of revisions, which tells whether it is released.
func TestDocsRevisions(t *testing.T) {
	text := readFile(t, "../docs/reference/revisions.md")
	for _, revision := range schema.Revisions() {
		surface := load(t, revision)
		_, row, ok := strings.Cut(text, "\n| `"+revision+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		released := surface.Standing == schema.Released
		if !ok || strings.HasPrefix(row, "released: ") != released || strings.HasSuffix(row, "; off unless it is named |") == released {
			t.Errorf("docs/reference/revisions.md says of %s, which is of standing %s: %q", revision, surface.Standing, row)
		}
	}
}
