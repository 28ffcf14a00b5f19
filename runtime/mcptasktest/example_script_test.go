package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
)

// release asks a person for approval, the client's model for a text, and a person to pay.
func release(ctx context.Context, task *mcptask.Task) (string, error) {
	if _, err := pipeline.AskApproval(ctx, task, "ship", ""); err != nil {
		return "", err
	}
	notes, err := task.Sample(ctx, "notes", mcptask.SampleRequest{
		Messages:  []mcptask.SampleMessage{{Role: "user", Content: []mcptask.Content{mcptask.TextContent("Write the release notes.")}}},
		MaxTokens: 500,
	})
	if err != nil {
		return "", err
	}
	return notes.Content.Text(), task.AskURL(ctx, "pay", "Pay for the servers", "https://example.com/pay")
}

// A script answers each question of a handler.
func ExampleNewTask_everyQuestion() {
	t := new(exampleT) // in a test: its own t
	defer t.end()

	task := mcptasktest.NewTask(t,
		mcptasktest.Accept("ship", pipeline.Approval{Approve: true}),
		mcptasktest.SampleText("notes", "Faster than before."),
		mcptasktest.DeclineURL("pay"),
	)
	notes, err := release(t.Context(), task)
	fmt.Println(notes, errors.Is(err, mcptask.ErrDeclined))

	task = mcptasktest.NewTask(t,
		mcptasktest.Accept("ship", pipeline.Approval{Approve: true}),
		mcptasktest.CannotAsk("notes"), // a client without a model
	)
	_, err = release(t.Context(), task)
	fmt.Println(errors.Is(err, mcptask.ErrCannotAsk))
	// Output:
	// Faster than before. true
	// true
}

// A question without an answer fails the test.
func ExampleNewTask_missing() {
	t := new(exampleT) // in a test: its own t
	defer t.end()

	task := mcptasktest.NewTask(t, mcptasktest.AcceptURL("pay"))
	_, _ = release(t.Context(), task)
	// Output:
	// FAIL: mcptasktest: step "ship" has no scripted answer
	// 	asked: elicitation/create "Ship it?", answered by Approval {approve: boolean}
	// 	at: example_script_test.go:15, called at example_script_test.go:58
	// 	other scripts that are left: mcptasktest.AcceptURL("pay")
	// 	add to NewTask: mcptasktest.Accept("ship", pipeline.Approval{})
}
