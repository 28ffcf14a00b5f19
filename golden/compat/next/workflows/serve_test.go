package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/next/workflows"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// engine runs the workflows in this process.
type engine struct{}

func (engine) RunWorkflow(ctx context.Context, task *mcptask.Task, workflow string, out any, args ...any) error {
	switch out := out.(type) {
	case *workflows.Done:
		job, sure := args[0].(workflows.Job), args[1].(workflows.Approval)
		approval, err := mcptask.Ask[workflows.Approval](ctx, task, workflows.ApprovalInput(), "go", "")
		if err != nil || !approval.Approve || !sure.Approve {
			return errors.Join(err, errors.New("not approved"))
		}
		out.Text = workflow + " " + job.Name
		return nil
	case *struct{}:
		if workflow != "Clean" || len(args) > 0 {
			return fmt.Errorf("%s%v", workflow, args)
		}
		return nil
	}
	return fmt.Errorf("%T", out)
}

type impl struct{ workflows.JobsWorkflows }

func (impl) Describe(_ context.Context, in workflows.Job) (string, error) {
	return "about " + in.Name, nil
}

// TestWorkflows calls every tool with the typed client, in each revision.
func TestWorkflows(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			tools := workflows.JobsTools(impl{workflows.JobsWorkflows{Runner: engine{}}})
			conn, err := gosdk.Connect(t.Context(), serve.HTTP(t, tools), gosdk.ClientOptions{
				Revision: revision,
				Answer: workflows.AnswerApproval(func(context.Context, mcptask.Question) (workflows.Approval, error) {
					return workflows.Approval{Approve: true}, nil
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client := workflows.NewJobsClient(conn)
			done, err := client.Run(t.Context(), workflows.Job{Name: "a"})
			if err != nil || done.Text != "RunJob a" {
				t.Errorf("%+v, %v", done, err)
			}
			if err := client.Clean(t.Context()); err != nil {
				t.Error(err)
			}
			text, err := client.Describe(t.Context(), workflows.Job{Name: "a"})
			if err != nil || text != "about a" {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}
