package taskserver

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestStaleTasks checks that a server counts the tasks whose tools nobody has, and those whose arguments no longer fit,
// half a minute after its start and then every five minutes, and that it says so each hour while there are any.
func TestStaleTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, TTL: 48 * time.Hour}
		store := taskstore.NewMemory()
		first := newServer(t, Options{Store: store, Concurrency: 100}, numberTool("gone", policy, hang), numberTool("kept", policy, hang), numberTool("taken", policy, hang))
		ids := map[string]string{}
		for _, tool := range []string{"gone", "gone", "kept", "taken"} {
			ids[tool] = begin(t, first, alice, tool).ID
		}
		synctest.Wait()
		if err := first.server.Close(); err != nil {
			t.Fatal(err)
		}
		newServer(t, Options{Store: store}, numberTool("taken", policy, hang)) // it lives, and has the tool
		var log logged
		narrow := mcptask.ToolSpec{Name: "kept", InputSchema: `{"type":"object","properties":{"codec":{}},"required":["codec"]}`, Policy: policy}
		executor := func(RunFunc) (Executor, error) { return idleExecutor{}, nil } // it runs nothing
		second := newServer(t, Options{Store: store, Logger: log.logger(), Executor: executor}, mcptask.NewTool(narrow, echo))
		time.Sleep(leaseFor + time.Second)
		if found := second.server.StaleTasks(); fmt.Sprint(found) != "{map[gone:2] map[kept:1]}" {
			t.Errorf("%+v", found)
		}
		for tool, want := range map[string]string{"gone": `no server is known to have its tool "gone"`, "kept": `started under another declaration: missing property "codec"`, "taken": ""} {
			if r, err := second.Get(t.Context(), alice, ids[tool]); err != nil || second.Stale(&r) != want {
				t.Errorf("%s: %q, %v", tool, second.Stale(&r), err)
			}
		}
		const line = "no_tool=2 tools=[gone] changed=1 changed_tools=[kept]"
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%d lines: %s", n, &log)
		}
		time.Sleep(staleLog + staleEvery)
		if n := strings.Count(log.String(), line); n != 2 {
			t.Errorf("%d lines after an hour: %s", n, &log)
		}
		page, _, err := second.List(t.Context(), alice, taskstore.Position{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page {
			if r.Tool != "taken" {
				if _, _, err := second.Cancel(t.Context(), alice, r.ID); err != nil {
					t.Error(err)
				}
			}
		}
		time.Sleep(staleLog + staleEvery)
		if found := second.server.StaleTasks(); len(found.Unserved)+len(found.Changed) != 0 || strings.Count(log.String(), line) != 2 {
			t.Errorf("%+v, %s", found, &log)
		}
	})
}

// idleExecutor takes tasks and runs none.
type idleExecutor struct{}

func (idleExecutor) Submit(context.Context, Submission) error { return nil }
func (idleExecutor) Close(context.Context) error              { return nil }
