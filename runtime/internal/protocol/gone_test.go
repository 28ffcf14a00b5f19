package protocol_test

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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// unread is a store that cannot be read for a while.
type unread struct {
	taskstore.Store
	broken, once atomic.Bool
}

func (s *unread) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if s.broken.Load() || s.once.Swap(false) {
		return taskstore.Record{}, errors.New("the disk is slow")
	}
	return s.Store.Get(ctx, id)
}

// If the store cannot be read, a tasks/result does not end, because its error would be the task's. Nor does the server
// say that the task is gone.
func TestStoreCannotBeRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &unread{Store: taskstore.NewMemory()}
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "work", InputSchema: `{"type":"object"}`},
			func(context.Context, *mcptask.Task, struct{}) (string, error) { return "done", nil })
		server, err := taskserver.New(taskserver.Options{Store: store, Logger: slog.New(slog.DiscardHandler)},
			mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{tool}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		}()
		caller := taskserver.Caller{Principal: "p"}
		reply, err := server.Backend().Call(t.Context(), caller, "work", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask, ExternalID: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		params := wire.NewObject([]byte(`{"taskId":"mine"}`))
		get, wait := unofficial.ServerSEP1686{}.Method("tasks/get"), protocol.Server20251125{}.Method("tasks/result")
		store.once.Store(true)
		if _, err := get(t.Context(), server.Backend(), caller, params); protocol.IsGone(err) {
			t.Errorf("tasks/get by a name, after one failed read: %v", err)
		}
		store.broken.Store(true)
		if _, err := get(t.Context(), server.Backend(), caller, params); err == nil || protocol.IsGone(err) {
			t.Errorf("tasks/get by a name: %v", err)
		}
		time.AfterFunc(time.Minute, func() { store.broken.Store(false) })
		params = wire.NewObject([]byte(`{"taskId":"` + reply.Task.ID + `"}`))
		if result, err := wait(t.Context(), server.Backend(), caller, params); err != nil || !strings.Contains(string(result), `"done"`) {
			t.Errorf("tasks/result: %s, %v", result, err)
		}
		store.broken.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := wait(ctx, server.Backend(), caller, params); err == nil || protocol.IsGone(err) {
			t.Errorf("tasks/result of a client that leaves: %v", err)
		}
		store.broken.Store(false)
	})
}
