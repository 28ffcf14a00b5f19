package wiretest

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Secret is in everything that the victim sends and receives.
const Secret = "victims-secret"

// SecretTools returns tools that tell each principal a secret of its own.
func SecretTools() mcptask.Tools {
	own := func(task *mcptask.Task) string { return task.Principal() + "s-secret" }
	policy := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 100 * time.Millisecond}
	return mcptask.Tools{Service: "Secret", Impl: struct{}{}, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "secret_ask", InputSchema: OpenObject, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[NoteInput](ctx, task, NoteSpec, "step", own(task))
				return own(task) + answer.Note, err
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "secret_done", InputSchema: OpenObject, Policy: policy},
			func(_ context.Context, task *mcptask.Task, _ struct{}) (string, error) { return own(task), nil }),
		mcptask.NewTool(mcptask.ToolSpec{Name: "secret_work", InputSchema: OpenObject, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				task.Message(ctx, own(task))
				<-ctx.Done()
				return own(task), ctx.Err()
			}),
	}}
}
