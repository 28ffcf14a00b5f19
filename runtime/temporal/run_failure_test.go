package temporal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// TestDescribeFailure checks the texts of failed workflows for the model: the words of their programs, and nothing of
// Temporal's.
func TestDescribeFailure(t *testing.T) {
	deploy := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &sdktemporal.RetryPolicy{MaximumAttempts: 1},
		})
		return workflow.ExecuteActivity(ctx, "Deploy").Get(ctx, nil)
	}
	child := func(ctx workflow.Context) error {
		return workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{}), "Child").Get(ctx, nil)
	}
	for name, c := range map[string]struct {
		run      func(workflow.Context) error
		activity error
		want     string
	}{
		"error": {func(workflow.Context) error { return errors.New("no disk left") }, nil, "no disk left"},
		"typed": {func(workflow.Context) error {
			return sdktemporal.NewNonRetryableApplicationError("no disk left", "Disk", errors.New("ENOSPC"), 7)
		}, nil, "no disk left"},
		"without a message": {func(workflow.Context) error {
			return sdktemporal.NewApplicationErrorWithCause("", "Disk", errors.New("ENOSPC"))
		}, nil, "ENOSPC"},
		"nothing":    {func(workflow.Context) error { return sdktemporal.NewApplicationError("", "") }, nil, "the workflow Build failed"},
		"cancelled":  {func(workflow.Context) error { return workflow.ErrCanceled }, nil, "the workflow Build was cancelled"},
		"terminated": {func(workflow.Context) error { return &sdktemporal.TerminatedError{} }, nil, "the workflow Build was terminated"},
		"timeout": {func(workflow.Context) error {
			return sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
		}, nil, "the workflow Build did not finish in time"},
		"activity":         {deploy, errors.New("no disk left"), "no disk left"},
		"activity panics":  {deploy, nil, "the activity Deploy panicked"},
		"activity expires": {deploy, sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, errors.New("slow")), "the activity Deploy stopped reporting: slow"},
		"activity waits":   {deploy, sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), "the activity Deploy was not started in time"},
		"wrapped": {func(ctx workflow.Context) error { return fmt.Errorf("deploy shop: %w", deploy(ctx)) },
			sdktemporal.NewApplicationErrorWithCause("no disk left", "Disk", errors.New("ENOSPC")), "deploy shop: no disk left"},
		"joined": {func(ctx workflow.Context) error { return errors.Join(deploy(ctx), errors.New("and no cleanup")) },
			errors.New("no disk left"), "no disk left\nand no cleanup"},
		"child": {child, errors.New("no disk left"), "release: no disk left"},
		"wrapped child": {func(ctx workflow.Context) error { return fmt.Errorf("all: %w", child(ctx)) },
			errors.New("no disk left"), "all: release: no disk left"},
	} {
		t.Run(name, func(t *testing.T) {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
			env.RegisterActivityWithOptions(func(context.Context) error {
				if c.activity == nil {
					panic("index out of range")
				}
				return c.activity
			}, activity.RegisterOptions{Name: "Deploy"})
			env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
				return fmt.Errorf("release: %w", deploy(ctx))
			}, workflow.RegisterOptions{Name: "Child"})
			env.ExecuteWorkflow(c.run)
			err := env.GetWorkflowError()
			if !isEnded(err) {
				t.Fatalf("%v", err)
			}
			if got := describeFailure(err, "the workflow Build"); got != c.want {
				t.Errorf("got %q, want %q, of %v", got, c.want, err)
			}
		})
	}
}

// TestIsOutage checks which errors are tried again.
func TestIsOutage(t *testing.T) {
	exhausted := func(text string) error {
		return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, text)
	}
	for _, err := range []error{
		serviceerror.NewUnavailable("gone"), fmt.Errorf("failed reaching server: %w", serviceerror.NewUnavailable("gone")),
		serviceerror.NewDeadlineExceeded("late"), serviceerror.NewInternal("oops"), context.DeadlineExceeded, exhausted("namespace rate limit exceeded"),
	} {
		if !isOutage(err) {
			t.Errorf("%v is final", err)
		}
	}
	for _, err := range []error{
		serviceerror.NewNotFound("gone"), serviceerror.NewInvalidArgument("odd"), serviceerror.NewNamespaceNotFound("shop"),
		exhausted("grpc: received message larger than max"), errors.New("no converter"), serviceerror.NewPermissionDenied("no", ""),
	} {
		if isOutage(err) {
			t.Errorf("%v passes", err)
		}
	}
}

// TestIsUnknownQuery checks how the SDKs of Temporal say that a workflow does not have a query.
func TestIsUnknownQuery(t *testing.T) {
	for words, want := range map[string]bool{
		"unknown queryType mcptask.state. KnownQueryTypes=[__stack_trace]":                           true,
		"Workflow did not register a handler for mcptask.state. Registered queries: [__stack_trace]": true,
		"Query handler for 'mcptask.state' expected but not found, known queries: []":                true,
		"[TMPRL1100] nondeterministic workflow":                                                      false,
	} {
		if got := isUnknownQuery(serviceerror.NewQueryFailed(words)); got != want {
			t.Errorf("%s: %v", words, got)
		}
	}
	if isUnknownQuery(errors.New(strings.ToUpper("unknown queryType"))) {
		t.Error("any error is taken")
	}
}

// TestDescribeDeepFailure checks that the time to describe a failure grows with the number of its causes, and no
// faster: Temporal takes thousands of them.
func TestDescribeDeepFailure(t *testing.T) {
	for _, message := range []string{"", " ", "m"} {
		err := errors.New("the end")
		for range 20_000 {
			err = sdktemporal.NewApplicationErrorWithCause(message, "", err)
		}
		want := strings.TrimSpace(message)
		if want == "" {
			want = "the end"
		}
		if got := describeFailure(err, "the workflow Build"); got != want {
			t.Errorf("%.100q", got)
		}
	}
	timeouts := errors.New("the end")
	for range 20_000 {
		timeouts = sdktemporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_HEARTBEAT, timeouts)
	}
	if got := describeFailure(timeouts, "the workflow Build"); got != "the workflow Build stopped reporting" {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
	long := sdktemporal.NewApplicationError(strings.Repeat("é", maxMessage), "")
	if got := describeFailure(long, "it"); len(got) > maxMessage+len("…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %.40q", len(got), got)
	}
}
