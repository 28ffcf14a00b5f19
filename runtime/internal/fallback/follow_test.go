package fallback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// unread is a store that cannot be read for a while.
type unread struct {
	taskstore.Store
	broken atomic.Bool
}

func (s *unread) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if s.broken.Load() {
		return taskstore.Record{}, errors.New("the disk is slow")
	}
	return s.Store.Get(ctx, id)
}

// TestStoreFailsDuringCall checks that a store that fails while a call waits for its task costs
// time, and not the work.
func TestStoreFailsDuringCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &unread{Store: taskstore.NewMemory()}
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "work", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Wait: time.Hour}},
			func(_ context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				store.broken.Store(true)
				time.Sleep(time.Minute)
				store.broken.Store(false)
				return "done", nil
			})
		server, err := taskserver.New(taskserver.Options{Store: store, Logger: slog.New(slog.DiscardHandler)},
			mcptask.Tools{Service: "S", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{tool}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}()
		reply, err := newTaskHandler(t.Context(), server.Backend(), taskserver.Caller{Principal: "p"}, "work", nil)(t.Context(), json.RawMessage(`{}`), taskserver.CallRequest{})
		if err != nil || reply.Outcome == nil || !strings.Contains(string(reply.Outcome.Result), `"done"`) {
			t.Errorf("%+v, %v", reply.Outcome, err)
		}
	})
}

// TestProgressFromElsewhere checks that a call hears of the progress of its task if the task has waited for a slot and
// runs at another server.
func TestProgressFromElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		serve := func(work func(context.Context, *mcptask.Task, struct{}) (string, error)) *taskserver.Server {
			tool := mcptask.NewTool(mcptask.ToolSpec{Name: "work", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Wait: time.Hour}}, work)
			server, err := taskserver.New(taskserver.Options{Store: store, Concurrency: 1},
				mcptask.Tools{Service: "S", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{tool}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := server.Close(); err != nil {
					t.Error(err)
				}
			})
			return server
		}
		caller := taskserver.Caller{Principal: "p"}
		busy := serve(func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}).Backend()
		if _, err := busy.Call(t.Context(), caller, "work", nil, taskserver.CallRequest{Mode: taskserver.ModeTask}); err != nil {
			t.Fatal(err)
		}
		serve(func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			for i := range 2 {
				task.Progress(ctx, float64(i+1), 3, "part")
				time.Sleep(time.Minute)
			}
			return "done", nil
		})
		var told []float64
		reply, err := newTaskHandler(t.Context(), busy, caller, "work", nil)(t.Context(), json.RawMessage(`{}`), taskserver.CallRequest{
			Progress: func(_ string, done, _ float64, _ string) { told = append(told, done) },
		})
		if err != nil || reply.Outcome == nil || !slices.Equal(told, []float64{1, 2}) {
			t.Errorf("%v, %+v, %v", told, reply.Outcome, err)
		}
	})
}

// TestTellProgress checks that a call hears of each report once, and of no end without a report.
func TestTellProgress(t *testing.T) {
	var told []string
	record := func(done, total float64, message string) taskstore.Record {
		return taskstore.Record{Progress: taskstore.Progress{Done: done, Total: total}, StatusMessage: message}
	}
	tell := newProgressTeller(func(_ string, done, total float64, message string) {
		told = append(told, fmt.Sprint(done, total, message))
	}, record(4, 5, "e"))
	for _, r := range []taskstore.Record{record(4, 5, "e"), record(0, 0, "")} {
		tell(r)
	}
	if want := []string{"4 5e"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
}
