package fallback

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestLateAnswerLogsNoKey checks that the log has no ID of an anonymous caller's task, which is the
// key to it, even if an answer comes too late.
func TestLateAnswerLogsNoKey(t *testing.T) {
	var log strings.Builder
	server, err := mcptask.NewServer(mcptask.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	const gone = "ATASKTHATHASEXPIREDMEANWHILE"
	ctx, stop := context.WithCancel(t.Context())
	a := &asker{
		server: server, giveUp: stop,
		ask: func(context.Context, mcptask.Input) (json.RawMessage, error) { return json.RawMessage(`{}`), nil },
	}
	a.askQuestion(ctx, gone, mcptask.Input{Key: "step"})
	if text := log.String(); ctx.Err() == nil || !strings.Contains(text, "answer not taken") || strings.Contains(text, gone) {
		t.Errorf("given up: %v, log: %s", ctx.Err(), text)
	}
}

// unread is a store that cannot be read for a while.
type unread struct {
	mcptask.Store
	broken atomic.Bool
}

func (s *unread) Get(ctx context.Context, id string) (mcptask.Record, error) {
	if s.broken.Load() {
		return mcptask.Record{}, errors.New("the disk is slow")
	}
	return s.Store.Get(ctx, id)
}

// TestStoreFailsDuringCall checks that a store that fails while a call waits for its task costs
// time, and not the work.
func TestStoreFailsDuringCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &unread{Store: mcptask.NewMemoryStore()}
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "work", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Wait: time.Hour}},
			func(_ context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				store.broken.Store(true)
				time.Sleep(time.Minute)
				store.broken.Store(false)
				return "done", nil
			})
		server, err := mcptask.NewServer(mcptask.Options{Store: store, Logger: slog.New(slog.DiscardHandler)},
			mcptask.Tools{Service: "S", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{tool}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}()
		reply, err := newTaskHandler(server, mcptask.Caller{Principal: "p"}, "work", way{})(t.Context(), json.RawMessage(`{}`), mcptask.CallRequest{})
		if err != nil || reply.Outcome == nil || !strings.Contains(string(reply.Outcome.Result), `"done"`) {
			t.Errorf("%+v, %v", reply.Outcome, err)
		}
	})
}
