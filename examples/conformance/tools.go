package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/conformance/fixture"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// tools implements the fixture.
type tools struct{}

// Greet implements fixture.Fixture.
func (tools) Greet(_ context.Context, in fixture.GreetInput) (string, error) {
	return fmt.Sprintf("Hello, %s!", in.Name), nil
}

// SlowCompute implements fixture.Fixture.
func (tools) SlowCompute(ctx context.Context, _ *mcptask.Task, in fixture.SlowComputeInput) (string, error) {
	if err := sleep(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
		return "", err
	}
	return fmt.Sprintf("computed %s in %v s", in.Label, in.Seconds), nil
}

// FailingJob implements fixture.Fixture.
func (tools) FailingJob(ctx context.Context, _ *mcptask.Task) (string, error) {
	if err := sleep(ctx, time.Second); err != nil {
		return "", err
	}
	return "", errors.New("the job failed, as it always does")
}

// ProtocolErrorJob implements fixture.Fixture.
func (tools) ProtocolErrorJob(context.Context, *mcptask.Task) (string, error) {
	panic("the job breaks, as it always does")
}

// ConfirmDelete implements fixture.Fixture.
func (tools) ConfirmDelete(ctx context.Context, task *mcptask.Task, in fixture.ConfirmDeleteInput) (string, error) {
	answer, err := fixture.AskConfirmation(ctx, task, "confirm", fmt.Sprintf("Delete %s?", in.Filename))
	if err != nil {
		return "", err
	}
	if !answer.Confirm {
		return in.Filename + " was kept", nil
	}
	return in.Filename + " was deleted", nil
}

// MultiInput implements fixture.Fixture.
func (tools) MultiInput(ctx context.Context, task *mcptask.Task) (string, error) {
	type named struct {
		part fixture.PartName
		err  error
	}
	second := make(chan named, 1)
	go func() {
		part, err := fixture.AskPartName(ctx, task, "second", "The second name?")
		second <- named{part, err}
	}()
	first, err := fixture.AskPartName(ctx, task, "first", "The first name?")
	other := <-second
	if err := errors.Join(err, other.err); err != nil {
		return "", err
	}
	return first.Name + " and " + other.part.Name, nil
}

// TestToolWithTask implements fixture.Fixture.
func (tools) TestToolWithTask(_ context.Context, _ *mcptask.Task, who fixture.PartName) (string, error) {
	return "Hello, " + who.Name + ", from a task", nil
}

// sleep waits, or ends with the context.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
