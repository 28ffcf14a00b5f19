package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pace"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

type number struct {
	N int `json:"n"`
}

type approval struct {
	Approve bool `json:"approve"`
}

var approvalInput = InputSpec{
	Name: "Approval", Message: "Ship it?",
	Schema: `{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`,
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// wireError returns the *Error in an error, or an empty one.
func wireError(err error) *Error {
	wire := &Error{}
	_ = errors.As(err, &wire)
	return wire
}

// fakeConn is a Conn that answers from a script.
type fakeConn struct {
	call     func(ToolCall) (Snapshot, error)
	task     func(ctx context.Context, id string, n int) (Snapshot, error) // n counts the reads of the task
	cancel   func(ctx context.Context, id string) error
	respond  func(id, key string, response json.RawMessage) error
	answerer Answerer

	mu        sync.Mutex
	reads     map[string][]time.Time
	cancelled []string
	responses []string
	calls     []ToolCall
}

func (*fakeConn) Revision() string                              { return Revision20260728 }
func (*fakeConn) ListTools(context.Context) ([]ToolInfo, error) { return nil, nil }
func (*fakeConn) Close() error                                  { return nil }
func (c *fakeConn) Answer(ctx context.Context, q Question) (json.RawMessage, bool, error) {
	return c.answerer.Answer(ctx, q)
}
func (c *fakeConn) readsOf(id string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.reads[id])
}
func (c *fakeConn) sent() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.responses, " ")
}
func (c *fakeConn) CallTool(_ context.Context, call ToolCall) (Snapshot, error) {
	c.mu.Lock()
	c.calls = append(c.calls, call)
	c.mu.Unlock()
	if c.call == nil {
		return working("t", time.Second), nil
	}
	return c.call(call)
}

func (c *fakeConn) Task(ctx context.Context, id string) (Snapshot, error) {
	c.mu.Lock()
	if c.reads == nil {
		c.reads = map[string][]time.Time{}
	}
	c.reads[id] = append(c.reads[id], time.Now())
	n := len(c.reads[id])
	c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Snapshot{}, err
	}
	return c.task(ctx, id, n)
}

func (c *fakeConn) CancelTask(ctx context.Context, id string) error {
	c.mu.Lock()
	c.cancelled = append(c.cancelled, id)
	c.mu.Unlock()
	if c.cancel == nil {
		return ctx.Err()
	}
	return c.cancel(ctx, id)
}

func (c *fakeConn) Respond(ctx context.Context, id string, responses map[string]json.RawMessage) error {
	for key, response := range responses {
		c.mu.Lock()
		c.responses = append(c.responses, key+"="+string(response))
		c.mu.Unlock()
		if c.respond != nil {
			if err := c.respond(id, key, response); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func working(id string, poll time.Duration) Snapshot {
	return Snapshot{TaskID: id, Status: StatusWorking, CreatedAt: epoch, UpdatedAt: epoch, TTL: -1, Poll: poll}
}

func completed(id string, n int) Snapshot {
	s := working(id, time.Second)
	s.Status, s.Result = StatusCompleted, &Result{Content: []Content{}, Structured: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}
	return s
}

func question(key string) Question {
	return Question{TaskID: "t", Key: key, Method: spec.Elicit, Input: approvalInput.Name, Schema: json.RawMessage(approvalInput.Schema)}
}

func started(t testing.TB, c Conn, opts ...CallOption) *Call[number] {
	t.Helper()
	call, err := Start[number](t.Context(), c, "tool", number{1}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func TestStart(t *testing.T) {
	conn := &fakeConn{call: func(ToolCall) (Snapshot, error) { s := completed("", 7); s.TTL = 0; return s, nil }}
	call := started(t, conn, IdempotencyKey("k"), Plain(), TTL(time.Minute))
	want := ToolCall{Tool: "tool", Arguments: json.RawMessage(`{"n":1}`), Plain: true, TTL: time.Minute, IdempotencyKey: "k"}
	if !reflect.DeepEqual(conn.calls[0], want) {
		t.Errorf("%+v", conn.calls[0])
	}
	if token, ok := call.Token(); ok || token != "" {
		t.Errorf("a call without a task has the token %q", token)
	}
	if out, err := call.Wait(t.Context()); err != nil || out.N != 7 {
		t.Errorf("%+v, %v", out, err)
	}
	if err := call.Cancel(t.Context()); err != nil || len(conn.cancelled) != 0 {
		t.Errorf("%v, %v", err, conn.cancelled)
	}
	if _, err := Start[number](t.Context(), conn, "tool", func() {}); err == nil || !strings.Contains(err.Error(), "encode the arguments") {
		t.Errorf("%v", err)
	}
	conn.call = func(ToolCall) (Snapshot, error) { return Snapshot{}, Errorf(CodeInvalidParams, "no") }
	if _, err := Run[number](t.Context(), conn, "tool", number{}); wireError(err).Code != CodeInvalidParams || errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// TestUpdates checks that Updates yields the state now, each change and the end. It never polls
// sooner than the server's interval, which changes on the way (C-30, E-25).
func TestUpdates(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		polls := []time.Duration{time.Second, time.Second, 10 * time.Second, 10 * time.Second, 100 * time.Millisecond, 0, 0}
		conn := &fakeConn{
			call: func(ToolCall) (Snapshot, error) { return working("t", 3*time.Second), nil },
			task: func(_ context.Context, _ string, n int) (Snapshot, error) {
				s := working("t", polls[n-1])
				s.UpdatedAt = epoch.Add(time.Duration(n)) // which is not shown by itself
				if n >= 2 {
					s.TTL = time.Hour // which is
				}
				switch {
				case n == len(polls):
					s = completed("t", 1)
					s.UpdatedAt = epoch.Add(time.Duration(n))
				case n >= 5:
					s.Message = "later"
				case n >= 3:
					s.Message = "half"
				}
				return s, nil
			},
		}
		began := time.Now()
		call := started(t, conn)
		var got []string
		for s, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(s.Status, " ", s.Message))
		}
		if want := []string{"working ", "working ", "working half", "working later", "completed "}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		last, interval := began, 3*time.Second
		for i, at := range conn.readsOf("t") {
			if gap := at.Sub(last); gap < interval || gap > interval+interval/10+1 {
				t.Errorf("read %d after %v, the server said %v", i+1, gap, interval)
			}
			if last, interval = at, polls[i]; interval == 0 {
				interval = DefaultPoll
			}
		}
		// Again: the last state, without another read.
		n := 0
		for s, err := range call.Updates(t.Context()) {
			if n++; err != nil || s.Status != StatusCompleted {
				t.Errorf("%+v, %v", s, err)
			}
		}
		if n != 1 || len(conn.readsOf("t")) != len(polls) {
			t.Errorf("%d updates, %d reads", n, len(conn.readsOf("t")))
		}
		for range call.Updates(t.Context()) {
			break // leaving the loop is allowed
		}
	})
}

// TestUpdatesOfHiddenQuestions checks that Updates tells questions apart by their times if the server does not send
// them, as in 2025-11-25.
func TestUpdatesOfHiddenQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		conn := &fakeConn{task: func(_ context.Context, _ string, n int) (Snapshot, error) {
			s := working("t", time.Second)
			s.Status = StatusInputRequired
			switch {
			case n > 4:
				s = completed("t", 1)
			case n > 2:
				s.UpdatedAt = epoch.Add(time.Minute)
			}
			return s, nil
		}}
		var got []Status
		for s, err := range started(t, conn).Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s.Status)
		}
		if want := []Status{StatusWorking, StatusInputRequired, StatusInputRequired, StatusCompleted}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// TestManyWaitersPollOnce checks that the interval holds however many callers wait.
func TestManyWaitersPollOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		conn := &fakeConn{task: func(_ context.Context, _ string, n int) (Snapshot, error) {
			time.Sleep(100 * time.Millisecond)
			if n < 5 {
				return working("t", time.Second), nil
			}
			return completed("t", 1), nil
		}}
		call := started(t, conn)
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				if out, err := call.Wait(t.Context()); err != nil || out.N != 1 {
					t.Errorf("%+v, %v", out, err)
				}
			})
		}
		waiting.Wait()
		reads := conn.readsOf("t")
		if len(reads) != 5 {
			t.Errorf("%d reads", len(reads))
		}
		for i := range reads[1:] {
			if gap := reads[i+1].Sub(reads[i]); gap < time.Second {
				t.Errorf("read again after %v", gap)
			}
		}
	})
}

// testTriedAgain lets as many reads in a row fail as the client tolerates, twice.
func testTriedAgain(t *testing.T, fault error) {
	t.Helper()
	conn := &fakeConn{task: func(_ context.Context, _ string, n int) (Snapshot, error) {
		if n%(pace.MaxFailures+1) != 0 {
			return Snapshot{}, fault
		}
		if n == pace.MaxFailures+1 {
			return working("t", 5*time.Second), nil
		}
		return completed("t", 1), nil
	}}
	if out, err := started(t, conn).Wait(t.Context()); err != nil || out.N != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	reads := conn.readsOf("t")
	for i := range reads[1:] {
		gap := reads[i+1].Sub(reads[i])
		pause, failures := time.Second, i%(pace.MaxFailures+1)
		if i > pace.MaxFailures {
			pause = 5 * time.Second // the interval that the server asked for
		}
		if failures < pace.MaxFailures {
			pause = max(pause, min(DefaultPoll<<failures, pace.MaxPause))
		}
		if gap < pause && i != pace.MaxFailures || gap > pause+pause/10+1 && i != pace.MaxFailures {
			t.Errorf("read %d came %v later, want %v", i+2, gap, pause)
		}
	}
}

func TestFailedReads(t *testing.T) {
	broken := errors.New("connection refused")
	passing := map[string]error{"broken": broken, "internal": fmt.Errorf("wrapped: %w", Errorf(CodeInternalError, "the store is away"))}
	for name, fault := range passing {
		bubble.Run(t, "are tried again, ever later/"+name, func(t *testing.T) { testTriedAgain(t, fault) })
		bubble.Run(t, "not for ever, and each wait anew/"+name, func(t *testing.T) {
			conn := &fakeConn{task: func(context.Context, string, int) (Snapshot, error) { return Snapshot{}, fault }}
			call := started(t, conn)
			for i := range 5 {
				if _, err := call.Wait(t.Context()); !errors.Is(err, fault) || len(conn.readsOf("t")) != (i+1)*(pace.MaxFailures+1) {
					t.Fatalf("%v after %d reads", err, len(conn.readsOf("t")))
				}
			}
		})
	}
	bubble.Run(t, "show no state of a resumed call", func(t *testing.T) {
		conn := &fakeConn{task: func(_ context.Context, _ string, n int) (Snapshot, error) {
			if n == 1 {
				return Snapshot{}, broken
			}
			return completed("t", 1), nil
		}}
		call, err := Resume[number](conn, "tool", encodeToken(tokenContent{Tool: "tool", TaskID: "t"}))
		if err != nil {
			t.Fatal(err)
		}
		var seen []Status
		for s, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Error(err)
			}
			seen = append(seen, s.Status)
		}
		if !slices.Equal(seen, []Status{StatusCompleted}) {
			t.Errorf("%q", seen)
		}
	})
	bubble.Run(t, "other errors of the server are final", func(t *testing.T) {
		conn := &fakeConn{task: func(context.Context, string, int) (Snapshot, error) {
			return Snapshot{}, fmt.Errorf("wrapped: %w", Errorf(CodeMethodNotFound, "no"))
		}}
		var wire *Error
		if _, err := started(t, conn).Wait(t.Context()); !errors.As(err, &wire) || len(conn.readsOf("t")) != 1 {
			t.Errorf("%v after %d reads", err, len(conn.readsOf("t")))
		}
	})
	t.Run("name the tool", func(t *testing.T) {
		for _, fault := range []error{broken, Errorf(CodeInternalError, "no"), ErrDisconnected} {
			bubble.Test(t, func(t *testing.T) {
				conn := &fakeConn{
					task:   func(context.Context, string, int) (Snapshot, error) { return Snapshot{}, fault },
					cancel: func(context.Context, string) error { return fault },
				}
				call := started(t, conn)
				if _, err := call.Wait(t.Context()); err == nil || err.Error() != "tool: "+fault.Error() {
					t.Errorf("Wait: %v", err)
				}
				if err := call.Cancel(t.Context()); err == nil || err.Error() != "tool: "+fault.Error() {
					t.Errorf("Cancel: %v", err)
				}
			})
		}
	})
	bubble.Run(t, "the context's end is the context's error", func(t *testing.T) {
		conn := &fakeConn{task: func(ctx context.Context, _ string, _ int) (Snapshot, error) {
			<-ctx.Done()
			return Snapshot{}, ctx.Err()
		}}
		call := started(t, conn)
		for _, patience := range []time.Duration{500 * time.Millisecond, 10 * time.Second} { // in a pause, in a read
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if _, err := call.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			cancel()
		}
	})
}

func TestExpiredOrNotFound(t *testing.T) {
	expired := &Error{Code: CodeInvalidParams, Message: "the task has expired", Data: json.RawMessage(`{"reason":"expired"}`)}
	gone := Errorf(CodeInvalidParams, "there is no task with that ID")
	for _, c := range []struct {
		name string
		ttl  time.Duration
		wait time.Duration
		err  *Error
		want error
		text string // of the call that has seen the task
	}{
		{"before its end", time.Hour, 0, gone, ErrNotFound, "tool: the server no longer has the task: there is no task with that ID (code -32602)"},
		{"after its end", time.Hour, 2 * time.Hour, gone, ErrExpired, "tool: the task has expired: there is no task with that ID (code -32602)"},
		{"without an end", -1, 2 * time.Hour, gone, ErrNotFound, "tool: the server no longer has the task: there is no task with that ID (code -32602)"},
		{"the server says so", -1, 0, expired, ErrExpired, "tool: " + expired.Error()},
	} {
		bubble.Run(t, c.name, func(t *testing.T) {
			conn := &fakeConn{
				call: func(ToolCall) (Snapshot, error) {
					s := working("t", time.Second)
					s.CreatedAt, s.TTL = time.Now(), c.ttl
					return s, nil
				},
				task:   func(context.Context, string, int) (Snapshot, error) { return Snapshot{}, c.err },
				cancel: func(context.Context, string) error { return c.err },
			}
			call := started(t, conn)
			token, ok := call.Token()
			if !ok {
				t.Fatal("no token")
			}
			resumed, err := Resume[number](conn, "tool", token)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.wait)
			for _, call := range []*Call[number]{call, resumed} {
				_, err := call.Wait(t.Context())
				var wire *Error
				if !errors.Is(err, c.want) || !errors.As(err, &wire) || errors.Is(err, ErrExpired) && errors.Is(err, ErrNotFound) {
					t.Errorf("%v", err)
				}
				if call != resumed && err.Error() != c.text {
					t.Errorf("%q, want %q", err, c.text)
				}
				if err := call.Cancel(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("cancel: %v", err)
				}
			}
		})
	}
}

func TestTokens(t *testing.T) {
	good := encodeToken(tokenContent{Tool: "tool", TaskID: "t", Expires: epoch})
	if c, err := decodeToken(good, "tool"); err != nil || c.TaskID != "t" || !c.Expires.Equal(epoch) {
		t.Errorf("%+v, %v", c, err)
	}
	for token, want := range map[Token]string{
		"":          "not a token of a call",
		"***":       "not a token of a call",
		good + "A":  "not a token of a call",
		good[1:]:    "not a token of a call",
		"bnVsbA":    "names no task",
		"e30":       "names no task",
		good + "\n": "",
		encodeToken(tokenContent{Tool: "other", TaskID: "t"}): "of a call of other, not of tool",
	} {
		if _, err := Resume[number](&fakeConn{}, "tool", token); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", token, err)
		}
	}
}

// TestDoneWhenCreated starts a call whose task has already ended when the server announces it. An idempotency key may
// find such a task.
func TestDoneWhenCreated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		conn := &fakeConn{
			call: func(ToolCall) (Snapshot, error) { s := completed("t", 0); s.Result = nil; return s, nil },
			task: func(context.Context, string, int) (Snapshot, error) { return completed("t", 7), nil },
		}
		if out, err := Run[number](t.Context(), conn, "tool", number{}); err != nil || out.N != 7 {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestRunCancelsWhatItLeaves(t *testing.T) {
	for _, c := range []struct {
		opts []CallOption
		want int
	}{{nil, 1}, {[]CallOption{IdempotencyKey("k")}, 0}} {
		bubble.Test(t, func(t *testing.T) {
			conn := &fakeConn{
				task:   func(context.Context, string, int) (Snapshot, error) { return working("t", time.Second), nil },
				cancel: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }, // a server that hangs
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			began := time.Now()
			_, err := Run[number](ctx, conn, "tool", number{}, c.opts...)
			if !errors.Is(err, context.DeadlineExceeded) || len(conn.cancelled) != c.want || time.Since(began) > 10*time.Second+cancelWithin {
				t.Errorf("%v, %d cancelled after %v", err, len(conn.cancelled), time.Since(began))
			}
		})
	}
}

func TestCancelCall(t *testing.T) {
	conn := &fakeConn{
		task:   func(context.Context, string, int) (Snapshot, error) { return completed("t", 1), nil },
		cancel: func(context.Context, string) error { return Errorf(CodeInvalidParams, "it has ended") },
	}
	if err := started(t, conn).Cancel(t.Context()); err != nil { // C-75: that is no error
		t.Error(err)
	}
}

func TestDecodeOutput(t *testing.T) {
	result := func(structured string, content ...Content) Snapshot {
		return Snapshot{Status: StatusCompleted, Result: &Result{Content: content, Structured: json.RawMessage(structured)}}
	}
	text := TextContent("a < b")
	wantOutput(t, result("", text, ImageContent([]byte{1}, "image/png"), TextContent("c")), "a < b\nc")
	wantOutput(t, result(`{"n":1}`, text), result(`{"n":1}`, text).Result)
	wantOutput(t, result(""), struct{}{})
	wantOutput(t, result(`{"n":3}`), number{3})
	wantOutput(t, result(`{"n":3}`), &number{3})
	wantOutput(t, result("", TextContent(`{"n":3}`)), number{3}) // as text only
	for _, bad := range []Snapshot{result(`{"n":"x"}`), result(""), result("", text)} {
		if _, err := decodeOutput[number]("t", bad); err == nil || !strings.HasPrefix(err.Error(), "t: the result does not fit the output type: ") {
			t.Errorf("%v", err)
		}
	}
	failed := result("", text)
	failed.Status, failed.Result.IsError = StatusFailed, true
	var tool *ToolError
	for _, err := range []error{
		second(decodeOutput[string]("t", failed)), second(decodeOutput[*Result]("t", failed)),
		second(decodeOutput[struct{}]("t", failed)), second(decodeOutput[number]("t", failed)),
	} {
		if !errors.As(err, &tool) || tool.Tool != "t" || err.Error() != "t: a < b" {
			t.Errorf("%v", err)
		}
	}
	lost := Snapshot{Status: StatusFailed, Error: &Error{Code: CodeInternalError, Message: "gone", Data: json.RawMessage(`{"reason":"worker_lost"}`)}}
	if err := second(decodeOutput[number]("t", lost)); !errors.Is(err, ErrWorkerLost) || errors.Is(err, ErrExpired) {
		t.Errorf("%v", err)
	}
	if err := second(decodeOutput[number]("t", Snapshot{Status: StatusCancelled})); !errors.Is(err, ErrCancelled) {
		t.Errorf("%v", err)
	}
	if err := second(decodeOutput[number]("t", Snapshot{Status: StatusCompleted})); err == nil {
		t.Error("nothing is no output")
	}
	if got := (&ToolError{Tool: "t", Result: &Result{IsError: true}}).Error(); got != "t: the tool reported an error without a text" {
		t.Error(got)
	}
}

// wantOutput checks the decoded output of a result.
func wantOutput[Out any](t *testing.T, s Snapshot, want Out) {
	t.Helper()
	if out, err := decodeOutput[Out]("t", s); err != nil || !reflect.DeepEqual(out, want) {
		t.Errorf("%+v, %v, want %+v", out, err, want)
	}
}

func second[T any](_ T, err error) error { return err }
