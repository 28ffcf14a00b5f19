package taskserver_test

import (
	"context"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestEntries checks which fields a tool takes from its entry, and which entries New refuses.
func TestEntries(t *testing.T) {
	serve := func(spec mcptask.ToolSpec) (*taskserver.Server, error) {
		tool := mcptask.NewTool(spec, func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
		return taskserver.New(taskserver.Options{}, mcptask.Tools{Service: "S", Impl: t, Tools: []mcptask.Tool{tool}})
	}
	const entry = `{"name": "dig", "title": "Dig", "description": "Digs.", "inputSchema": {"type": "object"}, "icons": [],
		"annotations": {"readOnlyHint": false}, "execution": {"taskSupport": "required"}}`
	s, err := serve(mcptask.ToolSpec{Entry: entry})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, ok := s.Backend().Tool("dig")
	if !ok || got.Title != "Dig" || got.Description != "Digs." || got.InputSchema != `{"type": "object"}` || got.Policy.Task != mcptask.TaskRequired ||
		got.Annotations.ReadOnly == nil || *got.Annotations.ReadOnly || got.Entry != entry {
		t.Errorf("the tool is %+v", got)
	}
	for want, spec := range map[string]mcptask.ToolSpec{
		"its Entry is not that of a tool":                                  {Entry: `{"name": 1}`},
		"its spec has an Entry and other fields":                           {Entry: entry, Description: "Digs."},
		"its Policy has the task support forbidden and its Entry required": {Entry: entry, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}},
		`tool "dig": input schema: it is not JSON`:                         {Entry: `{"name": "dig"}`},
		`tool "dig": input schema: its root must have "type": "object"`:    {Entry: `{"name": "dig", "inputSchema": {"type": "array"}}`},
		"its Entry is not that of a tool: unexpected end":                  {Entry: `{`},
		"its name is not 1 to 128 letters":                                 {Entry: `{}`},
	} {
		if s, err := serve(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", spec, err, want)
			if s != nil {
				s.Close()
			}
		}
	}
}

func TestToolNames(t *testing.T) {
	long := strings.Repeat("a", 128)
	for name, fits := range map[string]bool{"dig": true, "Dig_2.old-way": true, long: true, long + "a": false, "": false, "a b": false, "dig\n": false, "größe": false} {
		spec := mcptask.ToolSpec{Name: name, InputSchema: `{"type": "object"}`}
		tool := mcptask.NewTool(spec, func(context.Context, *mcptask.Task, struct{}) (string, error) { return "", nil })
		s, err := taskserver.New(taskserver.Options{}, mcptask.Tools{Service: "S", Impl: t, Tools: []mcptask.Tool{tool}})
		if (err == nil) != fits {
			t.Errorf("the name %q: %v", name, err)
		}
		if s != nil {
			s.Close()
		}
	}
}
