package toolschema

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

var update = flag.Bool("update", false, "write the tables of portability, and the notes on lists of tools")

// TestPortabilityPage compares the tables of the page with the table of portability. Run it with -update to write them.
func TestPortabilityPage(t *testing.T) {
	const page = "../../../docs/reference/portability.md"
	all, one, silent := &strings.Builder{}, &strings.Builder{}, &strings.Builder{}
	for _, row := range portable.Rows() {
		table, last := one, row.Schema
		switch {
		case row.Silent != "":
			table, last = silent, row.Silent
		case row.AllTools:
			table = all
		}
		if row.Declaration != "" {
			last = row.Declaration
		}
		fmt.Fprintf(table, "| `%s` | %s | %s | %s | %s |\n", row.Name, row.Construct, row.Happens, last, sources(row))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for heading, rows := range map[string]string{
		"What takes all tools away": all.String(), "What costs one tool": one.String(), "What gets no note": silent.String(),
		"What published servers have": describeLists(t),
	} {
		before, rest, found := strings.Cut(want, "## "+heading+"\n")
		intro, rest, ruled := strings.Cut(rest, "|---|\n")
		_, after, _ := strings.Cut("\n"+rest, "\n\n")
		if !found || !ruled {
			t.Fatalf("%s has no table under %q", page, heading)
		}
		want = before + "## " + heading + "\n" + intro + "|---|\n" + rows
		if after != "" {
			want += "\n" + after
		}
	}
	compareFile(t, page, want)
}

// sources links the reports of a row, newest first.
func sources(row *portable.Row) string {
	seen := slices.Clone(row.Seen)
	slices.SortStableFunc(seen, func(a, b portable.Source) int { return strings.Compare(b.Date, a.Date) })
	var links []string
	for _, s := range seen {
		links = append(links, fmt.Sprintf("[%s](%s)", s.Date, s.URL))
	}
	return strings.Join(links, ", ")
}

// describeLists counts the tools of each published list, and for each row those that have its construct.
func describeLists(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	for _, path := range findLists(t, published...) {
		l := readTools(t, path)
		count := map[*portable.Row]int{}
		for _, tool := range l.tools {
			has := map[*portable.Row]bool{}
			for _, found := range portable.Check(tool.portable()) {
				has[found.Row] = true
			}
			for row := range has {
				count[row]++
			}
		}
		var texts []string
		for _, row := range portable.Rows() {
			if count[row] > 0 {
				texts = append(texts, fmt.Sprintf("`%s` %d", row.Name, count[row]))
			}
		}
		fmt.Fprintf(&rows, "| %s | %d | %s |\n", serverOf(path), len(l.tools), cmp.Or(strings.Join(texts, ", "), "none"))
	}
	return rows.String()
}

// serverOf names the server of a list: after the file, or after the directory of a tools.json.
func serverOf(path string) string {
	if base := filepath.Base(path); base != "tools.json" {
		return strings.TrimSuffix(base, ".json")
	}
	return filepath.Base(filepath.Dir(path))
}

// TestRefusedNotes compares the notes on the lists of published servers and of the golden packages with a file.
func TestRefusedNotes(t *testing.T) {
	var got strings.Builder
	for _, path := range findLists(t, slices.Concat(published, []string{"../../../golden/tools/*/*.json"})...) {
		l := readTools(t, path)
		l.checkRefused(false)
		for _, note := range l.problems.Notes("../../..") {
			got.WriteString(note + "\n")
		}
	}
	compareFile(t, "testdata/refused.txt", got.String())
}

// published are the lists of published servers.
var published = []string{"../../../examples/everything/everything/tools.json", "../../../examples/published/lists/*.json"}

func findLists(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no lists %s: %v", pattern, err)
		}
		all = append(all, paths...)
	}
	return all
}

func readTools(t *testing.T, path string) *toolList {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := jsontree.Read(path, text, jsontree.MaxDepth)
	if err != nil {
		t.Fatal(err)
	}
	l := &toolList{file: file, problems: &diag.List{}, seen: map[string]bool{}}
	for _, value := range file.Values {
		l.readMessage(value)
	}
	if len(l.tools) == 0 {
		t.Fatalf("%s has no tools", path)
	}
	return l
}

// compareFile compares a file with what it should be, or writes it.
func compareFile(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	switch {
	case err == nil && string(text) == want:
	case *update:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a page
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale (%v); run go test ./generator/internal/toolschema -update", path, err)
	}
}
