package schemafile_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/schemafile"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

var update = flag.Bool("update", false, "write the reports that the tests compare with")

const goldenFile = "testdata/reports.txtar"

// TestReports compares the report of each mutation of our own definitions with the golden file. The
// official files, if they are available, are found to be of the same revision, or unknown, if they are
// mutated likewise.
func TestReports(t *testing.T) {
	want := map[string]string{}
	for _, file := range txtar.Parse([]byte(golden(t))).Files {
		want[file.Name] = string(file.Data)
	}
	written := &txtar.Archive{Comment: []byte("The report of each mutation. TestReports -update writes this file: read what changes.\n")}
	for _, m := range mutations {
		revision := m.revision
		if revision == "" {
			revision = legacy
		}
		t.Run(m.name, func(t *testing.T) {
			ours, err := os.ReadFile(filepath.Join("../../../schema", revision, "tasks.schema.json"))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			schemas, err := schemafile.Read(dir, []string{write(t, dir, "schema.json", m.mutate(t, ours))})
			if err != nil {
				t.Fatal(err)
			}
			got := describe(schemas)
			written.Files = append(written.Files, txtar.File{Name: m.name, Data: []byte(got)})
			if *update {
				return
			}
			if diff := cmp.Diff(want[m.name], got); diff != "" {
				t.Errorf("the report has changed (-want +got):\n%s", diff)
			}
		})
		t.Run("official/"+m.name, func(t *testing.T) {
			sources := officialSources(t, revision)
			if sources == nil {
				return
			}
			dir := t.TempDir()
			official := merged(t, sources)
			got, _, _ := strings.Cut(report(t, dir, write(t, dir, "schema.json", m.mutate(t, official))), "\n")
			if first, _, _ := strings.Cut(want[m.name], "\n"); got != first && !*update {
				t.Errorf("the report of the official file begins with %s, want %s", got, first)
			}
		})
	}
	if len(want) != len(mutations) && !*update {
		t.Errorf("%s has %d reports of %d mutations", goldenFile, len(want), len(mutations))
	}
	if *update {
		if err := os.WriteFile(goldenFile, txtar.Format(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func golden(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// report reads files and returns their reports.
func report(t *testing.T, dir string, names ...string) string {
	t.Helper()
	schemas, err := schemafile.Read(dir, names)
	if err != nil {
		return err.Error() + "\n"
	}
	return describe(schemas)
}

// describe returns the reports of schemas.
func describe(schemas []*schemafile.Schema) string {
	var b strings.Builder
	for _, s := range schemas {
		text := s.Report()
		if text == "" {
			text = strings.Join(s.Files, " and ") + ": this is revision " + s.Revision + "\n"
		}
		b.WriteString(text)
	}
	return b.String()
}

func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// officialSources returns the texts of the official files of a revision, or nil if they are not
// available.
func officialSources(t *testing.T, revision string) (texts [][]byte) {
	t.Helper()
	dir := os.Getenv("MCPTASK_OFFICIAL")
	if dir == "" {
		return nil
	}
	surface, err := schema.Load(revision)
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range surface.Provenance.Sources {
		text, err := os.ReadFile(filepath.Join(dir, source.File))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

// merged combines the definitions of several files into one.
func merged(t *testing.T, texts [][]byte) []byte {
	t.Helper()
	var documents []*schema.Document
	for _, text := range texts {
		document, err := schema.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	var b strings.Builder
	b.WriteString(`{"$defs":{`)
	for i, d := range schema.Combine(documents...).Definitions {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + d.Name + `":` + string(d.Schema))
	}
	b.WriteString(`}}`)
	return []byte(b.String())
}

// TestOfficial reads each official file as published. It recognizes those of known revisions,
// the extension alone, and the extension with its core in either order.
func TestOfficial(t *testing.T) {
	dir := os.Getenv("MCPTASK_OFFICIAL")
	if dir == "" {
		t.Log("MCPTASK_OFFICIAL is not set: the mutations of our own definitions stand in for the official files")
		return
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.schema.json"))
	if err != nil || len(names) < 5 {
		t.Fatalf("%d official files in %s: %v", len(names), dir, err)
	}
	of := map[string]string{} // the revision of each recorded file
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range surface.Provenance.Sources {
			of[source.File] = revision
		}
	}
	for _, path := range names {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			got := report(t, dir, name)
			switch revision := of[name]; {
			case name == "2026-07-28.schema.json":
				want := name + ": this revision defines its tasks in an extension; add the extension's file with another --schema: github.com/modelcontextprotocol/ext-tasks, schema/2026-07-28/schema.json\n"
				if got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
			case revision != "":
				if want := name + ": this is revision " + revision + "\n"; got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
			default: // an unknown revision is not mistaken for a known one
				if !strings.Contains(got, "nothing is generated") {
					t.Errorf("got %s", got)
				}
			}
		})
	}
	both := []string{"2026-07-28.schema.json", "ext-tasks.schema.json"}
	want := "2026-07-28.schema.json and ext-tasks.schema.json: this is revision 2026-07-28\n"
	if got := report(t, dir, both...); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := report(t, dir, both[1], both[0], "2025-11-25.schema.json"); got != "2025-11-25.schema.json: this is revision 2025-11-25\n"+want {
		t.Errorf("got %s", got)
	}
}
