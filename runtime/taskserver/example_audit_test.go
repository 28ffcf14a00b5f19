package taskserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Records of the audit trail have the attribute audit. Here they go to a handler of their own,
// without the values that differ from run to run.
func ExampleOptions_audit() {
	trail := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "task" || a.Key == "seconds" {
				return slog.Attr{}
			}
			return a
		},
	}))
	tasks, err := taskserver.New(taskserver.Options{Logger: trail, Limits: taskserver.Limits{Tasks: 1}}, mcptask.Tools{
		Service: "Greeter", Impl: struct{}{}, Tools: []mcptask.Tool{
			mcptask.NewTool(mcptask.ToolSpec{Name: "greet", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
				func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				}),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()

	// A gateway does this for its callers.
	ctx := context.Background()
	alice := taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728}
	mallory := taskserver.Caller{Principal: "mallory", Revision: mcptask.Revision20251125}
	reply, err := tasks.Backend().Call(ctx, alice, "greet", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = tasks.Backend().Get(ctx, mallory, reply.Task.ID)
	_, _, _ = tasks.Backend().Cancel(ctx, alice, reply.Task.ID)
	_, _ = tasks.Backend().Call(ctx, alice, "greet", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})

	// Output:
	// level=INFO msg="task created" audit=created tool=greet principal=alice revision=2026-07-28
	// level=WARN msg="task asked for by a stranger" audit=stranger tool=greet principal=mallory revision=2025-11-25 owner=alice method=""
	// level=INFO msg="task ended" audit=ended tool=greet principal=alice revision=2026-07-28 outcome=cancelled
	// level=WARN msg="limit exceeded" audit=limit limit=tasks max=1 option=Limits.Tasks principal=alice revision=2026-07-28 tool=greet
}
