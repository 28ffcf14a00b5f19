package taskserver_test

import (
	"context"
	"encoding/json"
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A hook counts how tasks end. Records have arguments, results and whole IDs: count, and do not export them.
func ExampleHooks() {
	ends := make(chan string, 10)
	hooks := taskserver.Hooks{
		Task: func(_ context.Context, e taskserver.TaskEvent) {
			if e.Kind == taskstore.EventEnded {
				ends <- e.Task.Tool + " " + e.Outcome
			}
		},
	}
	tasks, err := taskserver.New(taskserver.Options{Hooks: []taskserver.Hooks{hooks}}, mcptask.Tools{
		Service: "Greeter", Impl: struct{}{}, Tools: []mcptask.Tool{
			mcptask.NewTool(mcptask.ToolSpec{Name: "greet", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
				func(context.Context, *mcptask.Task, struct{}) (string, error) { return "hello", nil }),
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()
	alice := taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728} // a gateway does this for its callers
	if _, err := tasks.Backend().Call(context.Background(), alice, "greet", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-ends)
	// Output: greet result
}
