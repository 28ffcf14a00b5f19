package temporal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The declarations of a tool before and after a change.
const (
	anyArguments  = `{"type":"object"}`
	withTitle     = `{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`
	approveForm   = `{"type":"object","properties":{"approve":{"type":"boolean"},"seats":{"type":"integer"}},"required":["approve"]}`
	paidForm      = `{"type":"object","properties":{"approve":{"type":"boolean"},"paid":{"type":"boolean"}},"required":["approve","paid"]}`
	approveAnswer = `{"action":"accept","content":{"approve":true}}`
	paidAnswer    = `{"action":"accept","content":{"approve":true,"paid":true}}`
	asBefore      = `map[approve:true]`
	paid          = `map[approve:true paid:true]`
)

// declaration is a tool of these tests. Its handler asks with the form, unless that is "".
type declaration struct {
	name, was, arguments, step, form string
	onChange                         mcptask.ChangePolicy
	// works says that the handler works after the answer until its server closes.
	works bool
}

// before is the declaration that the tasks of these tests have begun under.
var before = declaration{name: "build", arguments: anyArguments, step: "ship", form: approveForm}

// change returns the declaration after a change.
func (d declaration) change(edit func(*declaration)) declaration {
	edit(&d)
	return d
}

// tool returns the tool. Without a form, its handler works until its server closes if it may begin again.
func (d declaration) tool() mcptask.Tool {
	spec := mcptask.ToolSpec{Name: d.name, InputSchema: d.arguments, Policy: buildPolicy}
	spec.Policy.OnChange = d.onChange
	if d.was != "" {
		spec.Was = []string{d.was}
	}
	return mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ map[string]any) (string, error) {
		var answer map[string]any
		if d.form != "" {
			var err error
			input := mcptask.InputSpec{Name: "Approval", Message: "Ship it?", Schema: d.form}
			if answer, err = mcptask.Ask[map[string]any](ctx, task, input, d.step, ""); err != nil {
				return "", err
			}
		}
		if d.works {
			task.Message(ctx, "working")
			<-ctx.Done()
			return "", ctx.Err()
		}
		return fmt.Sprint(answer), nil
	})
}

// serve makes a server with the tool, on a queue of Temporal.
func (d declaration) serve(t *testing.T, c client.Client, store taskstore.Store, options Options) *taskserver.Server {
	t.Helper()
	s, err := taskserver.New(taskserver.Options{Store: store, Executor: NewExecutor(c, options)},
		mcptask.Tools{Service: "Builds", Impl: struct{}{}, Tools: []mcptask.Tool{d.tool()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin starts a task of the tool.
func (d declaration) begin(t *testing.T, s *taskserver.Server, arguments string) string {
	t.Helper()
	reply, err := s.Backend().Call(t.Context(), builder, d.name, json.RawMessage(arguments), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	return reply.Task.ID
}

// isWorking says that the handler of a task works.
func isWorking(r taskstore.Record) bool { return r.StatusMessage == "working" }

// awaitParked waits until the workflow of a task has nothing to do but to wait for an answer. A worker that stops before
// could take its next step along, which Temporal gives up after ten seconds.
func awaitParked(t *testing.T, c client.Client, id string) {
	t.Helper()
	for {
		described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		// The start, a workflow task, the activity and a workflow task, of three events each, and the timer.
		if described.GetPendingWorkflowTask() == nil && described.GetWorkflowExecutionInfo().GetHistoryLength() >= 11 {
			return
		}
	}
}

// TestServerChanged stops the worker of a task, and runs the task at a worker with another declaration.
func TestServerChanged(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	works := before.change(func(d *declaration) { d.form, d.works = "", true })
	needsTitle := works.change(func(d *declaration) { d.arguments, d.works = withTitle, false })
	renamed := works.change(func(d *declaration) { d.name, d.works = "make", false })
	requirePaid := before.change(func(d *declaration) { d.form = paidForm })
	answered := before.change(func(d *declaration) { d.works = true })
	widened := before.change(func(d *declaration) { d.form = strings.Replace(approveForm, "integer", "number", 1) })
	type reply struct{ key, response string }
	for name, x := range map[string]struct {
		before, after declaration
		parked        bool    // the run of before has ended before the worker stops
		early         string  // the answer to the worker of before
		replies       []reply // to that of after
		want          string
		err           error
	}{
		"nothing":                             {before: works, after: works.change(func(d *declaration) { d.works = false }), want: "map[]"},
		"a required argument":                 {before: works, after: needsTitle, want: `started under an earlier declaration: missing property "title"`, err: mcptask.ErrChanged},
		"a required argument, onchange=run":   {before: works, after: needsTitle.change(func(d *declaration) { d.onChange = mcptask.RunOnChange }), want: "map[]"},
		"another name with was":               {before: works, after: renamed.change(func(d *declaration) { d.was = "build" }), want: "map[]"},
		"a form, open":                        {before: before, after: requirePaid, replies: []reply{{"ship~form2", paidAnswer}}, want: paid},
		"a form, open and answered as before": {before: before, after: widened, replies: []reply{{"ship~form2", ""}, {"ship", approveAnswer}}, want: asBefore},
		"a form, parked":                      {before: before, after: requirePaid, parked: true, replies: []reply{{"ship", approveAnswer}, {"ship~form2", paidAnswer}}, want: paid},
		"a form, parked, and the answer fits": {before: before, after: widened, parked: true, replies: []reply{{"ship", approveAnswer}}, want: asBefore},
		"a form, answered":                    {before: answered, after: requirePaid, early: approveAnswer, replies: []reply{{"ship~form2", paidAnswer}}, want: paid},
		"a form, answered, and it fits":       {before: answered, after: widened, early: approveAnswer, want: asBefore},
		"a step":                              {before: before, after: before.change(func(d *declaration) { d.step = "go" }), replies: []reply{{"go", approveAnswer}}, want: asBefore},
		"a step, answered":                    {before: answered, after: before.change(func(d *declaration) { d.step = "go" }), early: approveAnswer, replies: []reply{{"go", approveAnswer}}, want: asBefore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, options := taskstore.NewMemory(), Options{TaskQueue: rand.Text(), Patience: time.Hour}
			if x.parked {
				options.Patience = -1
			}
			first := x.before.serve(t, c, store, options)
			id := x.before.begin(t, first, `{}`)
			if x.before.form != "" {
				awaitAsked(t, first, id, "ship")
			}
			if x.parked {
				awaitParked(t, c, id)
			}
			if x.early != "" {
				replyTo(t, first, id, "ship", x.early)
			}
			if x.before.works {
				awaitBuild(t, first, id, "its work", isWorking)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second := x.after.serve(t, c, store, options)
			for i, reply := range x.replies {
				r := awaitBuild(t, second, id, "the question "+reply.key, func(r taskstore.Record) bool {
					open := openInputs(r)
					return len(open) > 0 && (open[0] == reply.key || i > 0 && reply.key == "ship")
				})
				asked := string(r.Outstanding()[0].Params)
				if anew := strings.Contains(asked, "The form has changed since it was answered. Ship it?") && strings.Contains(asked, `"default":true`); anew != (reply.response == paidAnswer && (x.parked || x.early != "")) {
					t.Errorf("%s asks %s", reply.key, asked)
				}
				if reply.response != "" {
					replyTo(t, second, id, reply.key, reply.response)
				}
			}
			r := awaitBuild(t, second, id, "its end", isBuilt)
			if got := buildOutcome(r); !strings.Contains(got, x.want) || x.err != nil && !errors.Is(r.Outcome.Error, x.err) || r.Tool != "build" {
				t.Errorf("%s ends with %s, want %s", r.Tool, got, x.want)
			}
		})
	}
}

// TestServerRollout has old and new servers share a queue. A worker that cannot run a task leaves it in Temporal, until one
// comes that can.
func TestServerRollout(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	old := before.change(func(d *declaration) { d.form, d.arguments = "", `{"type":"object","additionalProperties":false}` })
	titled := old.change(func(d *declaration) { d.arguments = withTitle })
	renamed := old.change(func(d *declaration) { d.name = "make" })
	for name, x := range map[string]struct {
		creates, leaves declaration
		arguments       string
	}{
		"a new task at an old worker":                 {titled, old, `{"title":"a"}`},
		"an old task at a new worker":                 {old, titled, `{}`},
		"a new task at a worker without its new name": {renamed, old, `{}`},
		"an old task at a worker without its name":    {old, renamed, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, options := taskstore.NewMemory(), Options{TaskQueue: rand.Text()}
			atFront := options
			atFront.SubmitOnly = true
			front := x.creates.serve(t, c, store, atFront)
			wrong := x.leaves.serve(t, c, store, options)
			id := x.creates.begin(t, front, x.arguments)
			for failure := ""; !strings.Contains(failure, "does not have the tool"); {
				described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
				if err == nil && len(described.GetPendingActivities()) > 0 {
					failure = described.GetPendingActivities()[0].GetLastFailure().GetMessage()
				}
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
			}
			if r, err := front.Backend().Get(t.Context(), builder, id); err != nil || r.Done() || r.Attempt > 0 {
				t.Errorf("attempt %d, %s, %v", r.Attempt, buildOutcome(r), err)
			}
			if err := wrong.Close(); err != nil {
				t.Fatal(err)
			}
			x.creates.serve(t, c, store, options)
			if r := awaitBuild(t, front, id, "its end", isBuilt); !strings.Contains(buildOutcome(r), "map[]") {
				t.Error(buildOutcome(r))
			}
		})
	}
}
