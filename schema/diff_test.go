package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

var golden = flag.Bool("golden", false, "write the golden files of the differences between revisions")

const a, b, c, d, e = "sep-1686", "2025-11-25-rc", "2025-11-25", "task-patterns", "2026-07-28"

func changes(t *testing.T, from, to *schema.Surface) []schema.Change {
	t.Helper()
	list, err := schema.Diff(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestDiffGolden checks everything that a user reads about neighboring revisions.
func TestDiffGolden(t *testing.T) {
	var seen []string
	for _, pair := range [][2]string{{a, b}, {b, c}, {c, e}, {c, d}} {
		seen = append(seen, pair[:]...)
		from, to := load(t, pair[0]), load(t, pair[1])
		list := changes(t, from, to)
		text, err := schema.Changes(from, to, list)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(schema.Report(from, to, list)); err != nil {
			t.Fatal(err)
		}
		for ending, got := range map[string]string{".txt": text, ".json": out.String()} {
			name := filepath.Join("testdata", "diff", pair[0]+"_"+pair[1]+ending)
			if *golden {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(read(t, name)), got); diff != "" {
				t.Errorf("%s (-want +got); go test ./schema -golden writes it:\n%s", name, diff)
			}
		}
	}
	everyRevision(t, seen)
}

// TestDiffBack compares newer revisions with older ones. TestDiffGolden has the other direction.
func TestDiffBack(t *testing.T) {
	for _, test := range []struct {
		revisions [2]string
		want      schema.Change // From and To are parts
	}{
		{[2]string{e, c}, schema.Change{Section: schema.Methods, Kind: schema.Removed, From: "tasks/update", To: "elicitation/create"}},
		{[2]string{e, c}, schema.Change{Section: schema.Methods, Kind: schema.Added, From: "tasks/get", To: "tasks/result"}},
		{[2]string{e, c}, schema.Change{Section: schema.Fields, Kind: schema.Renamed, From: "task.ttlMs", To: "task.ttl"}},
		{[2]string{b, a}, schema.Change{Section: schema.States, Kind: schema.Added, From: "working", To: "submitted"}},
		{[2]string{b, a}, schema.Change{Section: schema.Fields, Kind: schema.Renamed, From: "task.ttl", To: "task.keepAlive"}},
	} {
		list := changes(t, load(t, test.revisions[0]), load(t, test.revisions[1]))
		if !slices.ContainsFunc(list, func(got schema.Change) bool {
			return got.Section == test.want.Section && got.Kind == test.want.Kind &&
				strings.Contains(got.From, test.want.From) && strings.Contains(got.To, test.want.To)
		}) {
			t.Errorf("from %s to %s, nothing says %+v", test.revisions[0], test.revisions[1], test.want)
		}
	}
}

// TestDiffWhole compares every pair in both directions. What one direction adds, the other removes. Each text says something.
func TestDiffWhole(t *testing.T) {
	surfaces := map[string]*schema.Surface{}
	for _, revision := range schema.Revisions() {
		surfaces[revision] = load(t, revision)
	}
	opposite := map[schema.Kind]schema.Kind{schema.Added: schema.Removed, schema.Removed: schema.Added}
	for _, from := range schema.Revisions() {
		for _, to := range schema.Revisions() {
			there, back := changes(t, surfaces[from], surfaces[to]), changes(t, surfaces[to], surfaces[from])
			if from == to && len(there) > 0 {
				t.Errorf("%s differs from itself: %v", from, there)
			}
			count := map[string]int{}
			for _, c := range there {
				count[fmt.Sprint(c.Section, c.Kind)]++
				if c.Text == "" || strings.Contains(c.Text, "%!") || strings.Contains(c.Text, "()") || strings.HasSuffix(c.Text, ": ") {
					t.Errorf("%s to %s: %q", from, to, c.Text)
				}
			}
			for _, c := range back {
				kind := c.Kind
				if o, ok := opposite[kind]; ok {
					kind = o
				}
				if c.Section != schema.Methods { // only a new method is said to serve another purpose too
					count[fmt.Sprint(c.Section, kind)]--
				}
			}
			for what, n := range count {
				if n != 0 && !strings.HasPrefix(what, string(schema.Methods)) && !strings.HasPrefix(what, string(schema.Fields)) {
					t.Errorf("%s and %s: %d more of %s one way", from, to, n, what)
				}
			}
		}
	}
}

// TestEverythingMeans checks that each revision answers everything that canon.json asks, once.
func TestEverythingMeans(t *testing.T) {
	var canon struct{ Aspects map[string]string }
	if err := json.Unmarshal(read(t, "canon.json"), &canon); err != nil {
		t.Fatal(err)
	}
	for _, revision := range schema.Revisions() {
		s := load(t, revision)
		for aspect := range canon.Aspects {
			if s.Aspects[aspect] == "" {
				t.Errorf("%s: nothing on %s", revision, aspect)
			}
		}
		for _, status := range s.Statuses {
			if len(status.Means) == 0 || status.Terminal != (len(status.Next) == 0) {
				t.Errorf("%s: the status %s means %v, leads to %v", revision, status.Name, status.Means, status.Next)
			}
		}
		seen := map[string]bool{}
		for _, f := range s.Fields {
			if seen[f.Means] || f.Place() == "" {
				t.Errorf("%s: %s is there twice, or nowhere: %q", revision, f.Means, f.Place())
			}
			seen[f.Means] = true
		}
		for _, key := range s.MetaKeys {
			if key.Means == "" {
				t.Errorf("%s: the key %s means nothing", revision, key.Key)
			}
		}
		text, err := schema.Show(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Methods {
			if !strings.Contains(text, "  "+m.Name+", ") {
				t.Errorf("%s: show has no %s", revision, m.Name)
			}
		}
		for line := range strings.Lines(text) {
			if n := len(strings.TrimSpace(line)); n > 100 {
				t.Errorf("%s: a line of %d columns: %s", revision, n, line)
			}
		}
	}
}

// invented returns a surface of 2026-07-28 with texts of its files replaced.
func invented(t *testing.T, replace ...string) *schema.Surface {
	t.Helper()
	replacer := strings.NewReplacer(replace...)
	file := func(name string) []byte { return []byte(replacer.Replace(string(read(t, e, name)))) }
	s, err := schema.ParseSurface(file("tasks.schema.json"), file("surface.json"), file("provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDiffOfInvented covers differences that no two known revisions have.
func TestDiffOfInvented(t *testing.T) {
	tests := []struct {
		name    string
		replace []string
		want    []string
	}{
		{"a status of another name", []string{`"working"`, `"busy"`}, []string{"working is called busy"}},
		{"an error code of another number", []string{`-32020`, `-32050`}, []string{"HeaderMismatch has the code -32050 (before: -32020)",
			"an HTTP header that is missing or does not match the body: -32050 HeaderMismatch (HTTP 400) (before: -32020 HeaderMismatch (HTTP 400))"}},
		{"a status that is final", []string{`"name": "working",
      "doc": "Means that the work is going on, or waits for its turn.",
      "terminal": false`, `"name": "working",
      "doc": "Means that the work is going on, or waits for its turn.",
      "terminal": true`}, []string{"working is final"}},
		{"a transition", []string{`"next": ["input_required", "completed", "failed", "cancelled"]`, `"next": ["input_required", "completed", "failed"]`},
			[]string{"working can no longer become cancelled"}},
		{"another unit", []string{`"at": "Task/pollIntervalMs", "unit": "milliseconds"`, `"at": "Task/pollIntervalMs", "unit": "seconds"`},
			[]string{"task.pollIntervalMs is in seconds (before: milliseconds)"}},
		{"a required field", []string{`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]`, `"required": ["taskId", "status", "createdAt", "ttlMs"]`},
			[]string{"task.lastUpdatedAt is optional (before: required)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range changes(t, load(t, e), invented(t, test.replace...)) {
				got = append(got, c.Text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
