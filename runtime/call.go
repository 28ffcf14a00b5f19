package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/value"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// Call is a call of a tool with a typed output, finished or not. All methods
// are safe for concurrent use.
type Call[Out any] struct{ pending *pendingCall }

// cancelWithin bounds the cancellation of an abandoned call.
const cancelWithin = 5 * time.Second

// Run calls a tool and waits for its output. If the wait ends first, Run cancels a
// task without an idempotency key, since no caller could resume it.
func Run[Out, In any](ctx context.Context, conn Conn, tool string, in In, opts ...CallOption) (Out, error) {
	call, err := Start[Out](ctx, conn, tool, in, opts...)
	if err != nil {
		var none Out
		return none, err
	}
	out, err := call.Wait(ctx)
	if err != nil && call.pending.spec.IdempotencyKey == "" {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
		defer cancel()
		// The caller gets the first error. The cancellation is best effort.
		_ = call.Cancel(stop)
	}
	return out, err
}

// Start calls a tool and returns as soon as there is a task, or the result.
func Start[Out, In any](ctx context.Context, conn Conn, tool string, in In, opts ...CallOption) (*Call[Out], error) {
	arguments, err := encodeInput(in)
	if err != nil {
		return nil, fmt.Errorf("%s: encode the arguments: %w", tool, err)
	}
	p := newPendingCall(conn, ToolCall{Tool: tool, Arguments: arguments}, opts)
	if err := p.callTool(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	return &Call[Out]{p}, nil
}

// Resume resumes a call by its token. It does not ask the server: if the task is
// gone, the first Wait says so. If several calls resume the same token, each of them
// asks the person.
func Resume[Out any](conn Conn, tool string, token Token, opts ...CallOption) (*Call[Out], error) {
	content, err := decodeToken(token, tool)
	if err != nil {
		return nil, err
	}
	p := newPendingCall(conn, ToolCall{Tool: tool}, opts)
	p.taskID = content.TaskID
	p.expires, p.pace.Last = content.Expires, content.Expires
	return &Call[Out]{p}, nil
}

// TaskID returns the ID of the call's task, or "" if there is none, because the server answered at once.
func (c *Call[Out]) TaskID() string { return c.pending.taskID }

// Token returns the token that resumes the call. ok is false if there is no task,
// because the server answered at once. Errors name only the tool: log the token beside
// them to identify the task.
func (c *Call[Out]) Token() (token Token, ok bool) {
	p := c.pending
	if p.taskID == "" {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return encodeToken(tokenContent{Tool: p.spec.Tool, TaskID: p.taskID, Expires: p.expires}), true
}

// Updates yields the call's state now, each change of it, and at last the state that is done. It leaves out a state
// that differs from the last one only in its time, such as after another worker has taken the task over. It polls at
// the interval that the server currently asks for, or gets the changes from the server (see Watcher). It answers
// questions. An error ends it; see Wait.
func (c *Call[Out]) Updates(ctx context.Context) iter.Seq2[Snapshot, error] {
	return func(yield func(Snapshot, error) bool) {
		news := make(chan struct{}, 1)
		defer c.pending.startWaiting(ctx, news)()
		var shown Snapshot
		for {
			snapshot, err := c.pending.pollIfDue(ctx)
			if err != nil {
				yield(snapshot, err)
				return
			}
			if shown.looksOtherThan(snapshot) { // a resumed call has no state before the first poll
				shown = snapshot
				if !yield(snapshot, nil) {
					return
				}
			}
			if snapshot.Done() {
				return
			}
			if err := c.pending.waitForNews(ctx, news); err != nil {
				yield(snapshot, err)
				return
			}
		}
	}
}

// Wait returns the output when the call is done.
//
// Errors: *ToolError if the tool says that it failed, *Error if the server does, ErrCancelled, ErrChanged, ErrExpired,
// ErrNotFound, ErrWorkerLost, ErrDeadline, the context's own, and errors of the transport and internal ones of the server that last
// for several tries. If the server limits polls, Wait polls more slowly. If the task's ttl has passed and the server still says
// "working", it has lost the task, and the error is ErrExpired.
func (c *Call[Out]) Wait(ctx context.Context) (Out, error) {
	var out Out
	for snapshot, err := range c.Updates(ctx) {
		if err != nil {
			return out, err
		}
		if snapshot.Done() {
			return decodeOutput[Out](c.pending.subject(), snapshot)
		}
	}
	return out, ctx.Err() // Updates ends with an error or a state that is done
}

// Cancel asks the server to cancel the task. It returns nil if the call is done already. In 2026-07-28 the task may
// still end in another way. Wait returns how it ended. If the server has already forgotten the cancelled task, Wait
// returns ErrCancelled.
func (c *Call[Out]) Cancel(ctx context.Context) error { return c.pending.cancel(ctx) }

// decodeOutput returns the typed output, or the error, of a call that is done.
func decodeOutput[Out any](tool string, s Snapshot) (Out, error) {
	var out Out
	switch {
	case s.Error != nil:
		return out, fmt.Errorf("%s: %w", tool, s.Error)
	case s.Status == StatusCancelled:
		return out, fmt.Errorf("%s: %w", tool, ErrCancelled)
	case s.Result == nil:
		return out, fmt.Errorf("%s: the server sent neither a result nor an error", tool)
	case s.Result.IsError:
		return out, &ToolError{Tool: tool, Result: s.Result}
	}
	switch typed := any(&out).(type) {
	case *string:
		*typed = s.Result.Text()
		return out, nil
	case **Result:
		*typed = s.Result
		return out, nil
	case *struct{}:
		return out, nil
	}
	structured := s.Result.Structured
	if len(structured) == 0 { // some servers send the JSON only as text
		structured = json.RawMessage(s.Result.Text())
	}
	out, err := decodeGuarded[Out](structured)
	if err != nil {
		return out, fmt.Errorf("%s: the result does not fit the output type: %w", tool, err)
	}
	return out, nil
}

// decodeGuarded decodes a server's JSON into a type of the user's. The type may have
// an UnmarshalJSON that panics.
func decodeGuarded[Out any](data json.RawMessage) (out Out, err error) {
	defer guard.Then(nil, "the decoding of a result", func() { err = fmt.Errorf("decoding it into a %T panicked", &out) })
	return value.Decode[Out](data)
}

// isLimited reports whether the server asks to come back later.
func isLimited(err error) bool {
	var wire *Error
	return errors.As(err, &wire) && wire.Limit() != ""
}
