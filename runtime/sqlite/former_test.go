package sqlite

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestFormerName rolls out a tool with a new name, by two servers on one file: the new one runs the tasks that wait and those
// that the old one leaves, and finds them by their idempotency keys.
func TestFormerName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	serve := func(spec mcptask.ToolSpec, handler func(context.Context, *mcptask.Task, struct{}) (string, error)) *taskserver.Server {
		store, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		spec.InputSchema, spec.Policy = mcptask.NoArguments, mcptask.Policy{OnLost: mcptask.RestartWhenLost}
		s, err := taskserver.New(taskserver.Options{Store: store, Concurrency: 1}, mcptask.Tools{Service: "S", Impl: 1, Tools: []mcptask.Tool{mcptask.NewTool(spec, handler)}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = s.Close(), store.Close() })
		return s
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	caller := taskserver.Caller{Principal: "p", Local: true, Revision: mcptask.Revision20251125}
	call := func(s *taskserver.Server, tool, key string) taskstore.Record {
		t.Helper()
		reply, err := s.Backend().Call(ctx, caller, tool, json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask, IdempotencyKey: key})
		if err != nil || reply.Task == nil {
			t.Fatalf("%+v, %v", reply, err)
		}
		return *reply.Task
	}
	old := serve(mcptask.ToolSpec{Name: "old"}, func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	runs, waits := call(old, "old", "runs"), call(old, "old", "waits")
	renamed := serve(mcptask.ToolSpec{Name: "new", Was: []string{"older", "old"}}, func(context.Context, *mcptask.Task, struct{}) (string, error) {
		return "done", nil
	})
	wantEnd := func(id string) {
		t.Helper()
		if r, err := renamed.Backend().Await(ctx, caller, id); err != nil || r.Tool != "old" || r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("%+v, %v", r, err)
		}
	}
	wantEnd(waits.ID)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	wantEnd(runs.ID)
	if a, b := call(renamed, "old", "runs"), call(renamed, "new", "waits"); a.ID != runs.ID || b.ID != waits.ID {
		t.Errorf("the keys have the tasks %s and %s", a.ID, b.ID)
	}
	if r := call(renamed, "old", "another"); r.Tool != "new" || r.ID == runs.ID {
		t.Errorf("%+v", r)
	}
}
