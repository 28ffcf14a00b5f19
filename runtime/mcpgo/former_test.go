package mcpgo_test

import (
	"context"
	"slices"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestFormerName checks that a call under a former name of a tool is one of the tool, and that mcp-go lists only the name of
// today.
func TestFormerName(t *testing.T) {
	spec := mcptask.ToolSpec{Name: "new", Was: []string{"old"}, InputSchema: mcptask.NoArguments, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}
	tool := mcptask.NewTool(spec, func(context.Context, *mcptask.Task, struct{}) (string, error) { return "done", nil })
	tasks, s := newServer(t, taskserver.Options{}, mcptask.Tools{Service: "S", Impl: 1, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{tool}})
	url := serve(t, tasks, s)
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			conn := connect(t, url, revision)
			for name, options := range map[string][]mcptask.CallOption{"a task": nil, "plain": {mcptask.Plain()}} {
				if text, err := mcptask.Run[string](ctx, conn, "old", struct{}{}, options...); err != nil || text != "done" {
					t.Errorf("%s: %q, %v", name, text, err)
				}
			}
			tools, err := conn.ListTools(ctx)
			if err != nil || slices.ContainsFunc(tools, func(tool mcptask.ToolInfo) bool { return tool.Name == "old" }) {
				t.Errorf("%+v, %v", tools, err)
			}
		})
	}
}
