package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// TestVerify compares with our own definitions in the place of official files.
func TestVerify(t *testing.T) {
	own := func(revision string, keep func(name string) bool) *schema.Document {
		document := &schema.Document{}
		for _, definition := range load(t, revision).Definitions {
			if keep(definition.Name) {
				document.Definitions = append(document.Definitions, definition)
			}
		}
		return document
	}
	extension := func(name string) bool {
		source, _ := load(t, e).Provenance.Source(name)
		return source.File == "ext-tasks.schema.json"
	}
	core := func(name string) bool { return !extension(name) }
	all := func(string) bool { return true }
	integer := mutate(t, b, `"type": ["integer", "null"]`, `"type": "integer"`)
	tests := []struct {
		name, revision string
		files          []*schema.Document
		want           []string // paths
		notes          int
	}{
		{"the same", c, []*schema.Document{own(c, all)}, nil, 0},
		{"both files", e, []*schema.Document{own(e, all), own(e, core)}, nil, 0},
		{"the extension alone", e, []*schema.Document{own(e, all)}, nil, 0},
		{"the core alone", e, []*schema.Document{own(e, core)}, nil, 0},
		{"a file that lacks something", c, []*schema.Document{own(c, func(name string) bool { return name != "ToolExecution" && name != "Tool" })}, []string{"Tool", "ToolExecution"}, 0},
		{"the core in another form", e, []*schema.Document{mutate(t, e, `"const": "task"`, `"const": "job"`)}, []string{"CreateTaskResult.resultType enum"}, 0},
		{"a mistake that is known", b, []*schema.Document{integer}, nil, 1},
		{"another revision", a, []*schema.Document{own(b, func(name string) bool { return name == "TaskStatus" })}, nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			found, notes, err := schema.Verify(load(t, test.revision), test.files...)
			if err != nil {
				t.Fatal(err)
			}
			if len(notes) != test.notes {
				t.Errorf("notes: %q", notes)
			}
			if test.name == "another revision" {
				if len(found) < 10 {
					t.Errorf("only %v", found)
				}
				return
			}
			var got []string
			for _, d := range found {
				got = append(got, d.Path)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, _, err := schema.Verify(load(t, d), own(c, all)); err == nil || !strings.Contains(err.Error(), "there is no official schema of task-patterns: Unofficial.") {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	text, err := schema.List()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, revision := range schema.Revisions() {
		s := load(t, revision)
		if fields := strings.Fields(lines[i]); fmt.Sprint(fields[:2]) != fmt.Sprint([]string{revision, string(s.Standing)}) || !strings.HasSuffix(lines[i], s.About) {
			t.Errorf("%q is not of %s", lines[i], revision)
		}
	}
}
