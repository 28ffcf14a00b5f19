// Package tools_test tests clients that are generated from servers' lists of tools. With -update it writes the golden files.
package tools_test

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	ours "github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

var update = flag.Bool("update", false, "write the golden files")

// TestPipelineList compares pipeline/tools.json with the list of the server of golden/pipeline.
func TestPipelineList(t *testing.T) {
	answers := ours.AnswerApproval(func(context.Context, mcptask.Question) (ours.Approval, error) {
		return ours.Approval{}, mcptask.ErrDeclined
	})
	conn := mcptasktest.Connect(wirecheck.TB(t), "2026-07-28", mcptasktest.Options{Answer: answers}, ours.CITools(nobody{})) // it needs no fallback tools
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
