package taskserver_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memengine"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestOperatorLosesAnswers loses the store's answer to an operator's action, and then also the operator.
func TestOperatorLosesAnswers(t *testing.T) {
	actions := map[string]func(*taskserver.Operator, context.Context, string) error{
		"answer": func(o *taskserver.Operator, ctx context.Context, id string) error {
			return o.Answer(ctx, id, "sure", json.RawMessage(`{"action":"accept","content":{"Yes":true}}`))
		},
		"cancel": (*taskserver.Operator).Cancel,
	}
	ask := mcptask.NewTool(mcptask.ToolSpec{
		Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost},
	}, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
		spec := mcptask.InputSpec{Name: "Yes", Schema: `{"type":"object","properties":{"Yes":{"type":"boolean"}}}`}
		_, err := mcptask.Ask[struct{ Yes bool }](ctx, task, spec, "sure", "Sure?")
		return "", err
	})
	for action, act := range actions {
		for _, leaves := range []bool{false, true} {
			bubble.Run(t, action, func(t *testing.T) {
				store := &forgetfulStore{Store: taskstore.NewMemory()}
				var log strings.Builder
				s, err := taskserver.New(taskserver.Options{
					Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil)), Executor: new(memengine.Cluster).Join,
				}, mcptask.Tools{Service: "S", Impl: t, Tools: []mcptask.Tool{ask}})
				if err != nil {
					t.Fatal(err)
				}
				owner := taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}
				reply, err := s.Backend().Call(t.Context(), owner, "ask", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second) // the run that asks is parked
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if leaves {
					store.then = leave
				}
				store.lose.Store(true)
				if err := act(s.Operator("olga"), ctx, reply.Task.ID); err != nil {
					t.Error(err)
				}
				began := time.Now()
				if _, err := s.Backend().Await(t.Context(), owner, reply.Task.ID); err != nil || time.Since(began) > 10*time.Second {
					t.Errorf("the task has ended after %v: %v", time.Since(began), err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(log.String(), "audit=operator action="+action+" operator=olga"); n != 1 {
					t.Errorf("the audit trail has it %d times:\n%s", n, log.String())
				}
			})
		}
	}
}
