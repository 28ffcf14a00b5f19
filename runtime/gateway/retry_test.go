package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// faulty is a store that can be made to fail.
type faulty struct {
	taskstore.Store
	broken atomic.Bool
}

func (s *faulty) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if s.broken.Load() {
		return taskstore.Record{}, errors.New("the disk is slow")
	}
	return s.Store.Get(ctx, id)
}

// stored is a task that runs, in a store that can be made to fail, and a session of its owner.
type stored struct {
	store   *faulty
	g       *Gateway
	session *session
	caller  taskserver.Caller
	task    taskstore.Record
}

func newStored(t *testing.T) stored {
	t.Helper()
	store := &faulty{Store: taskstore.NewMemory()}
	server := newServer(t, taskserver.Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	s := stored{store: store, g: New(Config{Server: server.Backend()}), session: &session{principal: "p"}, caller: taskserver.Caller{Principal: "p", Revision: mcptask.Revision20251125}}
	task, err := store.Create(t.Context(), taskstore.Record{
		ID: "task", Principal: "p", Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "w"}, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}, taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	s.task = task
	return s
}

// TestResultWaitsForTheStore checks that a tasks/result which comes while the store fails waits for
// the store, and then for its task. A poll is told of the failure.
func TestResultWaitsForTheStore(t *testing.T) {
	bubble.Run(t, "", func(t *testing.T) {
		a := newStored(t)
		find := func(method string) (taskstore.Record, error) {
			m := &message{Message: &wire.Message{Method: method, Params: wire.NewObject(json.RawMessage(`{"taskId":"task"}`))}}
			return a.g.findTask(t.Context(), a.caller, a.session, a.g.legacy, m)
		}
		a.store.broken.Store(true)
		var got taskstore.Record
		found := make(chan error, 1)
		go func() {
			var err error
			got, err = find("tasks/result")
			found <- err
		}()
		time.Sleep(time.Minute)
		select {
		case err := <-found:
			t.Fatalf("it has not waited: %v", err)
		default:
		}
		a.store.broken.Store(false)
		if err := <-found; err != nil || got.ID != a.task.ID {
			t.Errorf("%q, %v", got.ID, err)
		}
		a.store.broken.Store(true) // a poll is told, and comes again
		if _, err := find("tasks/get"); err == nil || !strings.Contains(err.Error(), "could not be read") {
			t.Error(err)
		}
		a.store.broken.Store(false)
		if a.g.Counts().Watched != 1 {
			t.Error("the task is forgotten")
		}
	})
}

// TestSubscriptionOutlivesTheStore checks that a subscription survives a store that fails for a
// while, and then reports what has changed meanwhile.
func TestSubscriptionOutlivesTheStore(t *testing.T) {
	bubble.Run(t, "", func(t *testing.T) {
		a := newStored(t)
		s := &subscription{g: a.g, caller: a.caller, id: json.RawMessage("1"), tasks: []string{a.task.ID}}
		var last string
		ended := make(chan error, 1)
		go func() { ended <- s.followTasks(t.Context(), func(data []byte) { last = string(data) }) }()
		synctest.Wait()
		a.store.broken.Store(true)
		r, err := a.store.Update(t.Context(), a.task, a.task, taskstore.Quota{}) // wakes the subscription, which then reads
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		end := r
		end.Phase, end.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
		if _, err := a.store.Update(t.Context(), r, end, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
		default:
		}
		a.store.broken.Store(false)
		if err := <-ended; err != nil || !strings.Contains(last, `"cancelled"`) {
			t.Errorf("%v, %s", err, last)
		}
	})
}
