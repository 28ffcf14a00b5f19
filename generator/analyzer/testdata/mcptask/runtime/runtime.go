// Package mcptask has the names of the runtime that the analyzers know it by.
package mcptask

import "context"

type Task struct{}

func (*Task) Progress(ctx context.Context, done, total float64, message string) {}

func (*Task) Message(ctx context.Context, message string) {}

func (*Task) Sample(ctx context.Context, step string, request any) (string, error) { return "", nil }

func (*Task) Roots(ctx context.Context, step string) ([]string, error) { return nil, nil }

func (*Task) AskURL(ctx context.Context, step, message, url string) error { return nil }

func Ask[T any](ctx context.Context, task *Task, input InputSpec, step, message string) (T, error) {
	var zero T
	return zero, nil
}

type (
	InputSpec struct{}
	Result    struct{}
	Tool      struct{}
	ToolSpec  struct{}
	Tools     struct{ Impl any }
)

func NewTool[In, Out any](spec ToolSpec, handler func(context.Context, *Task, In) (Out, error)) Tool {
	return Tool{}
}
