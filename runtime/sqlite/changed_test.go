package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestChangedTool opens the tasks of a program whose next version declares the input of one tool and the question of another
// anew.
func TestChangedTool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}
	open := func(input, form string) (tasks *taskserver.Backend, closeAll func()) {
		store, err := sqlite.Open(path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(ctx context.Context, task *mcptask.Task, _ map[string]any) (map[string]any, error) {
			return mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "Approval", Schema: form}, "ship", "")
		}
		server, err := taskserver.New(taskserver.Options{Store: store}, mcptask.Tools{Service: "S", Impl: 1, Tools: []mcptask.Tool{
			mcptask.NewTool(mcptask.ToolSpec{Name: "input", InputSchema: input, Policy: policy}, ask),
			mcptask.NewTool(mcptask.ToolSpec{Name: "form", InputSchema: `{"type":"object"}`, Policy: policy}, ask),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return server.Backend(), func() {
			if err := errors.Join(server.Close(), store.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	caller := taskserver.Caller{Principal: "p", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}
	awaitKey := func(tasks *taskserver.Backend, id, key string) {
		t.Helper()
		r, err := tasks.Get(t.Context(), caller, id)
		for err == nil && (len(r.Outstanding()) != 1 || r.Outstanding()[0].Key != key) && !r.Done() {
			r, err = tasks.Changed(t.Context(), caller, id, r.Version)
		}
		if err != nil || r.Done() {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	ids := map[string]string{}
	before, closeBefore := open(`{"type":"object"}`, `{"type":"object","properties":{"approve":{"type":"boolean"}}}`)
	for _, tool := range []string{"input", "form"} {
		reply, err := before.Call(t.Context(), caller, tool, json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		ids[tool] = reply.Task.ID
		awaitKey(before, ids[tool], "ship")
	}
	closeBefore()
	now, closeNow := open(`{"type":"object","required":["codec"]}`, `{"type":"object","properties":{"paid":{"type":"boolean"}},"required":["paid"]}`)
	defer closeNow()
	if r, err := now.Await(t.Context(), caller, ids["input"]); err != nil || !errors.Is(r.Outcome.Error, mcptask.ErrChanged) {
		t.Errorf("%+v, %v", r.Outcome, err)
	}
	awaitKey(now, ids["form"], "ship~form2")
	// The person has the old form open, and happens to know better.
	if err := now.Answer(t.Context(), caller, ids["form"], map[string]json.RawMessage{"ship": json.RawMessage(`{"action":"accept","content":{"paid":true}}`)}); err != nil {
		t.Fatal(err)
	}
	if r, err := now.Await(t.Context(), caller, ids["form"]); err != nil || string(r.Outcome.Result) != `{"content":[{"text":"{\"paid\":true}","type":"text"}],"structuredContent":{"paid":true}}` {
		t.Errorf("%+v, %v", r.Outcome, err)
	}
}
