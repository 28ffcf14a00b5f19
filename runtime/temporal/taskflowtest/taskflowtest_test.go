package taskflowtest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/taskflow"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/taskflowtest"
)

type approval struct {
	Approve bool `json:"approve"`
}

var approvalInput = mcptask.InputSpec{Name: "Approval", Message: "Ship it?", Schema: `{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`}

// deploy is a workflow that reports and asks.
func deploy(ctx workflow.Context, service string) (string, error) {
	task := taskflow.New(ctx)
	task.Progress(1, 2, "built")
	answer, err := taskflow.Ask[approval](ctx, task, approvalInput, "ship", "Ship "+service+"?")
	switch {
	case errors.Is(err, mcptask.ErrDeclined):
		return "declined", nil
	case err != nil:
		return "", err
	case !answer.Approve:
		return "not shipped", nil
	}
	return "shipped for " + task.ID(), nil
}

func TestDeploy(t *testing.T) {
	for name, c := range map[string]struct {
		reply func(t *testing.T, env *testsuite.TestWorkflowEnvironment)
		want  string
	}{
		"approved": {func(t *testing.T, env *testsuite.TestWorkflowEnvironment) {
			taskflowtest.Answer(t, env, "ship", approval{Approve: true})
		}, "shipped for t1"},
		"declined": {func(t *testing.T, env *testsuite.TestWorkflowEnvironment) {
			taskflowtest.Refuse(t, env, "ship", mcptask.ErrDeclined)
		}, "declined"},
	} {
		t.Run(name, func(t *testing.T) {
			env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
			env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
			taskflowtest.StartForTask(t, env, "t1")
			env.RegisterDelayedCallback(func() {
				p := taskflowtest.ReadProgress(t, env)
				if p.Done != 1 || p.Total != 2 || p.Message != "built" || p.Questions["ship"] != "Ship api?" {
					t.Errorf("%+v", p)
				}
				c.reply(t, env)
			}, time.Minute)
			env.ExecuteWorkflow(deploy, "api")
			var got string
			if err := env.GetWorkflowResult(&got); err != nil || got != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestUnstarted checks that a workflow that was not started for a task cannot ask.
func TestUnstarted(t *testing.T) {
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
	env.ExecuteWorkflow(deploy, "api")
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), mcptask.ErrCannotAsk.Error()) {
		t.Errorf("it has asked: %v", err)
	}
}
