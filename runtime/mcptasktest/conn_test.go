package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// hourly returns a tool that reports the number of each hour that begins, for six hours. A client
// is asked to poll each second.
func hourly() mcptask.Tools {
	tools := napping(time.Second)
	tools.Tools = []mcptask.Tool{mcptask.NewTool(mcptask.ToolSpec{
		Name: "work", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, Poll: time.Second, TTL: 24 * time.Hour},
	}, func(ctx context.Context, task *mcptask.Task, _ turnIn) (turnOut, error) {
		for hour := range 6 {
			task.Message(ctx, fmt.Sprint("hour ", hour))
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
				return turnOut{}, ctx.Err()
			}
		}
		return turnOut{true}, nil
	})}
	return tools
}

// TestPollsFindNews checks that polls find news in time, although most of them send nothing.
func TestPollsFindNews(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			conn := mcptasktest.Connect(t, revision, mcptasktest.Options{}, hourly())
			started, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "work", Arguments: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for {
				time.Sleep(time.Second)
				s, err := conn.Task(t.Context(), started.TaskID)
				if err != nil {
					t.Fatal(err)
				}
				if s.Done() {
					break
				}
				// The last message may be stored an interval after it is reported.
				early, late := time.Since(begin), time.Since(begin)-time.Second
				if s.Message != fmt.Sprint("hour ", int(early.Hours())) && s.Message != fmt.Sprint("hour ", int(late.Hours())) {
					t.Fatalf("after %v: %q", early, s.Message)
				}
			}
			if took := time.Since(begin); took < 6*time.Hour || took > 6*time.Hour+time.Second {
				t.Errorf("the end was seen after %v", took)
			}
		})
	})
}

// TestPollsMeetLimits checks that polls which come too often are refused, although nothing is new.
func TestPollsMeetLimits(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			conn := mcptasktest.Connect(t, revision, mcptasktest.Options{}, hourly())
			started, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "work", Arguments: []byte("{}")})
			for range 100 {
				if err == nil {
					_, err = conn.Task(t.Context(), started.TaskID)
				}
			}
			var wire *mcptask.Error
			if !errors.As(err, &wire) || wire.Limit() != "polls" {
				t.Errorf("100 polls at once: %v", err)
			}
		})
	})
}

// TestPollsEnd checks that a poll fails if its context or the connection is over, although nothing is new.
func TestPollsEnd(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			conn := mcptasktest.Connect(t, revision, mcptasktest.Options{}, hourly())
			started, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "work", Arguments: []byte("{}")})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				time.Sleep(time.Second)
				if _, err := conn.Task(t.Context(), started.TaskID); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			time.Sleep(time.Second)
			if s, err := conn.Task(ctx, started.TaskID); !errors.Is(err, context.Canceled) {
				t.Errorf("its context is over: %v, %v", s.Status, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			if s, err := conn.Task(t.Context(), started.TaskID); err == nil {
				t.Errorf("the connection is closed: %v", s.Status)
			}
		})
	})
}

// callerKey is the context key of the principal.
type callerKey struct{}

// TestPollsOfAnother checks that a poll shows a task to its owner only, and not after its ttl.
func TestPollsOfAnother(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			options := mcptasktest.Options{Server: taskserver.Options{Principal: func(ctx context.Context) (string, error) {
				name, ok := ctx.Value(callerKey{}).(string)
				if !ok {
					return mcptasktest.Local, nil
				}
				return name, nil
			}}}
			conn := mcptasktest.Connect(t, revision, options, napping(time.Second))
			time.Sleep(300 * time.Millisecond) // expired tasks are deleted each second: not at the moment of the last poll
			started, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "nap", Arguments: []byte(`{"seconds":1e6}`)})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if s, err := conn.Task(t.Context(), started.TaskID); err != nil || s.Done() {
					t.Fatalf("%+v, %v", s, err)
				}
				time.Sleep(time.Minute)
			}
			if s, err := conn.Task(context.WithValue(t.Context(), callerKey{}, "another"), started.TaskID); err == nil {
				t.Errorf("another sees %+v", s)
			}
			if s, err := conn.Task(t.Context(), started.TaskID); err != nil || s.Done() {
				t.Errorf("its owner sees %+v, %v", s, err)
			}
			time.Sleep(time.Until(started.CreatedAt.Add(started.TTL)))
			if s, err := conn.Task(t.Context(), started.TaskID); err == nil {
				t.Errorf("after its ttl: %+v", s)
			}
		})
	})
}

// TestClientsThatAnswer checks that the client answers the questions that Options name, and declares nothing else.
func TestClientsThatAnswer(t *testing.T) {
	tools := napping(time.Second)
	tools.Tools = []mcptask.Tool{mcptask.NewTool(mcptask.ToolSpec{
		Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired},
	}, func(ctx context.Context, task *mcptask.Task, _ turnIn) (string, error) {
		said, roots, err := asking(ctx, task)
		if errors.Is(err, mcptask.ErrCannotAsk) {
			return "cannot ask", nil
		}
		return fmt.Sprint(said.Role, roots, err), nil
	})}
	able := mcptasktest.Options{
		Sample: func(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
			return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: r.Messages[0].Content}, nil
		},
		Roots:   []mcptask.Root{{URI: "file:///home/ann"}},
		OpenURL: func(context.Context, mcptask.Question) error { return mcptask.ErrDeclined },
	}
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		for options, want := range map[*mcptasktest.Options]string{
			&able:                   fmt.Sprint("assistant", []mcptask.Root{{URI: "file:///home/ann"}}, " pay: ", mcptask.ErrDeclined),
			{Sample: able.Sample}:   "cannot ask",
			{Roots: able.Roots}:     "cannot ask",
			{OpenURL: able.OpenURL}: "cannot ask",
		} {
			bubble.Test(t, func(t *testing.T) {
				conn := mcptasktest.Connect(wirecheck.TB(t), revision, *options, tools)
				got, err := mcptask.Run[string](t.Context(), conn, "ask", turnIn{})
				if err != nil || got != want {
					t.Errorf("%q, %v, want %q", got, err, want)
				}
			})
		}
	})
}
