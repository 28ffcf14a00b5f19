package mcptasktest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
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
			asked := make(chan string, 1)
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
			next := version(`{"type":"object","properties":{"approve":{"type":"boolean"},"paid":{"type":"boolean"}},"required":["approve","paid"]}`)
			stays := make(signal, 1)
			resume := func(ctx context.Context, answer string) (map[string]any, error) {
				conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{
					Server: taskserver.Options{Store: store, Logger: slog.New(stays)},
					Answer: mcptask.AnswerAny(func(_ context.Context, q mcptask.Question) (json.RawMessage, error) {
						if !strings.HasSuffix(q.Message, "Ship it?") { // the form of before may be answered before the next one is asked
							t.Errorf("%q", q.Message)
						}
						return json.RawMessage(answer), nil
					}),
				}, next)
				call, err := mcptask.Resume[map[string]any](conn, "ship", token)
				if err != nil {
					t.Fatal(err)
				}
				return call.Wait(ctx)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if revision == mcptask.Revision20251125 { // the client is not told
				go func() { <-stays; leave() }()
			}
			if got, err := resume(ctx, `{"approve":true}`); err == nil { // a program of before knows no other form
				t.Errorf("the old form was enough: %v", got)
			}
			if got, err := resume(t.Context(), `{"approve":true,"paid":true}`); err != nil || got["paid"] != true {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

// signal is a log that gets a value when an answer has left its question open.
type signal chan struct{}

func (s signal) Enabled(context.Context, slog.Level) bool { return true }
func (s signal) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s signal) WithGroup(string) slog.Handler            { return s }

func (s signal) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "does not fit the new form") {
		s <- struct{}{}
	}
	return nil
}
