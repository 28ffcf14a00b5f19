package mcptask_test

import (
	"context"
	"encoding/json"
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// A hook counts how tasks end. Records have arguments, results and whole IDs: count, and do not export them.
func ExampleHooks() {
	ends := make(chan string, 10)
	hooks := mcptask.Hooks{
		Task: func(_ context.Context, e mcptask.TaskEvent) {
			if e.Kind == mcptask.EventEnded {
				ends <- e.Task.Tool + " " + e.Outcome
			}
		},
	}
	tasks, err := mcptask.NewServer(mcptask.Options{Hooks: []mcptask.Hooks{hooks}}, mcptask.Tools{
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
	alice := mcptask.Caller{Principal: "alice", Revision: mcptask.Revision20260728} // a gateway does this for its callers
	if _, err := tasks.Call(context.Background(), alice, "greet", json.RawMessage(`{}`), mcptask.CallRequest{Mode: mcptask.ModeTask}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-ends)
	// Output: greet result
}
