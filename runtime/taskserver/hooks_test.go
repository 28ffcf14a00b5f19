package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// hookKey is the key of the value that hooks put into contexts.
type hookKey struct{}

// listener is told of everything.
type listener struct {
	mu   sync.Mutex
	told []string
}

func (l *listener) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, fmt.Sprintf(format, args...))
}

func (l *listener) hooks() Hooks {
	return Hooks{
		Server: func(s *Server) { l.note("server %v", s.Closing().Err()) },
		Run: func(ctx context.Context, info RunInfo) (context.Context, func(RunResult)) {
			l.note("run %s %d awaited=%v", info.Task.Tool, info.Task.Attempt, info.IsAwaited)
			return context.WithValue(ctx, hookKey{}, "run"), func(r RunResult) { l.note("run ends: %s %v", r.Outcome.Kind, r.Cause) }
		},
		Question: func(ctx context.Context, info QuestionInfo) (context.Context, func(error)) {
			l.note("question %s %s in %v", info.Key, info.Method, ctx.Value(hookKey{}))
			return ctx, func(err error) { l.note("question ends: %v", err) }
		},
		Task: func(ctx context.Context, e TaskEvent) {
			l.note("%s %s in %v", e.Kind, e.Outcome, ctx.Value(hookKey{}))
		},
		Limit: func(_ context.Context, name string) { l.note("limit %s", name) },
	}
}

// contextStore tells whether its calls have the context of the hook.
type contextStore struct {
	taskstore.Store
	creates []any
}

func (s *contextStore) Create(ctx context.Context, r taskstore.Record, q taskstore.Quota) (taskstore.Record, error) {
	s.creates = append(s.creates, ctx.Value(hookKey{}))
	return s.Store.Create(ctx, r, q)
}

func TestHooks(t *testing.T) {
	l := &listener{}
	store := &contextStore{Store: taskstore.NewMemory()}
	var log bytes.Buffer
	boom := Hooks{ // harms nothing
		Server: func(*Server) { panic("boom") },
		Run:    func(context.Context, RunInfo) (context.Context, func(RunResult)) { panic("boom") },
		Question: func(context.Context, QuestionInfo) (context.Context, func(error)) {
			return nil, func(error) { panic("boom") }
		},
		Store: func(ctx context.Context, name string) (context.Context, func(error)) {
			return context.WithValue(ctx, hookKey{}, name), func(error) { panic("boom") }
		},
		Task:  func(context.Context, TaskEvent) { panic("boom") },
		Limit: func(context.Context, string) { panic("boom") },
	}
	handled := make(chan any, 1)
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "ship", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			handled <- ctx.Value(hookKey{})
			err := task.AskURL(ctx, "pay", "Pay.", "https://example.com")
			return "shipped", err
		})
	s, err := New(Options{
		Store: store, Hooks: []Hooks{boom, l.hooks()}, Limits: Limits{Tasks: 1}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}, mcptask.Tools{Service: "S", Impl: t, Tools: []mcptask.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	caller := Caller{Principal: "p", Revision: mcptask.Revision20260728, CanAsk: []string{CanAskURL}}
	reply, err := s.Backend().Call(WithTrace(t.Context(), "00-trace"), caller, "ship", nil, CallRequest{Mode: ModeTask, Trace: "00-client"})
	if err != nil {
		t.Fatal(err)
	}
	if reply.Task.Trace != "00-trace" {
		t.Errorf("the task has the trace %q", reply.Task.Trace)
	}
	if got := <-handled; got != "run" {
		t.Errorf("the handler's context has %v", got)
	}
	record, err := s.Backend().Get(t.Context(), caller, reply.Task.ID)
	for err == nil && record.Phase != taskstore.PhaseInputRequired {
		record, err = s.Backend().Changed(t.Context(), caller, record.ID, record.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Backend().Call(t.Context(), caller, "ship", nil, CallRequest{Mode: ModeTask}); err == nil {
		t.Error("a second task is within the limit")
	}
	if err := s.Backend().Answer(t.Context(), caller, record.ID, map[string]json.RawMessage{"pay": json.RawMessage(`{"action":"accept"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err = s.Backend().Await(t.Context(), caller, record.ID); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	// Other goroutines tell of the run than of the requests, so there is no one order.
	want := []string{
		"answered  in <nil>", "asked  in run", "created  in <nil>", "ended result in run", "limit tasks",
		"question ends: <nil>", "question pay elicitation/create in run",
		"run ends: result <nil>", "run ship 1 awaited=false", "server <nil>", "started  in <nil>",
	}
	if slices.Sort(l.told); !slices.Equal(l.told, want) {
		t.Errorf("told:\n%s", strings.Join(l.told, "\n"))
	}
	if fmt.Sprint(store.creates) != "[Create Create]" {
		t.Errorf("the store's contexts have %v", store.creates)
	}
	if n := strings.Count(log.String(), "hook panicked"); n < 6 {
		t.Errorf("%d panics are logged:\n%s", n, &log)
	}
}

// TestQuestionEnds checks the error that hooks get for a wait that ends without an answer.
func TestQuestionEnds(t *testing.T) {
	for name, c := range map[string]struct {
		policy mcptask.Policy
		end    func(t *testing.T, s *Backend, id string)
		want   error
	}{
		"the task is cancelled": {restart, func(t *testing.T, s *Backend, id string) {
			if _, _, err := s.Cancel(t.Context(), alice, id); err != nil {
				t.Error(err)
			}
		}, mcptask.ErrCancelled},
		"the task expires":  {mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}, func(*testing.T, *Backend, string) { time.Sleep(2 * time.Hour) }, mcptask.ErrExpired},
		"the server closes": {restart, func(*testing.T, *Backend, string) {}, context.Canceled},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			told := make(chan error, 1)
			hooks := Hooks{
				Question: func(ctx context.Context, _ QuestionInfo) (context.Context, func(error)) {
					return ctx, func(err error) { told <- err }
				},
			}
			s, err := New(Options{Store: taskstore.NewMemory(), Hooks: []Hooks{hooks}},
				mcptask.Tools{Service: "Numbers", Impl: t, Tools: []mcptask.Tool{numberTool("t", c.policy, confirm)}})
			if err != nil {
				t.Fatal(err)
			}
			id := begin(t, s.Backend(), alice, "t").ID
			synctest.Wait()
			c.end(t, s.Backend(), id)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if got := <-told; !errors.Is(got, c.want) {
				t.Errorf("the hook was told %v, want %v", got, c.want)
			}
		})
	}
}
