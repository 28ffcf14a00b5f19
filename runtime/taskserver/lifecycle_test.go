package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"pgregory.net/rapid"

	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// allEvents returns one event of each kind, and one of a kind that does not exist.
func allEvents() []event {
	at := epoch.Add(time.Minute)
	return []event{
		{kind: eventStart, at: at, claim: taskstore.Claim{Worker: "w2", State: taskstore.ClaimRunning}},
		{kind: eventReport, at: at, report: &report{"half", taskstore.Progress{Done: 1, Total: 2}}},
		{kind: eventAsk, at: at, input: mcptask.Request{Key: "new", Method: spec.Elicit}},
		{kind: eventAnswer, at: at, key: "open", answer: json.RawMessage(`{"action":"decline"}`)},
		{kind: eventFetch, at: at, key: "open"},
		{kind: eventWithdraw, at: at, key: "open"},
		{kind: eventStop, at: at},
		{kind: eventFinish, at: at, outcome: taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{"content":[]}`)}},
		{kind: eventClaim, at: at, claim: taskstore.Claim{Worker: "w2"}},
		{kind: eventLeave, at: at},
		{kind: eventHandOver, at: at},
		{kind: "nonsense", at: at},
	}
}

// recordIn returns a task in a phase, with questions that fit it.
func recordIn(phase taskstore.Phase) taskstore.Record {
	r := taskstore.Record{ID: "t", Version: 7, Phase: phase, CreatedAt: epoch, UpdatedAt: epoch, ExpiresAt: epoch.Add(time.Hour), StatusMessage: "before"}
	if phase != taskstore.PhaseQueued {
		r.Attempt, r.Claim = 1, taskstore.Claim{Worker: "w1", State: taskstore.ClaimRunning, Nonce: "n1"}
		r.Inputs = []taskstore.Input{{Request: mcptask.Request{Key: "old"}, State: taskstore.InputAnswered, Response: json.RawMessage(`{"action":"cancel"}`)}}
	}
	switch phase {
	case taskstore.PhaseInputRequired:
		r.Inputs = append(r.Inputs, taskstore.Input{Request: mcptask.Request{Key: "open"}, State: taskstore.InputOutstanding})
	case taskstore.PhaseDone:
		r.Outcome, r.TerminalAt, r.Claim = &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}, epoch, taskstore.Claim{}
	}
	return r
}

// TestNext checks every event in every phase, with every state of a claim (C-27 to C-29, E-21).
func TestNext(t *testing.T) {
	rules.Covers(t, "C-27", "C-28", "C-29", "E-21", "B-28", "B-29", "B-30")
	allowed := map[taskstore.Phase]map[eventKind]taskstore.Phase{
		taskstore.PhaseQueued: {eventStart: taskstore.PhaseRunning, eventStop: taskstore.PhaseQueued, eventFinish: taskstore.PhaseDone, eventClaim: taskstore.PhaseQueued, eventLeave: taskstore.PhaseQueued},
		taskstore.PhaseRunning: {eventStart: taskstore.PhaseRunning, eventReport: taskstore.PhaseRunning, eventAsk: taskstore.PhaseInputRequired,
			eventStop: taskstore.PhaseRunning, eventFinish: taskstore.PhaseDone, eventClaim: taskstore.PhaseRunning, eventLeave: taskstore.PhaseRunning, eventHandOver: taskstore.PhaseRunning},
		taskstore.PhaseInputRequired: {eventStart: taskstore.PhaseInputRequired, eventReport: taskstore.PhaseInputRequired, eventAsk: taskstore.PhaseInputRequired,
			eventAnswer: taskstore.PhaseRunning, eventFetch: taskstore.PhaseInputRequired, eventWithdraw: taskstore.PhaseRunning, eventStop: taskstore.PhaseInputRequired, eventFinish: taskstore.PhaseDone,
			eventClaim: taskstore.PhaseInputRequired, eventLeave: taskstore.PhaseInputRequired, eventHandOver: taskstore.PhaseInputRequired},
		taskstore.PhaseDone: {},
	}
	// A handler reports, asks and hands over only while it runs. A task whose handler runs is not left.
	claims := map[taskstore.ClaimState][]eventKind{
		taskstore.ClaimWaiting: {eventStart, eventAnswer, eventFetch, eventStop, eventFinish, eventClaim, eventLeave},
		taskstore.ClaimRunning: {eventStart, eventReport, eventAsk, eventAnswer, eventFetch, eventWithdraw, eventStop, eventFinish, eventClaim, eventHandOver},
		"unknown":              {},
	}
	for _, phase := range []taskstore.Phase{taskstore.PhaseQueued, taskstore.PhaseRunning, taskstore.PhaseInputRequired, taskstore.PhaseDone, "nowhere"} {
		for i := range len(claims) * len(allEvents()) {
			e, state := allEvents()[i/len(claims)], slices.Sorted(maps.Keys(claims))[i%len(claims)]
			t.Run(fmt.Sprintf("%s/%s/%s", phase, state, e.kind), func(t *testing.T) {
				e.nonce = "n2"
				before := recordIn(phase)
				if phase != taskstore.PhaseDone {
					before.Claim.State = state
				}
				untouched := before
				untouched.Inputs = slices.Clone(before.Inputs)
				after, err := nextRecord(before, e)
				if !reflect.DeepEqual(before, untouched) {
					t.Fatalf("the record given was changed: %+v", before)
				}
				want, ok := allowed[phase][e.kind]
				if !ok || !slices.Contains(claims[state], e.kind) {
					if err == nil {
						t.Fatalf("taken: %+v", after)
					}
					if (phase == taskstore.PhaseDone) != errors.Is(err, errTerminal) {
						t.Errorf("error %v", err)
					}
					if !reflect.DeepEqual(after, untouched) {
						t.Errorf("a refused event changed the record: %+v", after)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if after.Phase != want {
					t.Errorf("phase %s, want %s", after.Phase, want)
				}
				if !after.UpdatedAt.Equal(e.at) || after.Version != before.Version || after.Nonce != "n2" || !hasWrite(&after, "n2") {
					t.Errorf("updated %v, version %d, by %q", after.UpdatedAt, after.Version, after.Nonce)
				}
				claim, moved := map[eventKind]taskstore.Claim{
					eventStart: {Worker: "w2", State: taskstore.ClaimRunning, Nonce: "n2"}, eventClaim: {Worker: "w2", State: taskstore.ClaimWaiting, Nonce: "n2"}, eventLeave: {Worker: "", State: taskstore.ClaimWaiting, Nonce: "n2"},
					eventHandOver: {Worker: "", State: taskstore.ClaimWaiting, Nonce: "n2"}, eventFinish: {},
				}[e.kind]
				if moved && after.Claim != claim || !moved && after.Claim != before.Claim {
					t.Errorf("claim %+v after %+v", after.Claim, before.Claim)
				}
				if done := after.Phase == taskstore.PhaseDone; done != (after.Outcome != nil) || done == after.TerminalAt.IsZero() ||
					done && (!after.TerminalAt.Equal(e.at) || after.Claim != (taskstore.Claim{}) || len(after.Outstanding()) > 0) {
					t.Errorf("the end is not set as a whole: %+v", after)
				}
				for i := range after.Inputs { // the result shares nothing with the record
					after.Inputs[i].State = "scribble"
				}
				if !reflect.DeepEqual(before, untouched) {
					t.Error("the records share their inputs")
				}
			})
		}
	}
}

func TestNextDetails(t *testing.T) {
	rules.Covers(t, "C-52", "C-88", "E-42", "E-43", "E-44", "E-80", "B-49", "B-84")
	step := func(t *testing.T, r taskstore.Record, e event) taskstore.Record {
		t.Helper()
		e.at = epoch.Add(time.Second)
		r, err := nextRecord(r, e)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Run("the last answer lets the task go on (C-52)", func(t *testing.T) {
		r := step(t, recordIn(taskstore.PhaseInputRequired), event{kind: eventAsk, input: mcptask.Request{Key: "second"}})
		if r = step(t, r, event{kind: eventAnswer, key: "open", answer: json.RawMessage(`1`)}); r.Phase != taskstore.PhaseInputRequired {
			t.Errorf("one of two answered: %s", r.Phase)
		}
		if r = step(t, r, event{kind: eventWithdraw, key: "second"}); r.Phase != taskstore.PhaseRunning {
			t.Errorf("none left: %s", r.Phase)
		}
		for _, key := range []string{"open", "second", "old", "unknown"} {
			if _, err := nextRecord(r, event{kind: eventAnswer, key: key}); err == nil {
				t.Errorf("an answer to %s was taken", key)
			}
		}
	})
	t.Run("a key is never used again (E-42 to E-44)", func(t *testing.T) {
		for _, key := range []string{"open", "old"} {
			if _, err := nextRecord(recordIn(taskstore.PhaseInputRequired), event{kind: eventAsk, input: mcptask.Request{Key: key}}); err == nil {
				t.Errorf("%s was asked twice", key)
			}
		}
	})
	t.Run("a question is fetched while it is open", func(t *testing.T) {
		r := step(t, recordIn(taskstore.PhaseInputRequired), event{kind: eventFetch, key: "open"})
		if r.Inputs[0].Fetched || !r.Inputs[1].Fetched || !isOutstanding(&r, "open") {
			t.Errorf("%+v", r.Inputs)
		}
		if _, err := nextRecord(r, event{kind: eventFetch, key: "old"}); err == nil {
			t.Error("an answered question was fetched")
		}
	})
	t.Run("a restart counts and moves the task", func(t *testing.T) {
		r := step(t, recordIn(taskstore.PhaseRunning), event{kind: eventStart, claim: taskstore.Claim{Worker: "w2", State: taskstore.ClaimRunning}})
		if r.Attempt != 2 || r.Claim.Worker != "w2" {
			t.Errorf("%+v", r)
		}
		r = step(t, r, event{kind: eventClaim, claim: taskstore.Claim{Worker: "w3"}})
		if r.Attempt != 2 || r.Claim.Worker != "w3" {
			t.Errorf("claimed: %+v", r)
		}
	})
	t.Run("a run that was handed over is not counted among the tries", func(t *testing.T) {
		r := step(t, recordIn(taskstore.PhaseRunning), event{kind: eventStart, claim: taskstore.Claim{Worker: "w2", State: taskstore.ClaimRunning}})
		r = step(t, r, event{kind: eventHandOver})
		if r.Attempt != 2 || r.Tries != 0 || r.Claim.Worker != "" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("the status message of each end", func(t *testing.T) {
		for _, c := range []struct {
			outcome taskstore.Outcome
			want    string
		}{
			{taskstore.Outcome{Kind: taskstore.OutcomeCancelled}, "The task was cancelled."},
			{taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(-1, "locked")}, "locked"},
			{taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{"content":[{"type":"image"},{"type":"text","text":"no"}],"isError":true}`), IsError: true}, "no"},
			{taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{"content":[{"type":"text","text":"yes"}]}`)}, ""},
			{taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`not JSON`), IsError: true}, ""},
		} {
			if r := step(t, recordIn(taskstore.PhaseRunning), event{kind: eventFinish, outcome: c.outcome}); r.StatusMessage != c.want {
				t.Errorf("%+v: %q", c.outcome, r.StatusMessage)
			}
		}
	})
}

// TestStaleReport checks that a task that succeeds drops a last report below its total, also one that comes with the end,
// and that any other end keeps it.
func TestStaleReport(t *testing.T) {
	none := taskstore.Progress{}
	result := taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{"content":[]}`)}
	fault := taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{"content":[],"isError":true}`), IsError: true}
	for _, c := range []struct {
		last    taskstore.Progress
		outcome taskstore.Outcome
		want    taskstore.Progress
	}{
		{taskstore.Progress{Done: 4, Total: 5}, result, none},
		{taskstore.Progress{Done: 5, Total: 5}, result, taskstore.Progress{Done: 5, Total: 5}},
		{taskstore.Progress{Done: 6, Total: 5}, result, taskstore.Progress{Done: 6, Total: 5}},
		{taskstore.Progress{Done: 4}, result, taskstore.Progress{Done: 4}},
		{taskstore.Progress{Done: -4}, result, taskstore.Progress{Done: -4}},
		{taskstore.Progress{Done: 4, Total: 5}, fault, taskstore.Progress{Done: 4, Total: 5}},
		{taskstore.Progress{Done: 4, Total: 5}, taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(-1, "locked")}, taskstore.Progress{Done: 4, Total: 5}},
		{taskstore.Progress{Done: 4, Total: 5}, taskstore.Outcome{Kind: taskstore.OutcomeCancelled}, taskstore.Progress{Done: 4, Total: 5}},
	} {
		stored := recordIn(taskstore.PhaseRunning)
		stored.Progress = c.last
		pending := recordIn(taskstore.PhaseRunning)
		pending.Progress = taskstore.Progress{Done: 1, Total: 5}
		for before, last := range map[*taskstore.Record]*report{&stored: nil, &pending: {"step", c.last}} {
			r, err := nextRecord(*before, event{kind: eventFinish, outcome: c.outcome, report: last})
			if err != nil || r.Progress != c.want {
				t.Errorf("%+v, then %s: %+v, %v, want %+v", c.last, nameOutcome(&c.outcome), r.Progress, err, c.want)
			}
		}
	}
}

// recordingStore keeps every version that Update stores, in order.
type recordingStore struct {
	taskstore.Store
	mu      sync.Mutex
	history []taskstore.Record
}

func (s *recordingStore) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.Store.Update(ctx, from, to, quota, steps...)
	if err == nil {
		s.history = append(s.history, r)
	}
	return r, err
}

// TestLifecycleProperty sends random events from many goroutines and checks each stored step.
func TestLifecycleProperty(t *testing.T) {
	rules.Covers(t, "C-29", "E-21", "E-42", "E-43", "B-30")
	keys := rapid.SampledFrom([]string{"a", "b", "c"})
	anyEvent := rapid.Custom(func(t *rapid.T) event {
		e := event{
			kind:   rapid.SampledFrom([]eventKind{eventStart, eventReport, eventAsk, eventAsk, eventAnswer, eventAnswer, eventFetch, eventWithdraw, eventStop, eventFinish, eventClaim, eventLeave, eventHandOver}).Draw(t, "kind"),
			report: rapid.SampledFrom([]*report{nil, {"x", taskstore.Progress{Done: 1, Total: 2}}, {"y", taskstore.Progress{}}}).Draw(t, "report"),
			key:    keys.Draw(t, "key"),
			input:  mcptask.Request{Key: keys.Draw(t, "input"), Method: spec.Elicit},
			answer: json.RawMessage(fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "answer"))),
		}
		switch worker := rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "worker"); e.kind {
		case eventStart:
			e.claim = taskstore.Claim{Worker: worker, State: taskstore.ClaimRunning}
		case eventClaim:
			e.claim = taskstore.Claim{Worker: worker}
		case eventLeave:
			e.claim = rapid.SampledFrom([]taskstore.Claim{{Worker: worker}, {}}).Draw(t, "claim")
		case eventHandOver:
			e.claim = rapid.SampledFrom([]taskstore.Claim{{Worker: worker}, {}}).Draw(t, "claim")
		}
		e.outcome = rapid.SampledFrom([]taskstore.Outcome{
			{Kind: taskstore.OutcomeCancelled},
			{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(-32603, "no")},
			{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{}`)},
			{Kind: taskstore.OutcomeResult, Result: json.RawMessage(`{}`), IsError: true},
		}).Draw(t, "outcome")
		return e
	})
	rapid.Check(t, func(t *rapid.T) {
		sequences := rapid.SliceOfN(rapid.SliceOfN(anyEvent, 1, 12), 2, 8).Draw(t, "sequences")
		store := &recordingStore{Store: taskstore.NewMemory()}
		ctx := context.Background()
		s := &Backend{store: store, logger: slog.New(slog.DiscardHandler), drained: ctx}
		first, err := store.Create(ctx, taskstore.Record{ID: "t", Phase: taskstore.PhaseQueued, CreatedAt: epoch, ExpiresAt: epoch.Add(time.Hour)}, taskstore.Quota{})
		if err != nil {
			t.Fatal(err)
		}
		var stored sync.WaitGroup
		for _, events := range sequences {
			stored.Go(func() {
				for _, e := range events {
					// Most random events are refused. The test looks at the stored record.
					_, _ = s.applyEvent(ctx, taskstore.Record{ID: "t"}, func(taskstore.Record) event { return e })
				}
			})
		}
		stored.Wait()
		before := first
		for _, after := range store.history {
			checkStep(t, before, after)
			before = after
		}
		if last, err := store.Get(ctx, "t"); err != nil || !reflect.DeepEqual(last, before) {
			t.Fatalf("the store has %+v, %v; stored last was %+v", last, err, before)
		}
	})
}

// checkStep checks a version against the one before it.
func checkStep(t *rapid.T, before, after taskstore.Record) {
	if after.Version != before.Version+1 {
		t.Fatalf("version %d after %d", after.Version, before.Version)
	}
	if before.Done() {
		t.Fatalf("an ended task was changed: %+v to %+v", before, after)
	}
	if after.Done() != (after.Outcome != nil) || after.Done() == after.TerminalAt.IsZero() {
		t.Fatalf("outcome and end are not set together: %+v", after)
	}
	if isRun := after.Claim.State == taskstore.ClaimRunning; isRun && (after.Attempt == 0 || after.Claim.Worker == "" || after.Phase == taskstore.PhaseQueued) ||
		after.Done() && after.Claim != (taskstore.Claim{}) {
		t.Fatalf("a task in phase %s, after %d runs, has the claim %+v", after.Phase, after.Attempt, after.Claim)
	}
	if after.Nonce == before.Nonce || after.Claim != before.Claim && after.Claim.Nonce != after.Nonce && !after.Done() {
		t.Fatalf("the write %q of the claim %+v followed %q", after.Nonce, after.Claim, before.Nonce)
	}
	if after.Attempt < before.Attempt || before.CancelRequested && !after.CancelRequested {
		t.Fatalf("the past was undone: %+v to %+v", before, after)
	}
	seen := map[string]bool{}
	for i, in := range after.Inputs {
		if seen[in.Key] {
			t.Fatalf("key %s was used twice", in.Key)
		}
		seen[in.Key] = true
		if i < len(before.Inputs) {
			was := before.Inputs[i]
			if was.Key != in.Key || was.State != taskstore.InputOutstanding && !reflect.DeepEqual(was, in) {
				t.Fatalf("question %+v became %+v", was, in)
			}
		}
	}
	if len(after.Inputs) < len(before.Inputs) {
		t.Fatal("a question was lost")
	}
	if (after.Phase == taskstore.PhaseInputRequired) != (len(after.Outstanding()) > 0) {
		t.Fatalf("phase %s with %d open questions", after.Phase, len(after.Outstanding()))
	}
}

// TestParked checks that a run that was parked goes on when any of the questions that it waited for is settled, also if
// that has happened before it is stored as parked.
func TestParked(t *testing.T) {
	asked := taskstore.Record{Phase: taskstore.PhaseInputRequired, Attempt: 1, Tries: 1, Claim: taskstore.Claim{Worker: "engine", State: taskstore.ClaimRunning}, Inputs: []taskstore.Input{
		{Request: mcptask.Request{Key: "before"}, State: taskstore.InputAnswered}, {Request: mcptask.Request{Key: "a"}, State: taskstore.InputOutstanding}, {Request: mcptask.Request{Key: "b"}, State: taskstore.InputOutstanding}, {Request: mcptask.Request{Key: "aside"}, State: taskstore.InputOutstanding}}}
	settle := map[string][]event{
		"nothing":                nil,
		"an answer":              {{kind: eventAnswer, key: "b"}},
		"a withdrawal":           {{kind: eventWithdraw, key: "a"}},
		"an answer to no waiter": {{kind: eventAnswer, key: "aside"}},
	}
	for name, events := range settle {
		for _, isLate := range []bool{false, true} {
			park := event{kind: eventHandOver, claim: taskstore.Claim{Worker: "engine"}, park: []string{"a", "b"}}
			all := append(slices.Clone(events), park)
			if isLate {
				all = append([]event{park}, events...)
			}
			if isLate && name == "a withdrawal" { // only a handler withdraws its question
				continue
			}
			r := asked
			for _, e := range all {
				var err error
				if r, err = nextRecord(r, e); err != nil {
					t.Fatal(err)
				}
			}
			waits := name == "nothing" || name == "an answer to no waiter"
			if isParked(&r) != waits || r.Tries != 0 || r.Claim.Worker != "engine" {
				t.Errorf("%s, late %v: %+v", name, isLate, r)
			}
			r, err := nextRecord(r, event{kind: eventStart, claim: taskstore.Claim{Worker: "engine", State: taskstore.ClaimRunning}})
			if err != nil || isParked(&r) || r.Attempt != 2 || r.Tries != 1 {
				t.Errorf("%s, late %v, run again: %+v, %v", name, isLate, r, err)
			}
		}
	}
}

// TestLongMessages checks that a status message is bounded, and that the outcome has all of its text.
func TestLongMessages(t *testing.T) {
	long := strings.Repeat("ä", 4000)
	for name, e := range map[string]event{
		"a report": {kind: eventReport, report: &report{message: long}},
		"an error": {kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(mcptask.CodeInternalError, "%s", long)}},
		"a tool error": {kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeResult, IsError: true,
			Result: []byte(`{"content":[{"type":"text","text":"` + long + `"}]}`)}},
	} {
		r, err := nextRecord(taskstore.Record{Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{State: taskstore.ClaimRunning}}, e)
		if err != nil || len(r.StatusMessage) > maxMessage || !strings.HasSuffix(r.StatusMessage, "ä...") {
			t.Errorf("%s: %d bytes, %v", name, len(r.StatusMessage), err)
		}
		if r.Outcome != nil && !strings.Contains(string(r.Outcome.Result)+fmt.Sprint(r.Outcome.Error), long) {
			t.Errorf("%s: the outcome is cut", name)
		}
	}
}
