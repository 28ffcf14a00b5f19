package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func TestEndOfTTL(t *testing.T) {
	rules.Covers(t, "C-58", "C-85", "C-98", "E-79", "B-53", "B-81", "B-93")
	bubble.Test(t, func(t *testing.T) {
		var why error
		s := newServer(t, Options{Concurrency: 1},
			numberTool("hang", mcptask.Policy{TTL: 5 * time.Second}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				<-ctx.Done()
				why = context.Cause(ctx)
				return in, ctx.Err()
			}),
			numberTool("next", mcptask.Policy{}, double))
		time.Sleep(1500 * time.Millisecond) // the end falls between two sweeps
		first, second := begin(t, s, alice, "hang"), begin(t, s, alice, "next")
		began := time.Now()
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				_, err := s.Await(t.Context(), alice, first.ID)
				if wireError(err).Code != mcptask.CodeInvalidParams || wireError(err).Reason() != cause.Expired || !errors.Is(err, mcptask.ErrExpired) {
					t.Errorf("who waits gets %v", err)
				}
			})
		}
		waiting.Wait()
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("expired after %v", d)
		}
		if _, err := s.Get(t.Context(), alice, first.ID); !errors.Is(err, mcptask.ErrExpired) {
			t.Errorf("the owner who asks afterwards gets %v", err)
		}
		if _, err := s.Get(t.Context(), bob, first.ID); err == nil || err.Error() != s.NotFound().Error() {
			t.Errorf("another caller gets %v", err)
		}
		ended(t, s, alice, second.ID) // the slot is free
		if time.Since(began) != 5*time.Second || !errors.Is(why, mcptask.ErrExpired) {
			t.Errorf("the next ran after %v; the handler ended by %v", time.Since(began), why)
		}
		time.Sleep(2 * sweepEvery)
		if _, err := s.store.Get(t.Context(), first.ID); !errors.Is(err, taskstore.ErrNoRecord) {
			t.Errorf("the record stays: %v", err)
		}
		time.Sleep(taskstore.TombstoneFor)
		if _, err := s.Get(t.Context(), alice, first.ID); err == nil || err.Error() != s.NotFound().Error() {
			t.Errorf("the owner who asks much later gets %v", err)
		}
	})
}

// TestEndOfTTLElsewhere lets a task expire that never ran, and one that asks.
func TestEndOfTTLElsewhere(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var ran atomic.Bool
		s := newServer(t, Options{Concurrency: 1}, numberTool("hang", mcptask.Policy{}, hang),
			numberTool("asks", mcptask.Policy{TTL: 5 * time.Second}, confirm),
			numberTool("queued", mcptask.Policy{TTL: 5 * time.Second}, func(context.Context, *mcptask.Task, number) (number, error) {
				ran.Store(true)
				return number{}, nil
			}))
		asking := begin(t, s, alice, "asks")
		asks(t, s, alice, asking.ID)
		time.Sleep(time.Millisecond) // until the slot is free
		first := begin(t, s, alice, "hang")
		time.Sleep(time.Millisecond) // tasks of one instant have no order
		queued := begin(t, s, alice, "queued")
		var waiting sync.WaitGroup
		for _, id := range []string{asking.ID, queued.ID} {
			waiting.Go(func() {
				if _, err := s.Await(t.Context(), alice, id); !errors.Is(err, mcptask.ErrExpired) {
					t.Errorf("%v", err)
				}
			})
		}
		waiting.Wait()
		if _, _, err := s.Cancel(t.Context(), alice, first.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if ran.Load() {
			t.Error("a task ran after its end")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.running)+listeners(s) != 0 {
			t.Errorf("%d running, %d progress left", len(s.running), listeners(s))
		}
	})
}

// listeners counts the tasks whose progress goes somewhere.
func listeners(s *Backend) (n int) {
	s.progress.Range(func(any, any) bool { n++; return true })
	return n
}

// TestOnlyPrincipalSurvives checks that a task's handler sees nothing of the request but its
// principal.
func TestOnlyPrincipalSurvives(t *testing.T) {
	type key struct{}
	s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
		if ctx.Value(key{}) != nil || task.Principal() != "alice" || task.Attempt() != 1 || task.ID() == "" {
			return number{}, errors.New("no")
		}
		return in, nil
	}))
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 1))
	reply, err := s.Call(ctx, alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask})
	cancel() // the request is over, but the task goes on
	if err != nil {
		t.Fatal(err)
	}
	if r := ended(t, s, alice, reply.Task.ID); r.Outcome.IsError || r.Outcome.Kind != taskstore.OutcomeResult {
		t.Error(outcomeText(r.Outcome))
	}
}

func TestCancelAndStop(t *testing.T) {
	rules.Covers(t, "C-76", "C-77", "E-57", "E-58", "B-72", "B-73")
	var cause error
	tools := []mcptask.Tool{
		numberTool("hang", mcptask.Policy{}, hang),
		numberTool("finishes", mcptask.Policy{}, func(ctx context.Context, _ *mcptask.Task, in number) (number, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return number{2 * in.N}, nil
		}),
		numberTool("asks", mcptask.Policy{}, confirm),
	}
	for _, c := range []struct{ tool, cancelled, stopped string }{
		{"hang", "cancelled", "cancelled"},
		{"finishes", "cancelled", doubled}, // E-57
		{"asks", "cancelled", "cancelled"},
		{"queued", "cancelled", "cancelled"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			for _, stop := range []bool{false, true} {
				bubble.Test(t, func(t *testing.T) {
					s := newServer(t, Options{Concurrency: 1}, append(tools, numberTool("queued", mcptask.Policy{}, double))...)
					if c.tool == "queued" {
						begin(t, s, bob, "hang")
					}
					id := begin(t, s, alice, c.tool).ID
					synctest.Wait()
					want := c.cancelled
					if stop {
						want = c.stopped
						if err := s.Stop(t.Context(), alice, id); err != nil {
							t.Fatal(err)
						}
						if err := s.Stop(t.Context(), alice, id); err != nil {
							t.Fatal(err)
						}
					} else if r, done, err := s.Cancel(t.Context(), alice, id); err != nil || done || r.Outcome.Kind != taskstore.OutcomeCancelled {
						t.Fatalf("%+v, %v, %v", r, done, err)
					}
					if synctest.Wait(); c.tool == "finishes" && !errors.Is(cause, mcptask.ErrCancelled) {
						t.Errorf("stop %v: the handler's context ended by %v", stop, cause)
					}
					cause = nil
					r := ended(t, s, alice, id)
					if got := outcomeText(r.Outcome); got != want || len(r.Outstanding()) != 0 {
						t.Errorf("stop %v: %s", stop, got)
					}
					if _, done, err := s.Cancel(t.Context(), alice, id); err != nil || !done {
						t.Errorf("cancelled again: %v, %v", done, err)
					}
					if err := s.Stop(t.Context(), alice, id); err != nil {
						t.Error(err)
					}
					if again := ended(t, s, alice, id); again.Version != r.Version {
						t.Errorf("an ended task moved: %+v", again)
					}
				})
			}
		})
	}
}

// TestCancelRacesFinish checks that a task ends once, as the faster of a cancel and its handler
// says, and that Cancel returns the stored end.
func TestCancelRacesFinish(t *testing.T) {
	rules.Covers(t, "C-29", "C-78", "B-30", "B-74")
	store := &recordingStore{Store: taskstore.NewMemory()}
	s := newServer(t, Options{Store: store, Concurrency: 8}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
		task.Progress(ctx, 1, 2, "half")
		return in, nil
	}))
	const rounds = 1000
	answered := map[string]taskstore.OutcomeKind{}
	for i := range rounds {
		id := begin(t, s, alice, "t").ID
		for range i % 8 {
			runtime.Gosched()
		}
		r, done, err := s.Cancel(t.Context(), alice, id)
		if err != nil || !done && r.Outcome.Kind != taskstore.OutcomeCancelled || done && r.Outcome.Kind != taskstore.OutcomeResult {
			t.Fatalf("%+v, %v, %v", r, done, err)
		}
		answered[id] = r.Outcome.Kind
	}
	if err := s.server.Close(); err != nil { // every handler has returned
		t.Fatal(err)
	}
	ends, kinds := map[string]int{}, map[taskstore.OutcomeKind]int{}
	for _, r := range store.history {
		if ends[r.ID] > 0 {
			t.Errorf("%s was stored after its end", r.ID)
		}
		if r.Done() {
			ends[r.ID]++
			kinds[r.Outcome.Kind]++
			if r.Outcome.Kind != answered[r.ID] {
				t.Errorf("%s: stored %s, answered %s", r.ID, r.Outcome.Kind, answered[r.ID])
			}
		}
	}
	if len(ends) != rounds {
		t.Errorf("%d ends", len(ends))
	}
	t.Log(kinds)
}

// TestIsolation checks that the answer for another caller's task is, byte for byte, the answer for
// a missing task.
func TestIsolation(t *testing.T) {
	rules.Covers(t, "C-92", "C-93", "C-94", "E-87", "B-88", "B-89")
	s := newServer(t, Options{}, numberTool("asks", mcptask.Policy{}, confirm))
	id := begin(t, s, alice, "asks").ID
	asks(t, s, alice, id)
	anonymous := Caller{Revision: mcptask.Revision20260728}
	operations := map[string]func(Caller, string) error{
		"get":     func(c Caller, id string) error { _, err := s.Get(t.Context(), c, id); return err },
		"changed": func(c Caller, id string) error { _, err := s.Changed(t.Context(), c, id, 0); return err },
		"await":   func(c Caller, id string) error { _, err := s.Await(t.Context(), c, id); return err },
		"cancel":  func(c Caller, id string) error { _, _, err := s.Cancel(t.Context(), c, id); return err },
		"stop":    func(c Caller, id string) error { return s.Stop(t.Context(), c, id) },
		"answer": func(c Caller, id string) error {
			return s.Answer(t.Context(), c, id, map[string]json.RawMessage{"ship": json.RawMessage(`{"action":"accept","content":{"approve":true}}`)})
		},
	}
	for name, operate := range operations {
		for _, caller := range []Caller{bob, anonymous, {Principal: "Alice"}, {Principal: "alice "}} {
			theirs, err1 := json.Marshal(operate(caller, id))
			none, err2 := json.Marshal(operate(caller, "there-is-no-such-task"))
			if err1 != nil || err2 != nil || string(theirs) != string(none) || !strings.Contains(string(none), "-32602") {
				t.Errorf("%s by %q: %s for a task, %s for none", name, caller.Principal, theirs, none)
			}
		}
	}
	if r, err := s.Get(t.Context(), alice, id); err != nil || r.Phase != taskstore.PhaseInputRequired || r.CancelRequested {
		t.Errorf("a stranger changed the task: %+v, %v", r, err)
	}
	if page, _, err := s.List(t.Context(), bob, taskstore.Position{}); err != nil || len(page) != 0 {
		t.Errorf("bob's list: %v, %v", page, err)
	}
	if _, _, err := s.List(t.Context(), anonymous, taskstore.Position{}); err == nil {
		t.Error("anonymous callers have a list (C-92)")
	}
}

func TestList(t *testing.T) {
	rules.Covers(t, "C-69", "C-72", "B-64", "B-67")
	s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, double))
	made := map[string]bool{}
	for range PageSize + 5 {
		made[begin(t, s, alice, "t").ID] = true
	}
	first, more, err := s.List(t.Context(), alice, taskstore.Position{})
	if err != nil || !more || len(first) != PageSize {
		t.Fatal(len(first), more, err)
	}
	last := first[PageSize-1]
	rest, more, err := s.List(t.Context(), alice, taskstore.Position{CreatedAt: time.Unix(0, last.CreatedAt.UnixNano()), ID: last.ID}) // as from a cursor
	if err != nil || more || len(rest) != 5 {
		t.Fatal(len(rest), more, err)
	}
	for _, r := range append(first, rest...) {
		delete(made, r.ID)
	}
	if len(made) != 0 {
		t.Errorf("%d tasks were left out", len(made))
	}
}

// TestOriginStays checks that a record keeps the origin of its caller, for a run after a restart. No principal, session
// or address can pass for another one, or for the client on a pipe.
func TestOriginStays(t *testing.T) {
	accounts := map[string]Caller{}
	for _, caller := range []Caller{
		{}, {Session: "s"}, {Address: "h"}, {Address: "h", Session: "s"}, {Principal: "p"}, {Principal: "p", Local: true}, {Local: true},
		{Local: true, Session: "s"}, {Principal: "local"}, {Principal: "local principal p"}, {Principal: "address h"}, {Session: "address h"},
		{Session: "local "}, {Session: "principal p"}, {Address: "h", Session: "s t"}, {Address: "h", Session: "session s"},
	} {
		account := caller.Account()
		if other, ok := accounts[account]; ok {
			t.Errorf("%+v and %+v share the account %q", caller, other, account)
		}
		accounts[account] = caller
		record := taskstore.Record{Principal: caller.Principal, Account: account}
		if got := callerOf(&record); !reflect.DeepEqual(got, caller) {
			t.Errorf("%+v comes back as %+v", caller, got)
		}
		if got := record.Address(); got != caller.Address {
			t.Errorf("%+v comes back with the address %q", caller, got)
		}
		shares := listShares(record.Account, record.Principal)
		wanted := 1 // how many levels
		if !caller.Local && caller.Principal == "" {
			wanted++
			if caller.Address != "" {
				wanted++
			}
		}
		if last := shares[len(shares)-1]; len(shares) != wanted || last.Key != account || last.All != caller.Local {
			t.Errorf("%+v has the shares %+v", caller, shares)
		}
	}
}
