package temporal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/taskflow"
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

// tool returns the tool.
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

// awaitParked waits until the workflow of a task only waits for an answer. A worker that stopped earlier could take the next
// step with it, which Temporal gives up only after ten seconds.
func awaitParked(t *testing.T, c client.Client, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ; ; time.Sleep(20 * time.Millisecond) {
		described, err := c.DescribeWorkflowExecution(ctx, id, "")
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
		"a required argument":                 {before: works, after: needsTitle, want: `started under another declaration: missing property "title"`, err: mcptask.ErrChanged},
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

// TestStaleOfQueue checks that a server counts the tasks of its queue that do not fit its tools. No record says which worker
// runs a task, so those that others run count too.
func TestStaleOfQueue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, store, options := newFakeTemporal(), taskstore.NewMemory(), Options{SubmitOnly: true}
		first := before.serve(t, c, store, options)
		changeStored(t, store, before.begin(t, first, `{}`), func(r *taskstore.Record) {
			r.Claim, r.Attempt = taskstore.Claim{Worker: "temporal/" + DefaultTaskQueue, State: taskstore.ClaimRunning}, 1
			r.Phase = taskstore.PhaseRunning
		})
		for want, edit := range map[string]func(*declaration){
			"{map[build:1] map[]}": func(d *declaration) { d.name = "make" },
			"{map[] map[]}":        func(d *declaration) { d.name, d.was = "make", "build" },
			"{map[] map[build:1]}": func(d *declaration) { d.arguments = withTitle },
		} {
			changed := before.change(edit).serve(t, c, store, options)
			time.Sleep(time.Minute)
			if found := changed.StaleTasks(); fmt.Sprint(found) != want {
				t.Errorf("%+v, want %s", found, want)
			}
		}
	})
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
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for failure := ""; !strings.Contains(failure, "does not have the tool"); time.Sleep(20 * time.Millisecond) {
				described, err := c.DescribeWorkflowExecution(ctx, id, "")
				if err == nil && len(described.GetPendingActivities()) > 0 {
					failure = described.GetPendingActivities()[0].GetLastFailure().GetMessage()
				}
				if ctx.Err() != nil {
					t.Fatalf("the worker has not left the task: %q, %v", failure, err)
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

// askFlow returns a workflow that asks, and works after the answer.
func askFlow[T any](step, form string) func(workflow.Context) (string, error) {
	return func(ctx workflow.Context) (string, error) {
		input := mcptask.InputSpec{Name: "Approval", Message: "Ship it?", Schema: form}
		answer, err := taskflow.Ask[T](ctx, taskflow.New(ctx), input, step, "")
		if err != nil {
			return "", err
		}
		_, err = callPush(ctx, "it")
		return fmt.Sprint(answer), err
	}
}

// runAsk runs a worker with a version of the workflow, until stop is called.
func runAsk(t *testing.T, c client.Client, queue string, flow any) (stop func()) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: "Ask"})
	w.RegisterActivityWithOptions(pushImage, activity.RegisterOptions{Name: "Push"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(w.Stop)
}

// TestServerChangedFlow replaces the worker of a workflow whose question is open. The server goes on.
func TestServerChangedFlow(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	for name, x := range map[string]struct {
		step, form, early string // early is the answer while there is no worker
		key, response     string
		want              string
	}{
		"a form":                      {"ship", paidForm, "", "Ask/ship~form2", paidAnswer, paid},
		"a form, answered meanwhile":  {"ship", paidForm, approveAnswer, "Ask/ship~form2", paidAnswer, paid},
		"a form that the answer fits": {"ship", strings.Replace(approveForm, "integer", "number", 1), approveAnswer, "", "", asBefore},
		"the description of a form":   {"ship", strings.Replace(approveForm, `"type":"integer"`, `"type":"integer","description":"How many."`, 1), "", "Ask/ship", approveAnswer, asBefore},
		"a step":                      {"go", approveForm, "", "Ask/go", approveAnswer, asBefore},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := WorkflowOptions{TaskQueue: rand.Text(), Poll: 50 * time.Millisecond}
			stop := runAsk(t, c, options.TaskQueue, askFlow[map[string]any]("ship", approveForm))
			s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
				answer, err := Run[string](ctx, task, c, options, "Ask")
				return built{Image: answer}, err
			})
			task := beginBuild(t, s)
			awaitAsked(t, s, task.ID, "Ask/ship")
			stop()
			if x.early != "" {
				replyTo(t, s, task.ID, "Ask/ship", x.early)
			}
			changed := askFlow[map[string]any](x.step, x.form)
			defer runAsk(t, c, options.TaskQueue, changed)()
			if x.key != "" {
				r := awaitAsked(t, s, task.ID, x.key)
				asked := string(r.Outstanding()[0].Params)
				if anew := strings.Contains(asked, "The form has changed since it was answered. Ship it?") && strings.Contains(asked, `"default":true`); anew != (x.early != "") {
					t.Errorf("%s asks %s", x.key, asked)
				}
				replyTo(t, s, task.ID, x.key, x.response)
			}
			if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), x.want) {
				t.Errorf("%s, want %s", buildOutcome(r), x.want)
			}
			replayer := worker.NewWorkflowReplayer()
			replayer.RegisterWorkflowWithOptions(changed, workflow.RegisterOptions{Name: "Ask"})
			if err := replayer.ReplayWorkflowHistory(quiet{}, readHistory(t, c, task.ID+"/Ask", "")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestServerChangedHistory replays a workflow that has had its answer with changed code. The answer is a part of the
// history, and nobody is asked anew.
func TestServerChangedHistory(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	queue := rand.Text()
	defer runAsk(t, c, queue, askFlow[map[string]any]("ship", approveForm))()
	s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
		answer, err := Run[string](ctx, task, c, WorkflowOptions{TaskQueue: queue, Poll: 50 * time.Millisecond}, "Ask")
		return built{Image: answer}, err
	})
	task := beginBuild(t, s)
	awaitAsked(t, s, task.ID, "Ask/ship")
	replyTo(t, s, task.ID, "Ask/ship", approveAnswer)
	awaitBuild(t, s, task.ID, "its end", isBuilt)
	guarded := func(ctx workflow.Context) (string, error) {
		step := "go"
		if workflow.GetVersion(ctx, "step", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
			step = "ship"
		}
		return askFlow[map[string]any](step, approveForm)(ctx)
	}
	for name, x := range map[string]struct {
		flow  any
		fails bool
	}{
		"a required member":     {askFlow[map[string]any]("ship", paidForm), false},
		"another type":          {askFlow[struct{ Approve string }]("ship", approveForm), true},
		"another step":          {askFlow[map[string]any]("go", approveForm), true},
		"another step, guarded": {guarded, false},
	} {
		replayer := worker.NewWorkflowReplayer()
		replayer.RegisterWorkflowWithOptions(x.flow, workflow.RegisterOptions{Name: "Ask"})
		err := replayer.ReplayWorkflowHistory(quiet{}, readHistory(t, c, task.ID+"/Ask", ""))
		if isNondeterministic := err != nil && strings.Contains(err.Error(), "TMPRL1100"); isNondeterministic != x.fails || err != nil && !x.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}
