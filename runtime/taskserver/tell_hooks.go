package taskserver

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/hook"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// tellHooksOfServer tells hooks that the server is ready.
func (b *Backend) tellHooksOfServer() {
	for _, h := range b.options.Hooks {
		if h.Server != nil {
			hook.Tell(b.logger, func() { h.Server(b.server) })
		}
	}
}

// BeginRequest tells the server's hooks of a request that a gateway is about to answer. The gateway answers it with the
// context that BeginRequest returns, and then calls end once.
func (b *Backend) BeginRequest(ctx context.Context, info RequestInfo) (_ context.Context, end func(RequestResult)) {
	return hook.Call(ctx, b.logger, b.options.Hooks, func(h *Hooks) hook.Begin[RequestInfo, RequestResult] { return h.Request }, info)
}

// hookRun tells hooks of a run.
func (b *Backend) hookRun(ctx context.Context, info RunInfo) (_ context.Context, end func(RunResult)) {
	return hook.Call(ctx, b.logger, b.options.Hooks, func(h *Hooks) hook.Begin[RunInfo, RunResult] { return h.Run }, info)
}

// newRunResult returns the result of a run for the hooks. Even the context of a run that ended by itself is cancelled
// by then, so that cause is left out.
func newRunResult(ctx context.Context, outcome taskstore.Outcome) RunResult {
	cause := context.Cause(ctx)
	if outcome.Kind != taskstore.OutcomeCancelled && errors.Is(cause, context.Canceled) {
		cause = nil
	}
	return RunResult{outcome, cause}
}

// hookQuestion tells hooks that a handler waits for an answer.
func (b *Backend) hookQuestion(ctx context.Context, task taskstore.Record, in mcptask.Request) (_ context.Context, end func(error)) {
	ctx, ended := hook.Call(ctx, b.logger, b.options.Hooks, func(h *Hooks) hook.Begin[QuestionInfo, error] { return h.Question },
		QuestionInfo{Task: task, Key: in.Key, Method: in.Method})
	return ctx, func(err error) {
		if errors.Is(err, errParked) {
			err = mcptask.ErrSuperseded // another run goes on with the task
		}
		ended(err)
	}
}

// hookStep tells hooks that a handler begins a step. end returns the error of the step. That is ErrSuperseded if
// another run has the task by then.
func (b *Backend) hookStep(ctx context.Context, info StepInfo) (_ context.Context, end func(error) error) {
	ctx, ended := hook.Call(ctx, b.logger, b.options.Hooks, func(h *Hooks) hook.Begin[StepInfo, error] { return h.Step }, info)
	return ctx, func(err error) error {
		ended(err)
		if cause := context.Cause(ctx); err == nil && errors.Is(cause, mcptask.ErrSuperseded) {
			return cause
		}
		return err
	}
}

// hookAsk returns ask, which may be nil, with the hooks of questions around it.
func (b *Backend) hookAsk(task taskstore.Record, ask askFunc) askFunc {
	if ask == nil || len(b.options.Hooks) == 0 {
		return ask
	}
	return func(ctx context.Context, in mcptask.Request) (response json.RawMessage, err error) {
		ctx, end := b.hookQuestion(ctx, task, in)
		defer func() { end(err) }()
		err = errNoReturn
		response, err = ask(ctx, in)
		return response, err
	}
}

// errNoReturn is the error of a call that has not returned: it has panicked, or ended its goroutine.
var errNoReturn = errors.New("mcptask: it did not return")

// hookStore makes a call of the store, with the hooks around it.
func hookStore[T any](ctx context.Context, b *Backend, name string, call func(context.Context) (T, error)) (v T, err error) {
	if len(b.options.Hooks) == 0 {
		return call(ctx)
	}
	ctx, end := hook.Call(ctx, b.logger, b.options.Hooks, func(h *Hooks) hook.Begin[string, error] { return h.Store }, name)
	defer func() { end(err) }()
	err = errNoReturn
	v, err = call(ctx)
	return v, err
}

// tellHooks tells hooks of a change of a task, unless it has no kind.
func (b *Backend) tellHooks(ctx context.Context, e TaskEvent) {
	if e.Kind == "" {
		return
	}
	for i := range b.options.Hooks {
		if told := b.options.Hooks[i].Task; told != nil {
			hook.Tell(b.logger, func() { told(ctx, e) })
		}
	}
}

// tellHooksOfLimit tells hooks that a limit has refused something.
func (b *Backend) tellHooksOfLimit(ctx context.Context, name string) {
	for i := range b.options.Hooks {
		if told := b.options.Hooks[i].Limit; told != nil {
			hook.Tell(b.logger, func() { told(ctx, name) })
		}
	}
}
