// Package tools_test regenerates the clients below this folder and compares every byte. With -update
// it writes what it got, and the list of the server of ours that one of them is for.
package tools_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
	ours "github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

var update = flag.Bool("update", false, "write the golden files")

// cases are the packages by the configuration that their go:generate lines give.
var cases = []generator.ToolsConfig{
	{File: "issues/tools.json"},
	{File: "notes/notes.json"},
	{File: "nasty/tools.json"},
	{File: "pipeline/tools.json", Service: "Jobs"},
}

// TestPackages generates each client twice.
func TestPackages(t *testing.T) {
	lists, err := filepath.Glob("*/*.json")
	if err != nil || len(lists) != len(cases) {
		t.Fatalf("%d lists and %d cases: %v", len(lists), len(cases), err)
	}
	for _, config := range cases {
		t.Run(filepath.Dir(config.File), func(t *testing.T) {
			first, err := generator.GenerateTools(config)
			if err != nil {
				t.Fatal(err)
			}
			second, err := generator.GenerateTools(config)
			if d := cmp.Diff(first.Files, second.Files); d != "" || err != nil {
				t.Errorf("two runs differ: %v (-first +second):\n%s", err, d)
			}
			if *update {
				if _, err := first.Write(); err != nil {
					t.Fatal(err)
				}
			}
			for path, content := range first.Files {
				old, err := os.ReadFile(path)
				if d := cmp.Diff(strings.Split(string(old), "\n"), strings.Split(string(content), "\n")); d != "" || err != nil {
					t.Errorf("%s is stale: %v (-committed +generated):\n%s", path, err, d)
				}
				checkLayout(t, path, content)
			}
		})
	}
}

// checkLayout holds the limits on what a reviewer has to read.
func checkLayout(t *testing.T, path string, content []byte) {
	t.Helper()
	formatted, err := format.Source(content)
	if err != nil || !bytes.Equal(formatted, content) {
		t.Errorf("gofmt changes %s: %v (-generated +formatted):\n%s", path, err, cmp.Diff(string(content), string(formatted)))
	}
	for i, line := range strings.Split(string(content), "\n") {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Errorf("%s:%d has %d columns:\n%s", path, i+1, n, line)
		}
		if comment := strings.TrimLeft(line, "\t"); strings.HasPrefix(comment, "// ") && utf8.RuneCountInString(comment) > 97 {
			t.Errorf("%s:%d is a comment of more than 97 columns:\n%s", path, i+1, comment)
		}
	}
}

// TestListOfOurs compares the list of the pipeline's case with what the server says.
func TestListOfOurs(t *testing.T) {
	conn := mcptasktest.Connect(wirecheck.TB(t), "2026-07-28", mcptasktest.Options{}, ours.CITools(nobody{}))
	infos, err := conn.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type execution struct {
		TaskSupport mcptask.TaskSupport `json:"taskSupport"`
	}
	type tool struct {
		Name         string          `json:"name"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Execution    *execution      `json:"execution,omitempty"`
	}
	var list []tool
	for _, info := range infos {
		item := tool{info.Name, info.Description, info.InputSchema, info.OutputSchema, nil}
		if info.TaskSupport != "" {
			item.Execution = &execution{info.TaskSupport}
		}
		list = append(list, item)
	}
	want, err := json.MarshalIndent(map[string]any{"tools": list}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const path = "pipeline/tools.json"
	if *update {
		if err := os.WriteFile(path, append(want, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if d := cmp.Diff(string(want)+"\n", string(got)); d != "" || err != nil {
		t.Errorf("%s is stale: %v (-server +file):\n%s", path, err, d)
	}
}

// nobody has tools that are not called.
type nobody struct{ ours.CI }
