package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	yes = `{"action":"accept","content":{"approve":true}}`
	no  = `{"action":"accept","content":{"approve":false}}`
)

// answer sends one answer.
func answer(t testing.TB, s *Backend, caller Caller, id, key, response string) error {
	t.Helper()
	return s.Answer(t.Context(), caller, id, map[string]json.RawMessage{key: json.RawMessage(response)})
}

func TestAnswers(t *testing.T) {
	rules.Covers(t, "E-50")
	for _, c := range []struct{ response, want string }{
		{yes, doubled},
		{`{"action":"accept","content":{"approve":true,"extra":1}}`, doubled},
		{no, `result {"content":[{"text":"not approved","type":"text"}],"isError":true}`},
		{`{"action":"decline"}`, `result {"content":[{"text":"ship: the question was declined","type":"text"}],"isError":true}`},
		{`{"action":"cancel"}`, `result {"content":[{"text":"ship: the question was dismissed","type":"text"}],"isError":true}`},
	} {
		t.Run(c.response, func(t *testing.T) {
			s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				in.N *= 2
				return confirm(ctx, task, in)
			}))
			id := begin(t, s, alice, "t").ID
			asked := asks(t, s, alice, id)
			if q := asked.Outstanding()[0]; q.Key != "ship" || q.Method != spec.Elicit || !strings.Contains(string(q.Params), `"message":"Ship it?"`) {
				t.Errorf("%+v", q)
			}
			for _, bad := range []string{`{"action":"accept"}`, `{"action":"accept","content":{"approve":"yes"}}`, `{"action":"shrug"}`, `{}`, `null`, `7`, `{`} {
				if err := answer(t, s, alice, id, "ship", bad); wireError(err).Code != mcptask.CodeInvalidParams {
					t.Errorf("%s was answered with %v", bad, err)
				}
			}
			if err := answer(t, s, alice, id, "unknown", `null`); err != nil { // E-50
				t.Error(err)
			}
			if r := asks(t, s, alice, id); r.Version != asked.Version {
				t.Errorf("refused answers changed the task: %+v", r)
			}
			if err := answer(t, s, alice, id, "ship", c.response); err != nil {
				t.Fatal(err)
			}
			if err := answer(t, s, alice, id, "ship", no); err != nil { // answered already
				t.Error(err)
			}
			r := ended(t, s, alice, id)
			if got := outcomeText(r.Outcome); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
			if string(r.Inputs[0].Response) != c.response {
				t.Errorf("the first answer was %s", r.Inputs[0].Response)
			}
		})
	}
}

// TestStoredAnswers checks that a task keeps only those members of an answer that the server reads: nothing has checked
// the others.
func TestStoredAnswers(t *testing.T) {
	form, page := taskstore.Input{Request: mcptask.Request{Method: spec.Elicit, Schema: json.RawMessage(`{}`)}}, taskstore.Input{Request: mcptask.Request{Method: spec.Elicit}}
	sample, roots := taskstore.Input{Request: mcptask.Request{Method: spec.Sample}}, taskstore.Input{Request: mcptask.Request{Method: spec.Roots}}
	for _, c := range []struct {
		in             taskstore.Input
		response, want string
	}{
		{form, `{"_meta":{"a":[]},"content":{"b": 1.50,"more":"<"},"action":"accept","c":[[[]]]}`, `{"action":"accept","content":{"b":1.50,"more":"<"}}`},
		{form, `{"action":"accept"}`, `{"action":"accept"}`},
		{form, `{"action":"decline","content":{"a":[[]]}}`, `{"action":"decline"}`},
		{page, `{"action":"accept","content":{"a":[[]]}}`, `{"action":"accept"}`},
		{form, `[[[]]]`, `[[[]]]`}, // 2025-11-25 tells the handler of it
		{sample, `{"role":"assistant","model":"m","content":{"type":"text","text":"hi"},"stopReason":"endTurn","a":[[]]}`,
			`{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"endTurn"}`},
		{sample, `{"content":[{"type":"text","text":"<a>"},{"type":"text","text":"b"}],"role":"assistant","model":"m"}`,
			`{"role":"assistant","content":[{"type":"text","text":"<a>"},{"type":"text","text":"b"}],"model":"m"}`},
		{roots, `{"roots":[{"uri":"file:///a","name":"a","_meta":{"a":[]}}],"b":[[]]}`, `{"roots":[{"uri":"file:///a","name":"a"}]}`},
	} {
		r := taskstore.Record{Phase: taskstore.PhaseInputRequired, Inputs: []taskstore.Input{c.in}}
		r.Inputs[0].State = taskstore.InputOutstanding
		if err := applyAnswer(&r, event{kind: eventAnswer, answer: json.RawMessage(c.response)}); err != nil {
			t.Fatal(err)
		}
		if got := string(r.Inputs[0].Response); got != c.want {
			t.Errorf("%s is stored as %s, want %s", c.response, got, c.want)
		}
	}
}

// TestSeveralBlocks checks that a message of several blocks is refused in the revisions without them, and that the error
// names the step and the way out.
func TestSeveralBlocks(t *testing.T) {
	ask := func(revision, content string) error {
		in := mcptask.Request{Key: "sum", Method: spec.Sample, Params: json.RawMessage(`{"maxTokens":1,"messages":[{"role":"user","content":` + content + `}]}`)}
		caller := Caller{Revision: revision, CanAsk: []string{spec.Sample}}
		err := caller.checkCanAsk(in, true)
		if caller.Answers(in) != (err == nil) {
			t.Errorf("%s in %s: Answers and checkCanAsk differ: %v", content, revision, err)
		}
		return err
	}
	const one, two = `{"type":"text","text":"a"}`, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`
	for _, revision := range []string{"", mcptask.Revision20251125, mcptask.Revision20251125RC, mcptask.Revision20260728, mcptask.RevisionTaskPatterns} {
		if err := errors.Join(ask(revision, one), ask(revision, two)); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
	}
	for _, revision := range []string{"2025-03-26", "2025-06-18", mcptask.RevisionSEP1686} {
		if err := ask(revision, one); err != nil {
			t.Errorf("%s: %v", revision, err)
		}
		if err := ask(revision, two); !errors.Is(err, mcptask.ErrCannotAsk) || !strings.Contains(err.Error(), `the step "sum"`) || !strings.Contains(err.Error(), "make a message of each block") {
			t.Errorf("%s: %v", revision, err)
		}
	}
}

// TestTwoQuestions checks that several open questions of a handler share its slot, and that one bad
// answer of two takes neither.
func TestTwoQuestions(t *testing.T) {
	rules.Covers(t, "E-31", "E-51")
	bubble.Test(t, func(t *testing.T) {
		var now atomic.Int32
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			var asking sync.WaitGroup
			var sum atomic.Int32
			for _, step := range []string{"a", "b", "c"} {
				asking.Go(func() {
					if a, err := mcptask.Ask[approval](ctx, task, approvalInput, step, ""); err == nil && a.Approve {
						sum.Add(1)
					}
				})
			}
			asking.Wait() // with one slot, all three give up the same one
			return number{int(sum.Load())}, nil
		}), numberTool("other", mcptask.Policy{}, func(context.Context, *mcptask.Task, number) (number, error) {
			if n := now.Add(1); n > 1 {
				t.Errorf("%d run at once: a task that asks twice gave up two slots", n)
			}
			time.Sleep(5 * time.Millisecond)
			now.Add(-1)
			return number{}, nil
		}))
		id := begin(t, s, alice, "t").ID
		for {
			r := asks(t, s, alice, id)
			if len(r.Outstanding()) == 3 {
				break
			}
			if _, err := s.Changed(t.Context(), alice, id, r.Version); err != nil {
				t.Fatal(err)
			}
		}
		var others []string
		for range 4 { // a task that asks does not block others
			others = append(others, begin(t, s, alice, "other").ID)
		}
		for _, id := range others {
			ended(t, s, alice, id)
		}
		err := s.Answer(t.Context(), alice, id, map[string]json.RawMessage{"a": json.RawMessage(yes), "b": json.RawMessage(`{"action":"?"}`)})
		if err == nil {
			t.Error("a bad answer was taken")
		}
		if r := asks(t, s, alice, id); len(r.Outstanding()) != 3 {
			t.Errorf("%d are open", len(r.Outstanding()))
		}
		if err := s.Answer(t.Context(), alice, id, map[string]json.RawMessage{"a": json.RawMessage(yes), "b": json.RawMessage(no)}); err != nil {
			t.Fatal(err)
		}
		if r := asks(t, s, alice, id); len(r.Outstanding()) != 1 { // E-51
			t.Errorf("%d are open", len(r.Outstanding()))
		}
		if err := answer(t, s, alice, id, "c", yes); err != nil {
			t.Fatal(err)
		}
		if r := ended(t, s, alice, id); !strings.Contains(outcomeText(r.Outcome), `{"n":2}`) {
			t.Error(outcomeText(r.Outcome))
		}
		synctest.Wait() // the handlers that just ended let go of their slots
		if free := s.line.Free(); free != 1 {
			t.Errorf("%d slots free", free)
		}
	})
}

// TestUnusableSchema checks that a handler learns at once if no answer can fit its question.
func TestUnusableSchema(t *testing.T) {
	for _, schema := range []string{`{"properties":{}}`, `{"type":"object","properties":{"a":{"pattern":"("}}}`, `5`} {
		bubble.Run(t, schema, func(t *testing.T) {
			s := newServer(t, Options{}, numberTool("t", mcptask.Policy{TTL: time.Hour}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				_, err := mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "Number", Message: "How many?", Schema: schema}, "many", "")
				return in, err
			}))
			r, err := s.Await(t.Context(), alice, begin(t, s, alice, "t").ID)
			if err != nil || len(r.Inputs) > 0 || !r.Outcome.IsError || !strings.Contains(string(r.Outcome.Result), "many: ") {
				t.Errorf("%+v, %v", r.Outcome, err)
			}
		})
	}
}

func TestCannotAsk(t *testing.T) {
	asksAt := func(step string) func(context.Context, *mcptask.Task, number) (number, error) {
		return func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			_, err := mcptask.Ask[approval](ctx, task, approvalInput, step, "")
			return in, err
		}
	}
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, confirm), numberTool("nameless", mcptask.Policy{}, asksAt("")), numberTool("garbled", mcptask.Policy{}, asksAt("st\xffep")))
		for _, c := range []struct {
			caller     Caller
			tool, want string
		}{
			{Caller{Principal: "alice"}, "t", mcptask.ErrCannotAsk.Error() + ": its client has not declared that it answers elicitation/create"},
			{alice, "nameless", "needs a name"},
			{alice, "garbled", "UTF-8"}, // the name is part of a question's ID at the client
		} {
			if got := outcomeText(ended(t, s, c.caller, begin(t, s, c.caller, c.tool).ID).Outcome); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", c.tool, got)
			}
		}
	})
}

// TestQuestionGivenUp checks that a handler that stops waiting for an answer withdraws its
// question, and goes on only when it has a slot again.
func TestQuestionGivenUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		work := func() {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(10 * time.Second)
			now.Add(-1)
		}
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := mcptask.Ask[approval](short, task, approvalInput, "ship", "")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
			work()
			return in, nil
		}), numberTool("busy", mcptask.Policy{}, func(context.Context, *mcptask.Task, number) (number, error) { work(); return number{}, nil }))
		id := begin(t, s, alice, "t").ID
		asks(t, s, alice, id)
		began := time.Now()
		begin(t, s, alice, "busy")
		time.Sleep(time.Second)
		synctest.Wait()
		if r, err := s.Get(t.Context(), alice, id); err != nil || r.Phase != taskstore.PhaseRunning || r.Inputs[0].State != taskstore.InputSuperseded {
			t.Errorf("%+v, %v", r, err)
		}
		if r := ended(t, s, alice, id); r.Outcome.Kind != taskstore.OutcomeResult || time.Since(began) != 20*time.Second || most.Load() != 1 {
			t.Errorf("%s after %v, %d at once", outcomeText(r.Outcome), time.Since(began), most.Load())
		}
	})
}

// TestProgress checks C-67 and C-68.
func TestProgress(t *testing.T) {
	rules.Covers(t, "C-67", "C-68", "B-62", "B-63")
	bubble.Test(t, func(t *testing.T) {
		var told []string
		var late *mcptask.Task
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			late = task
			time.Sleep(time.Second)
			task.Progress(ctx, 1, 2, "tests")
			time.Sleep(time.Second)
			return in, nil
		}))
		reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask,
			Progress: func(id string, done, total float64, message string) {
				told = append(told, fmt.Sprint(id != "", done, total, message))
			}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		if r, err := s.Get(t.Context(), alice, reply.Task.ID); err != nil || r.StatusMessage != "tests (1/2)" {
			t.Errorf("%+v, %v", r, err)
		}
		r := ended(t, s, alice, reply.Task.ID)
		late.Progress(t.Context(), 2, 2, "late")
		if after := ended(t, s, alice, r.ID); after.Version != r.Version || fmt.Sprint(told) != "[true 1 2tests]" {
			t.Errorf("version %d after %d, told %v", after.Version, r.Version, told)
		}
	})
}

// TestProgressEnds cancels a task between a report and its progress notification. The notification
// is sent before the end, and none after it.
func TestProgressEnds(t *testing.T) {
	rules.Covers(t, "C-68", "B-63")
	for name, c := range map[string]struct {
		sending time.Duration // how long the client takes to read
		want    string
	}{
		"a client that reads":      {0, "[sent cancelled]"},
		"a client that never does": {time.Hour, "[cancelled]"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			reported := make(chan struct{}, 1)
			store := &tapStore{Store: taskstore.NewMemory(), tap: func(_ context.Context, method string, r *taskstore.Record, do func() error) error {
				err := do()
				if method == "Update" && err == nil && !r.Done() && r.StatusMessage != "" {
					reported <- struct{}{} // the reporter has yet to learn that its report is stored
					time.Sleep(100 * time.Millisecond)
				}
				return err
			}}
			s := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				time.Sleep(time.Second)
				for range 3 { // stubborn
					task.Progress(context.WithoutCancel(ctx), 1, 2, "tests")
				}
				return in, nil
			}))
			var trace []string
			reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask,
				Progress: func(string, float64, float64, string) {
					if time.Sleep(c.sending); c.sending == 0 {
						trace = append(trace, "sent")
					}
				}})
			if err != nil {
				t.Fatal(err)
			}
			<-reported
			began := time.Now()
			if _, done, err := s.Cancel(t.Context(), alice, reply.Task.ID); err != nil || done {
				t.Errorf("%v, %v", done, err)
			}
			trace = append(trace, "cancelled")
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the cancellation took %v", took)
			}
			time.Sleep(2 * time.Hour)
			if fmt.Sprint(trace) != c.want {
				t.Errorf("%v, want %s", trace, c.want)
			}
		})
	}
}
