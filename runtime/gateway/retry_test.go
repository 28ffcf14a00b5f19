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
)

// faulty is a store that can be made to fail.
type faulty struct {
	mcptask.Store
	broken atomic.Bool
}

func (s *faulty) Get(ctx context.Context, id string) (mcptask.Record, error) {
	if s.broken.Load() {
		return mcptask.Record{}, errors.New("the disk is slow")
	}
	return s.Store.Get(ctx, id)
}

// stored is a task that runs, in a store that can be made to fail, and a session of its owner.
type stored struct {
	store   *faulty
	g       *Gateway
	session *session
	caller  mcptask.Caller
	task    mcptask.Record
}

func newStored(t *testing.T) stored {
	t.Helper()
	store := &faulty{Store: mcptask.NewMemoryStore()}
	server, err := mcptask.NewServer(mcptask.Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	s := stored{store: store, g: New(Config{Server: server}), session: &session{principal: "p"}, caller: mcptask.Caller{Principal: "p", Revision: mcptask.Revision20251125}}
	s.task, err = store.Create(t.Context(), mcptask.Record{
		ID: "task", Principal: "p", Phase: mcptask.PhaseRunning, Worker: "w", LeaseUntil: time.Now().Add(time.Hour), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}, mcptask.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A tasks/result that comes while the store fails waits for its task once it is
// sound, with a stream for the task's questions.
func TestResultWaitsForTheStore(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		a := newStored(t)
		params := json.RawMessage(`{"taskId":"task"}`)
		a.store.broken.Store(true)
		var got mcptask.Record
		found := make(chan error, 1)
		go func() {
			var err error
			got, err = a.g.findTask(t.Context(), a.caller, a.session, a.g.legacy, &message{Message: &wire.Message{Method: "tasks/result", Params: wire.NewObject(params)}})
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
		if _, err := a.g.findTask(t.Context(), a.caller, a.session, a.g.legacy, &message{Message: &wire.Message{Method: "tasks/get", Params: wire.NewObject(params)}}); err == nil ||
			!strings.Contains(err.Error(), "could not be read") {
			t.Error(err)
		}
		a.store.broken.Store(false)
		if a.g.Counts().Watched != 1 {
			t.Error("the task is forgotten")
		}
	})
}

// A subscription detach a store that fails for a while, and tells what has changed
// meanwhile.
func TestSubscriptionOutlivesTheStore(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		a := newStored(t)
		s := &subscription{g: a.g, caller: a.caller, id: json.RawMessage("1"), tasks: []string{a.task.ID}}
		var last string
		ended := make(chan error, 1)
		go func() { ended <- s.followTasks(t.Context(), func(data []byte) { last = string(data) }) }()
		synctest.Wait()
		a.store.broken.Store(true)
		r, err := a.store.Update(t.Context(), a.task, mcptask.Quota{}) // wakes the subscription, which then reads
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.Phase, r.Outcome = mcptask.PhaseDone, &mcptask.Outcome{Kind: mcptask.OutcomeCancelled}
		if _, err := a.store.Update(t.Context(), r, mcptask.Quota{}); err != nil {
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
