package schemafile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/schemafile"
)

// TestBadFiles checks the messages for files that are not schemas of tasks: the name, the
// position, and how to get a valid file.
func TestBadFiles(t *testing.T) {
	ours, err := os.ReadFile("../../../schema/2025-11-25/tasks.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	const published = "take it from github.com/modelcontextprotocol/modelcontextprotocol, schema/REVISION/schema.json"
	const core = `{"$defs": {"ServerCapabilities": {"type": "object", "properties": {"extensions": {"type": "object"}}}}}`
	const extension = `{"$defs": {"Task": {"type": "object"}}}`
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string // without the source lines that diag shows
	}{
		{"not JSON", map[string]string{"a.json": "{\n  \"$defs\": oops\n}"},
			"a.json:2:12: this is not JSON: invalid character 'o' looking for beginning of value\n\thint: " + published},
		{"HTML", map[string]string{"a.json": "<!DOCTYPE html>"},
			"a.json:1:1: this is not JSON: invalid character '<' looking for beginning of value\n\thint: " + published},
		{"empty", map[string]string{"a.json": ""},
			"a.json: the file holds 0 JSON values; a schema file holds one\n\thint: " + published},
		{"truncated", map[string]string{"a.json": string(ours[:5000])},
			"a.json:140:29: the file ends inside a JSON value\n\thint: " + published},
		{"an array", map[string]string{"a.json": "[]"}, "a.json: not a JSON object\n\thint: " + published},
		{"not a schema", map[string]string{"a.json": `{"name": "x"}`},
			`a.json: no "$defs" and no "definitions": this is not an MCP schema file` + "\n\thint: " + published},
		{"definitions that are no object", map[string]string{"a.json": `{"$defs": 5}`}, "a.json: $defs: not a JSON object\n\thint: " + published},
		{"a reference to nothing", map[string]string{"a.json": `{"$defs": {"Task": {"$ref": "#/$defs/Job"}}}`},
			"a.json: Task.$ref: #/$defs/Job does not lead to a definition of the same file" + "\n\thint: " + published},
		{"a circle", map[string]string{"a.json": `{"$defs": {"Task": {"$ref": "#/$defs/Job"}, "Job": {"$ref": "#/$defs/Task"}}}`},
			"a.json: Task: the definition refers to itself: Task -> Job -> Task\n\thint: " + published},
		{"another schema", map[string]string{"a.json": `{"$defs": {"Pet": {"type": "object"}}}`},
			"a.json: this is a JSON Schema but not an MCP schema: it defines neither tasks nor capabilities; " + published},
		{"without tasks", map[string]string{"a.json": `{"definitions": {"ServerCapabilities": {"type": "object"}, "JSONRPCMessage": {}}}`},
			"a.json: this MCP schema has no tasks; the first revision with tasks is 2025-11-25: " + published},
		{"the core of an extension", map[string]string{"a.json": core},
			"a.json: this revision defines its tasks in an extension; add the extension's file with another --schema: github.com/modelcontextprotocol/ext-tasks, schema/2026-07-28/schema.json"},
		{"two of the extension", map[string]string{"a.json": extension, "b.json": extension},
			"b.json: a.json is the same part of a revision; give only one of them"},
		{"two cores", map[string]string{"a.json": core, "b.json": core},
			"b.json: a.json is the same part of a revision; give only one of them"},
		{"nowhere", map[string]string{}, "a.json: the file does not exist\n\thint: " + published},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			names := []string{"a.json"}
			for name, text := range test.files {
				write(t, dir, name, []byte(text))
				if name != "a.json" {
					names = append(names, name)
				}
			}
			_, err := schemafile.Read(dir, names)
			if err == nil {
				t.Fatal("Read accepts the file")
			}
			var lines []string
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "\thint: ") {
					lines = append(lines, line)
				}
			}
			if got := strings.Join(lines, "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// TestLargeFile checks that a file too large for a schema is not read into memory.
func TestLargeFile(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "large.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(50 << 20); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = schemafile.Read(dir, []string{"large.json", dir})
	const want = "large.json: the file has 50 MB; published schemas have less than one, and the limit is 8\n\thint: "
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "this is a directory, not a schema file") {
		t.Errorf("got %v", err)
	}
}

// TestDeepFile checks that deeply nested files are refused, and that reading those just below
// the limit ends soon.
func TestDeepFile(t *testing.T) {
	dir := t.TempDir()
	deep := func(depth int) string {
		text := `{"$defs": {"JSONRPCMessage": {}, "Task": ` + strings.Repeat(`{"anyOf": [{"type": "string", "minLength": 1}, `, depth) + `{}` + strings.Repeat(`]}`, depth) + `}}`
		return write(t, dir, "deep.json", []byte(text))
	}
	_, err := schemafile.Read(dir, []string{deep(4000)})
	if err == nil || !strings.Contains(err.Error(), "deep.json:1:4659: the values nest deeper than 200") {
		t.Errorf("got %v", err)
	}
	schemas, err := schemafile.Read(dir, []string{deep(90)})
	if err != nil || schemas[0].Fits() {
		t.Errorf("Read takes the file for a known revision: %v", err)
	}
}

// TestReadCommas checks the hint for files that are separated by commas, as revisions may be.
func TestReadCommas(t *testing.T) {
	if _, err := schemafile.Read(t.TempDir(), []string{"a.json,b.json"}); err == nil || !strings.Contains(err.Error(), "repeat --schema for each file") {
		t.Error(err)
	}
}
