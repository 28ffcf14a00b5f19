package temporal

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// TestQuestions checks that the task asks the workflow's questions, several at once, and that answers and refusals
// reach the workflow once.
func TestQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Questions: askFor("a", "b", "c", "d")})
		r := awaitAsked(t, s, task.ID, "Build/a", "Build/b", "Build/c", "Build/d")
		if q, err := mcptask.NewQuestion(r.ID, "a", r.Inputs[0].Method, r.Inputs[0].Params); err != nil || q.Message != "Ship it?" || q.Input != "Approval" {
			t.Errorf("%+v, %v", q, err)
		}
		replyTo(t, s, task.ID, "Build/b", `{"action":"accept","content":{"approve":true}}`)
		replyTo(t, s, task.ID, "Build/c", `{"action":"decline"}`)
		for range 2 {
			switch got := <-f.signals; got.Key {
			case "b":
				if string(got.Content) != `{"approve":true}` || got.Refusal != "" {
					t.Errorf("%+v", got)
				}
			case "c":
				if got.Refusal != flowwire.RefusedDeclined || got.Text != "the question was declined" || got.Content != nil {
					t.Errorf("%+v", got)
				}
			default:
				t.Errorf("%+v", got)
			}
		}
		f.show(flowwire.State{Questions: askFor("d", "e")}) // a is withdrawn
		awaitAsked(t, s, task.ID, "Build/d", "Build/e")
		f.end(built{}, nil)
		r = awaitBuild(t, s, task.ID, "its end", isBuilt)
		if keys := openInputs(r); len(keys) > 0 || len(f.signals) > 0 {
			t.Errorf("%q open, %d further signals", keys, len(f.signals))
		}
	})
}

// TestCannotAsk checks that a workflow learns that its question cannot be asked.
func TestCannotAsk(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		mute := builder
		mute.CanAsk = nil
		reply, err := s.Backend().Call(t.Context(), mute, "build", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		f := <-c.begun
		f.show(flowwire.State{Questions: askFor("a")})
		if got := <-f.signals; got.Refusal != flowwire.RefusedCannotAsk || !strings.Contains(got.Text, "has not declared") {
			t.Errorf("%+v", got)
		}
		f.end(built{}, nil)
		awaitBuild(t, s, reply.Task.ID, "its end", isBuilt)
	})
}

// TestRefusalOfRetry checks that a workflow that is retried gets the refusal again, and that its question does not
// stand open under another key, which no later run of the handler would know.
func TestRefusalOfRetry(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, store := newFakeTemporal(), taskstore.NewMemory()
		s := newBuildServer(t, store, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Run: "run-1", Questions: askFor("a")})
		awaitAsked(t, s, task.ID, "Build/a")
		changeStored(t, store, task.ID, func(r *taskstore.Record) {
			r.Inputs = slices.Clone(r.Inputs)
			r.Inputs[0].State, r.Inputs[0].Error = taskstore.InputAnswered, mcptask.Errorf(mcptask.CodeInternalError, "no window")
			r.Phase = taskstore.PhaseRunning
		})
		for _, run := range []string{"run-1", "run-2"} {
			f.show(flowwire.State{Run: run})
			time.Sleep(time.Minute)
			f.show(flowwire.State{Run: run, Questions: askFor("a")})
			if got := <-f.signals; got.Refusal != flowwire.RefusedCannotAsk {
				t.Errorf("%s: %+v", run, got)
			}
		}
		if r, err := s.Backend().Get(t.Context(), builder, task.ID); err != nil || len(openInputs(r)) > 0 {
			t.Errorf("%v are open, %v", openInputs(r), err)
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestQuestionsOfTwoWorkflows checks that a handler that runs again does not give the answer to a question of one
// workflow to another workflow.
func TestQuestionsOfTwoWorkflows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, store := newFakeTemporal(), taskstore.NewMemory()
		handler := func(ctx context.Context, task *mcptask.Task) (built, error) {
			for _, name := range []string{"Staging", "Production"} {
				if _, err := Run[built](ctx, task, c, WorkflowOptions{TaskQueue: "builds"}, name); err != nil {
					return built{}, err
				}
			}
			return built{}, nil
		}
		first := newBuildServer(t, store, buildPolicy, handler)
		task := beginBuild(t, first)
		staging := <-c.begun
		staging.show(flowwire.State{Questions: askFor("ship")})
		key := openInputs(awaitBuild(t, first, task.ID, "a question", func(r taskstore.Record) bool { return len(openInputs(r)) == 1 }))[0]
		replyTo(t, first, task.ID, key, `{"action":"accept","content":{"approve":true}}`)
		<-staging.signals
		staging.show(flowwire.State{})
		staging.end(built{}, nil)
		production := <-c.begun
		production.show(flowwire.State{Questions: askFor("ship")})
		awaitBuild(t, first, task.ID, "the second question", func(r taskstore.Record) bool { return len(openInputs(r)) == 1 })
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := newBuildServer(t, store, buildPolicy, handler)
		awaitBuild(t, second, task.ID, "the next run", func(r taskstore.Record) bool { return r.Attempt == 2 })
		time.Sleep(time.Minute)
		if n := len(production.signals); n > 0 {
			t.Errorf("nobody was asked, and the workflow got %+v", <-production.signals)
		}
		production.end(built{}, nil)
		awaitBuild(t, second, task.ID, "its end", isBuilt)
	})
}
