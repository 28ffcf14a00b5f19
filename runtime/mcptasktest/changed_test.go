package mcptasktest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestNextVersion rolls out a version of a program that asks for more, while a person has the form of the last one. The
// server of the subtest closes at its end, and the next one has its store.
func TestNextVersion(t *testing.T) {
	policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost, Poll: 20 * time.Millisecond}
	version := func(form string) mcptask.Tools {
		return mcptask.Tools{Service: "Shop", Impl: 1, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{mcptask.NewTool(mcptask.ToolSpec{Name: "ship", InputSchema: mcptask.NoArguments, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (map[string]any, error) {
				return mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "Approval", Message: "Ship it?", Schema: form}, "approve", "")
			})}}
	}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			store := taskstore.NewMemory()
			var token mcptask.Token
			asked := make(chan string, 2)
			t.Run("before", func(t *testing.T) {
				conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Server: taskserver.Options{Store: store}, Answer: mcptask.AnswerAny(func(ctx context.Context, q mcptask.Question) (json.RawMessage, error) {
					asked <- q.Message
					<-ctx.Done() // the person thinks
					return nil, ctx.Err()
				})}, version(`{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`))
				call, err := mcptask.Start[map[string]any](t.Context(), conn, "ship", struct{}{})
				if err != nil {
					t.Fatal(err)
				}
				token, _ = call.Token()
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); _, _ = call.Wait(ctx) }()
				<-asked
				cancel()
				<-ended
			})
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Server: taskserver.Options{Store: store}, Answer: mcptask.AnswerAny(func(_ context.Context, q mcptask.Question) (json.RawMessage, error) {
				asked <- q.Message
				return json.RawMessage(`{"approve":true,"paid":true}`), nil
			})}, version(`{"type":"object","properties":{"approve":{"type":"boolean"},"paid":{"type":"boolean"}},"required":["approve","paid"]}`))
			call, err := mcptask.Resume[map[string]any](conn, "ship", token)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := call.Wait(t.Context()); err != nil || got["paid"] != true {
				t.Errorf("%v, %v", got, err)
			}
			if message := <-asked; message != "Ship it?" {
				t.Errorf("%q", message)
			}
		})
	}
}
