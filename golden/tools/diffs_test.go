package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/diffs"
)

// TestDiffs changes the list of issues. A reviewer of the generated client reads only the changes: the unified diff
// after each edit is the one in diffs. An edit without a diff there changes nothing.
func TestDiffs(t *testing.T) {
	list, err := os.ReadFile("issues/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile("issues/tools_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	const (
		newTool = `{"name": "close_issue", "description": "Closes an issue.", "inputSchema": {"type": "object", ` +
			`"properties": {"number": {"type": "integer"}}, "required": ["number"]}, "execution": {"taskSupport": "forbidden"}}`
		lastTool = `{"name": "whoami", "inputSchema": {"type": "object", "properties": {}}}`
	)
	set := diffs.New(t, "diffs", *update)
	for _, test := range []struct {
		name, from, to string
	}{
		{"rename-property", `"labels": {"type": "array", "items": {"type": "string"}, "description": "Names of labels"}`, `"topics": {"type": "array", "items": {"type": "string"}, "description": "Names of labels"}`},
		{"rename-property-longer", `"milestone": {"type"`, `"milestone_number": {"type"`}, // gofmt aligns those beside it
		{"add-property", `"number": {"type": "integer"},
                  "title"`, `"number": {"type": "integer"},
                  "draft": {"type": "boolean"},
                  "title"`},
		{"change-tool-description", "Opens an issue", "Opens an issue and tells its assignees"},
		{"change-property-description", "Cursor of the next page", "Where the next page begins"},
		{"change-default", `"default": 30`, `"default": 50`},
		{"change-hint", `"destructiveHint": false`, `"destructiveHint": true`},
		{"change-pattern", "^[0-9a-f]{6}$", "^[0-9a-f]{8}$"},
		{"forbid-tasks", `"execution": {"taskSupport": "optional"}`, `"execution": {"taskSupport": "forbidden"}`},
		{"add-tool", lastTool, newTool + ",\n      " + lastTool},
		{"add-tool-last", lastTool, lastTool + ",\n      " + newTool},
		{"another-id", `"id": 2`, `"id": 3`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !strings.Contains(string(list), test.from) {
				t.Fatalf("the list does not say %q", test.from)
			}
			dir := filepath.Join(t.TempDir(), "issues")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "tools.json")
			if err := os.WriteFile(path, []byte(strings.Replace(string(list), test.from, test.to, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := generator.Generate(t.Context(), generator.Config{Flags: commandline.Flags{Tools: path}})
			if err != nil {
				t.Fatal(err)
			}
			for _, after := range out.Files {
				diffs.CheckLayout(t, test.name, string(after))
				set.Check(t, test.name, "tools_gen.go", string(before), string(after))
			}
		})
	}
}
