// Package steps asks questions.
package steps

import (
	"context"
	"errors"
	"os"

	"example.com/app/ci"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const ship = "ship"

func twice(ctx context.Context, task *mcptask.Task) {
	_, _ = ci.AskApproval(ctx, task, "ship", "Ship it?")
	_, _ = mcptask.Ask[ci.Approval](ctx, task, mcptask.InputSpec{}, ship, "Really?") // want `the step "ship" also names the question on line 16: when the handler runs again, one may get the other's answer; give each question its own step name`
	_, _ = ci.AskApproval(ctx, task, "sh"+"ip", "Really, really?")                   // want `the step "ship" also names the question on line 16`
}

func kinds(ctx context.Context, task *mcptask.Task) {
	_, _ = task.Sample(ctx, "a", nil)
	_, _ = task.Roots(ctx, "a")             // want `the step "a" also names the question on line 22`
	_ = (task).AskURL(ctx, "a", "open", "") // want `the step "a" also names the question on line 22`
	_, _ = task.Roots(ctx, "b")
	_ = task.AskURL(ctx, "c", "a", "a")
}

func names(ctx context.Context, task, other *mcptask.Task, name string) {
	_, _ = task.Roots(ctx, "a")
	_, _ = other.Roots(ctx, "a")
	_, _ = task.Roots(ctx, name)
	_, _ = task.Roots(ctx, name)
	_, _ = task.Roots(ctx, "a"+name)
}

// again asks on purpose: the answers are kept in the order of the questions.
func again(ctx context.Context, task *mcptask.Task) {
	for range 3 {
		if _, err := ci.AskApproval(ctx, task, "ship", "Ship it?"); err == nil {
			return
		}
	}
}

// one asks one of them.
func one(ctx context.Context, task *mcptask.Task, production bool) error {
	if production {
		_, err := ci.AskApproval(ctx, task, "ship", "To production?")
		return err
	} else if task == nil {
		panic(task.AskURL(ctx, "ship", "Nowhere?", ""))
	}
	switch {
	case os.Args == nil:
		_, _ = ci.AskApproval(ctx, task, "ship", "At all?")
		os.Exit(1)
	case len(os.Args) > 1:
		_, _ = ci.AskApproval(ctx, task, "ship", "To staging?")
	default:
		_, _ = ci.AskApproval(ctx, task, "ship", "To testing?")
	}
	return nil
}

// retry asks the second after the first.
func retry(ctx context.Context, task *mcptask.Task) error {
	_, err := ci.AskApproval(ctx, task, "ship", "Ship it?")
	if errors.Is(err, os.ErrClosed) {
		_, err = ci.AskApproval(ctx, task, "ship", "Ship it after all?") // want `the step "ship" also names the question on line 68`
	}
	return err
}

// turns asks both, in one turn of the loop and in another.
func turns(ctx context.Context, task *mcptask.Task) {
	for i := range 2 {
		if i == 0 {
			_, _ = task.Roots(ctx, "a")
		} else {
			_, _ = task.Roots(ctx, "a") // want `the step "a" also names the question on line 79`
		}
	}
}

func literals(ctx context.Context, task *mcptask.Task, production bool) {
	ask := func() { _, _ = task.Roots(ctx, "a") }
	ask()
	_, _ = task.Roots(ctx, "a") // want `the step "a" also names the question on line 87`
	func() {
		_, _ = task.Roots(ctx, "b")
		_, _ = task.Roots(ctx, "b") // want `the step "b" also names the question on line 91`
	}()
	if production {
		func() { _, _ = task.Roots(ctx, "c") }()
	} else {
		func() { _, _ = task.Roots(ctx, "c") }()
	}
	_ = []func(*mcptask.Task){
		func(task *mcptask.Task) { _, _ = task.Roots(ctx, "d") },
		func(task *mcptask.Task) { _, _ = task.Roots(ctx, "d") },
	}
}
