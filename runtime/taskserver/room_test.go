package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// from returns an anonymous caller from an address, in a session of its own unless it is 0.
func from(address string, session int) Caller {
	caller := Caller{Address: address, Revision: mcptask.Revision20260728}
	if session > 0 {
		caller = anonymous(session)
		caller.Address = address
	}
	return caller
}

// TestAnonymousTTL checks that an anonymous caller's task is kept as long as the tool says and no longer, whatever the
// caller asks for. A principal may ask for more.
func TestAnonymousTTL(t *testing.T) {
	s := newServer(t, Options{}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour}, double))
	month := 30 * 24 * time.Hour
	for _, caller := range []Caller{from("h", 0), from("h", 1), {Revision: mcptask.Revision20260728}, alice} {
		reply, err := s.Call(t.Context(), caller, "double", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask, TTL: &month})
		if err != nil {
			t.Fatal(err)
		}
		want := time.Hour
		if caller.Principal != "" {
			want = month
		}
		if got := reply.Task.TTL(); got != want {
			t.Errorf("%+v: the task lasts %v, want %v", caller, got, want)
		}
	}
}

// TestEndedTasksLockNobodyOut checks that the ended tasks of anonymous callers are no reason to refuse others,
// whichever bound they have reached: the tasks that ended first go. A running one, and one that has just ended, stay.
func TestEndedTasksLockNobodyOut(t *testing.T) {
	const most = 400
	flood := map[string]func(i int) Caller{
		"without a session": func(int) Caller { return from("evil", 0) },
		"in sessions":       func(i int) Caller { return from("evil", 1+i%5) },
		"from addresses":    func(i int) Caller { return from(fmt.Sprint("evil", i%3), 1+i%6) },
		"without addresses": func(i int) Caller { return Caller{Session: fmt.Sprint(i % 5), Revision: mcptask.Revision20260728} },
	}
	for bound, limits := range map[string]Limits{
		"stored": {Tasks: most, Anonymous: Totals{Tasks: most}, Server: Totals{Tasks: 2 * most}},
		"bytes":  {Bytes: most * 700, Anonymous: Totals{Bytes: most * 700}, Server: Totals{Bytes: 2 * most * 700}},
	} {
		for name, caller := range flood {
			bubble.Run(t, bound+" "+name, func(t *testing.T) {
				s := newServer(t, Options{Limits: limits}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour}, double), numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
				victim := from("good", 9)
				running := begin(t, s, victim, "hang").ID
				for i := range 4 * most {
					if _, err := call(s, caller(i), "double", ModeTask); err != nil {
						t.Fatalf("task %d of the flood: %v", i, err)
					}
					synctest.Wait()
					time.Sleep(time.Millisecond)
				}
				id := begin(t, s, victim, "double").ID
				ended(t, s, victim, id)
				for i := range most / 8 {
					if _, err := call(s, caller(i), "double", ModeTask); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Millisecond)
				}
				if r, err := s.Get(t.Context(), victim, id); err != nil || r.Outcome.Kind != taskstore.OutcomeResult {
					t.Errorf("the new task: %+v, %v", r, err)
				}
				if r, err := s.Get(t.Context(), victim, running); err != nil || r.Done() {
					t.Errorf("the running task: %+v, %v", r, err)
				}
				begin(t, s, alice, "double")
			})
		}
	}
}

// TestSessionFillsItself checks that a session which fills its own account is refused, and that its tasks stay.
func TestSessionFillsItself(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Limits: Limits{Tasks: 20}}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		var ids []string
		for range 20 {
			ids = append(ids, begin(t, s, from("h", 1), "double").ID)
		}
		synctest.Wait()
		_, err := call(s, from("h", 1), "double", ModeTask)
		exceeded(t, err, "tasks", 20)
		for _, id := range ids {
			ended(t, s, from("h", 1), id)
		}
	})
}

// TestRoomForResults checks that a result of an anonymous caller finds room that ended tasks have taken.
func TestRoomForResults(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const size = 10_000
		big := mcptask.NewTool(mcptask.ToolSpec{Name: "big", InputSchema: numberSchema, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}, func(context.Context, *mcptask.Task, number) (string, error) {
			return strings.Repeat("x", size), nil
		})
		s := newServer(t, Options{Limits: Limits{Bytes: 20 * size}}, big)
		for i := range 200 {
			caller := from(fmt.Sprint("h", i%5), 0)
			if r := ended(t, s, caller, begin(t, s, caller, "big").ID); r.Outcome.Kind != taskstore.OutcomeResult {
				t.Fatalf("result %d: %+v", i, r.Outcome.Error)
			}
		}
	})
}

// listed counts how many records a store has listed.
type listed struct {
	taskstore.Store
	mu      sync.Mutex
	records int
	deletes int
}

func (l *listed) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	page, err := l.Store.List(ctx, principal, after, limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records += len(page)
	return page, err
}

func (l *listed) Delete(ctx context.Context, r taskstore.Record) error {
	l.mu.Lock()
	l.deletes++
	l.mu.Unlock()
	return l.Store.Delete(ctx, r)
}

func (l *listed) take() (records, deletes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records, deletes = l.records, l.deletes
	l.records, l.deletes = 0, 0
	return records, deletes
}

// TestRoomCostsLittle checks that a creation which finds no room reads a bounded part of the list, also if nothing in
// it may go, and that it finds the tasks that may go in the end. Creations at once drop no more than they need.
func TestRoomCostsLittle(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 2000
		store := &listed{Store: taskstore.NewMemory()}
		s := newServer(t, Options{Store: store, Concurrency: 1, Limits: Limits{Tasks: most, Running: most, Anonymous: Totals{Tasks: most, Running: most}}},
			numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang), numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		var ids []string
		for i := range most {
			ids = append(ids, begin(t, s, from(fmt.Sprint("h", i%7), 1+i%7), "hang").ID)
			time.Sleep(time.Millisecond)
		}
		for range 4 {
			store.take()
			_, err := call(s, from("g", 0), "double", ModeTask)
			exceededBy(t, err, taskstore.ScopeAnonymous, "tasks", most)
			if read, _ := store.take(); read > dropPages*dropPage {
				t.Errorf("%d records are read", read)
			}
		}
		for _, id := range ids[1500:1600] {
			if _, _, err := s.Cancel(t.Context(), Caller{Revision: mcptask.Revision20260728}, id); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 { // as often as it takes to come around
			_, _ = call(s, from("g", 0), "double", ModeTask)
		}
		_, dropped := store.take()
		if dropped == 0 {
			t.Error("nothing was dropped")
		}
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				if _, err := call(s, from("g", 0), "double", ModeTask); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, more := store.take(); dropped+more > 3+40+dropBatch {
			t.Errorf("%d are dropped for 43", dropped+more)
		}
	})
}

// TestAddressHasAShareOfSlots checks that endless tasks of one address, in whatever sessions, do not make another
// address's task wait. They run all the same if nobody else is there.
func TestAddressHasAShareOfSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang), numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		for i := range 300 {
			begin(t, s, from("evil", i/12), "hang")
		}
		synctest.Wait()
		if free := s.line.Free(); free == 0 || free > DefaultConcurrency/2 {
			t.Errorf("%d slots are free", free)
		}
		for _, caller := range []Caller{from("good", 0), from("good", 9), {Session: "no address", Revision: mcptask.Revision20251125}, {Revision: mcptask.Revision20260728}, alice} {
			began := time.Now()
			ended(t, s, caller, begin(t, s, caller, "double").ID)
			if waited := time.Since(began); waited != 0 {
				t.Errorf("%+v waits for %v", caller, waited)
			}
		}
	})
}

// TestAddressHasAShare checks that an address gets no more than its share of the room of anonymous callers, however
// many sessions it opens.
func TestAddressHasAShare(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 10
		s := newServer(t, Options{Limits: Limits{Running: most}}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
		made := 0
		var last error
		for i := range 100 {
			if _, err := call(s, from("evil", i/12), "hang", ModeTask); err == nil {
				made++
			} else if i%12 < most {
				last = err
			}
		}
		if made != 3*most {
			t.Errorf("an address has %d tasks", made)
		}
		if exceededBy(t, last, taskstore.ScopeAddress, "running", 3*most); !strings.HasSuffix(hideInternals(last).Message, " for all anonymous callers of one address is exceeded: try again later, or authenticate") {
			t.Error(last)
		}
		for range most {
			begin(t, s, from("good", 0), "hang")
		}
		_, err := call(s, from("good", 1), "hang", ModeTask)
		if !errors.As(err, new(*mcptask.Error)) {
			t.Error(err)
		}
		exceededBy(t, err, taskstore.ScopeAnonymous, "running", 4*most)
	})
}
