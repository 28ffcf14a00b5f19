package proof

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mcptaskgen/mcptaskgen/golden/failures"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/taskflow"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// library publishes nothing. The name of the asset says who finds out.
type library struct {
	c       client.Client
	options temporal.WorkflowOptions
}

// Publish implements failures.Library.
func (l library) Publish(ctx context.Context, task *mcptask.Task, in failures.Asset) (failures.Report, error) {
	if in.Name == "handler" {
		return failures.Report{}, fmt.Errorf("handler: %w", failures.NewNotFound(in.Name, nil))
	}
	report, err := temporal.Run[failures.Report](ctx, task, l.c, l.options, publishFlow, in)
	if missing := (*failures.NotFound)(nil); errors.As(err, &missing) != (in.Name != "untyped") {
		return report, errors.New("the handler does not find the type")
	}
	return report, err
}

// publishFlow fails, by itself or by its activity.
func publishFlow(ctx workflow.Context, in failures.Asset) (report failures.Report, err error) {
	switch in.Name {
	case "untyped":
		return report, failures.NewNotFound(in.Name, nil)
	case "workflow":
		return report, taskflow.EncodeError(fmt.Errorf("workflow: %w", failures.NewNotFound(in.Name, nil)))
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &sdktemporal.RetryPolicy{NonRetryableErrorTypes: []string{"mcptask.Error"}},
	})
	if err = workflow.ExecuteActivity(ctx, "Publish", in).Get(ctx, nil); err != nil {
		return report, fmt.Errorf("activity: %w", err)
	}
	return report, nil
}

// TestTypedErrors checks that the generated client finds a typed error again, whether a handler, a workflow or an
// activity has returned it, and that a workflow has to encode it.
func TestTypedErrors(t *testing.T) {
	t.Parallel()
	c := dial(t)
	options := temporal.WorkflowOptions{TaskQueue: rand.Text(), Poll: 50 * time.Millisecond}
	w := worker.New(c, options.TaskQueue, worker.Options{})
	w.RegisterWorkflow(publishFlow)
	w.RegisterActivityWithOptions(func(_ context.Context, in failures.Asset) error {
		return taskflow.EncodeError(failures.NewNotFound(in.Name, nil))
	}, activity.RegisterOptions{Name: "Publish"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	tools := failures.LibraryTools(library{c, options}).With("publish", func(p *mcptask.Policy) { p.OnLost = mcptask.RestartWhenLost })
	conn := mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, mcptasktest.Options{Server: taskserver.Options{
		Store: taskstore.NewMemory(), Executor: temporal.NewExecutor(c, temporal.Options{TaskQueue: rand.Text()}),
	}}, tools)
	for name, text := range map[string]string{
		"handler": "publish: handler: there is no asset handler", "workflow": "publish: workflow: there is no asset workflow",
		"activity": "publish: activity: there is no asset activity", "untyped": "publish: there is no asset untyped",
	} {
		call, err := failures.NewLibraryClient(conn).StartPublish(t.Context(), failures.Asset{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		_, err = call.Wait(t.Context())
		var missing *failures.NotFound
		if isTyped := errors.As(err, &missing) && missing.Asset == name; isTyped == (name == "untyped") || err.Error() != text {
			t.Errorf("%s: %v, %+v, code %q", name, err, missing, mcptask.CodeOf(err))
		}
	}
}
