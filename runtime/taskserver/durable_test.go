package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestStoredBeforeAnnounced checks that a caller that is told of a task finds it, in another
// process too.
func TestStoredBeforeAnnounced(t *testing.T) {
	rules.Covers(t, "E-22", "E-23")
	for _, mode := range []Mode{ModeTask, ModeGrace} {
		bubble.Test(t, func(t *testing.T) {
			shared := taskstore.NewMemory()
			minute := func(context.Context) error { time.Sleep(time.Minute); return nil }
			full := func(context.Context) error { time.Sleep(time.Minute); return errors.New("the disk is full") }
			var ran atomic.Bool
			tool := numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				ran.Store(true)
				return after(time.Hour)(ctx, task, in)
			})
			here := newServer(t, Options{Store: &tapStore{Store: shared, tap: before(minute, "Create")}}, tool)
			there := newServer(t, Options{Store: shared}, tool)
			began := time.Now()
			go func() {
				time.Sleep(59 * time.Second)
				if ran.Load() {
					t.Error("the handler runs, and the task is not stored")
				}
			}()
			reply, err := here.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: mode})
			if err != nil || reply.Task == nil || time.Since(began) < time.Minute {
				t.Fatalf("%+v, %v after %v", reply, err, time.Since(began))
			}
			if _, err := there.Get(t.Context(), alice, reply.Task.ID); err != nil {
				t.Errorf("announced, and not there: %v", err)
			}
			synctest.Wait()
			if !ran.Swap(false) {
				t.Error("the handler does not run")
			}
			broken := newServer(t, Options{Store: &tapStore{Store: shared, tap: before(full, "Create")}}, tool)
			reply, err = broken.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: mode})
			if wireError(err).Code != mcptask.CodeInternalError || reply.Task != nil {
				t.Errorf("%+v, %v", reply, err)
			}
			if synctest.Wait(); ran.Load() {
				t.Error("the handler of a task that was never stored has run")
			}
		})
	}
}

// TestTaskIDs checks that no two tasks have the same ID, even of several servers.
func TestTaskIDs(t *testing.T) {
	rules.Covers(t, "C-25", "B-26")
	store := taskstore.NewMemory()
	var mu sync.Mutex
	ids := map[string]bool{}
	const servers, each = 4, 250
	var all sync.WaitGroup
	for range servers {
		s := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{}, double))
		for range each {
			all.Go(func() {
				id := begin(t, s, alice, "t").ID
				mu.Lock()
				defer mu.Unlock()
				ids[id] = true
			})
		}
	}
	all.Wait()
	if len(ids) != servers*each || ids[""] {
		t.Errorf("%d IDs for %d tasks", len(ids), servers*each)
	}
}
