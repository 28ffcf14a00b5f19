package protocol_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// bare is a store whose lists have only the fields that a page of tasks/list shows.
type bare struct{ taskstore.Store }

func (s bare) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	page, err := s.Store.List(ctx, principal, after, limit)
	for i := range page {
		r := &page[i]
		r.Arguments, r.Inputs = nil, nil
		if r.Outcome != nil {
			r.Outcome = &taskstore.Outcome{Kind: r.Outcome.Kind, IsError: r.Outcome.IsError}
		}
	}
	return page, err
}

// TestListShowsWhatStoresLeaveOut lists tasks of a store whose lists leave out questions and outcomes.
func TestListShowsWhatStoresLeaveOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		input := mcptask.InputSpec{Name: "Approval", Message: "Ship it?", Schema: `{"type":"object","properties":{"yes":{"type":"boolean"}}}`}
		newTool := func(name string, work func(ctx context.Context, task *mcptask.Task) error) mcptask.Tool {
			return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
				func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) { return "", work(ctx, task) })
		}
		ask := func(ctx context.Context, task *mcptask.Task) error {
			_, err := mcptask.Ask[map[string]any](ctx, task, input, "ship", "")
			return err
		}
		server, err := taskserver.New(taskserver.Options{Store: bare{taskstore.NewMemory()}, Logger: slog.New(slog.DiscardHandler)},
			mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{
				newTool("ask", ask), newTool("refused", ask),
				newTool("fail", func(context.Context, *mcptask.Task) error { return mcptask.Errorf(4055, "the repository is locked") }),
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}()
		caller := taskserver.Caller{Principal: "p", Revision: mcptask.Revision20251125, CanAsk: []string{"elicitation/create"}}
		ids := map[string]string{}
		for _, name := range []string{"ask", "refused", "fail"} {
			reply, err := server.Backend().Call(t.Context(), caller, name, json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
			if err != nil {
				t.Fatal(err)
			}
			r := *reply.Task
			for !r.Done() && len(r.Outstanding()) == 0 {
				if r, err = server.Backend().Changed(t.Context(), caller, r.ID, r.Version); err != nil {
					t.Fatal(err)
				}
			}
			ids[name] = r.ID
		}
		if err := server.Backend().Answer(t.Context(), caller, ids["refused"], map[string]json.RawMessage{"ship": json.RawMessage(`{"action":"decline"}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Backend().Await(t.Context(), caller, ids["refused"]); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name string
			list protocol.Method
			want []string
		}{
			{"2025-11-25", protocol.Server20251125{}.Method("tasks/list"), []string{`"statusMessage":"Ship it?"`, `"statusMessage":"the repository is locked"`}},
			{"the proposal", unofficial.ServerSEP1686{}.Method("tasks/list"), []string{`"error":"the repository is locked"`}},
			{"the guide", unofficial.ServerTaskPatterns{}.Method("tasks/list"), []string{`"error":{"code":4055,"message":"the repository is locked"}`, `"status":"cancelled"`}},
		} {
			page, err := test.list(t.Context(), server.Backend(), caller, wire.NewObject([]byte(`{}`)))
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			for _, want := range test.want {
				if !strings.Contains(string(page), want) {
					t.Errorf("%s: %s lacks %s", test.name, page, want)
				}
			}
		}
	})
}

// TestStale tells a client in both revisions why a task is stale.
func TestStale(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		server, err := taskserver.New(taskserver.Options{Store: store, Logger: slog.New(slog.DiscardHandler)}, mcptask.Tools{Service: "S", Impl: struct{}{}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close() }()
		now := server.Backend().Now()
		for _, tool := range []string{"gone", "renamed"} {
			r := taskstore.Record{ID: tool, Principal: "p", Tool: tool, Phase: taskstore.PhaseQueued, CreatedAt: now, ExpiresAt: now.Add(time.Hour), Poll: time.Second}
			if _, err := store.Create(t.Context(), r, taskstore.Quota{}); err != nil {
				t.Fatal(err)
			}
		}
		send := func(speaks protocol.Server) protocol.Send {
			return func(ctx context.Context, method string, params any) (json.RawMessage, error) {
				data, err := json.Marshal(params)
				if err != nil {
					return nil, err
				}
				return speaks.Method(method)(ctx, server.Backend(), taskserver.Caller{Principal: "p"}, wire.NewObject(data))
			}
		}
		for _, want := range []string{"", `no server is known to have its tool "gone"`} {
			legacy, err := protocol.Client20251125{}.Task(t.Context(), send(protocol.Server20251125{}), "gone")
			if err != nil || legacy.Stale != want {
				t.Errorf("%q, %v", legacy.Stale, err)
			}
			modern, err := protocol.Client20260728{}.Task(t.Context(), send(protocol.Server20260728{}), "gone")
			if err != nil || modern.Stale != want {
				t.Errorf("%q, %v", modern.Stale, err)
			}
			tasks, _, err := protocol.Client20251125{}.List(t.Context(), send(protocol.Server20251125{}), "")
			if err != nil || len(tasks) != 2 || tasks[0].Stale != want {
				t.Errorf("%+v, %v", tasks, err)
			}
			time.Sleep(time.Minute)
		}
	})
}
