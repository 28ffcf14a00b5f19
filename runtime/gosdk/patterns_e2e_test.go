package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/variants/patterns"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// patternsJobs implements the service that is generated for the guide.
type patternsJobs struct{}

func (patternsJobs) Run(ctx context.Context, task *mcptask.Task, in patterns.Job) (patterns.Done, error) {
	switch in.Name {
	case "refused":
		return patterns.Done{}, mcptask.Errorf(4050, "locked")
	case "broken":
		return patterns.Done{}, errors.New("it is broken")
	case "endless":
		<-ctx.Done()
		return patterns.Done{}, ctx.Err()
	}
	return patterns.Done{Text: fmt.Sprint(in.Name, " ran as a task: ", task.ID() != "")}, nil
}

func (patternsJobs) Ship(ctx context.Context, task *mcptask.Task, in patterns.Job) (patterns.Done, error) {
	approval, err := patterns.AskApproval(ctx, task, "ship", "Ship "+in.Name+"?")
	if err != nil || !approval.Approve {
		return patterns.Done{}, errors.Join(errors.New("not shipped"), err)
	}
	return patterns.Done{Text: in.Name + " shipped"}, nil
}

func (patternsJobs) Look(_ context.Context, in patterns.Job) (patterns.Done, error) {
	return patterns.Done{Text: in.Name + " seen"}, nil
}

// patternsOver serves those jobs to clients, over HTTP and over pipes.
func patternsOver(t *testing.T, test func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn)) {
	t.Helper()
	principal := func(context.Context) (string, error) { return "local", nil }
	eachServedWay(t, wirecheck.Patterns, taskserver.Options{Revisions: wiretest.OnlyPatterns, Principal: principal}, patterns.JobsTools(patternsJobs{}), test)
}

// The generated client with the generated server, from end to end.
func TestPatternsGenerated(t *testing.T) {
	rules.Covers(t, "D-02", "D-03", "D-04", "D-12", "D-13", "D-14", "D-18")
	t.Parallel()
	patternsOver(t, func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		jobs := patterns.NewJobsClient(connect(gosdk.ClientOptions{}))
		if done, err := jobs.Run(ctx, patterns.Job{Name: "a"}); err != nil || done.Text != "a ran as a task: true" {
			t.Errorf("%+v, %v", done, err)
		}
		if done, err := jobs.Look(ctx, patterns.Job{Name: "a"}); err != nil || done.Text != "a seen" {
			t.Errorf("%+v, %v", done, err)
		}
		var tool *mcptask.ToolError
		if _, err := jobs.Run(ctx, patterns.Job{Name: "broken"}); !errors.As(err, &tool) || tool.Result.Text() != "it is broken" {
			t.Error(err)
		}
		var wire *mcptask.Error
		if _, err := jobs.Run(ctx, patterns.Job{Name: "refused"}); !errors.As(err, &wire) || wire.Code != 4050 || wire.Message != "locked" {
			t.Error(err)
		}
		key := mcptask.IdempotencyKey("a key of sixteen bytes")
		first, err := jobs.StartRun(ctx, patterns.Job{Name: "endless"}, key)
		if err != nil {
			t.Fatal(err)
		}
		token, ok := first.Token()
		if !ok {
			t.Fatal("no task")
		}
		second, err := jobs.StartRun(ctx, patterns.Job{Name: "endless"}, key)
		if err != nil {
			t.Fatal(err)
		}
		if other, _ := second.Token(); other != token {
			t.Error("the same key has made another task")
		}
		if _, err := jobs.StartRun(ctx, patterns.Job{Name: "a"}, key); !errors.As(err, &wire) || wire.Code != mcptask.CodeInvalidParams {
			t.Error(err)
		}
		resumed, err := jobs.ResumeRun(token)
		if err != nil {
			t.Fatal(err)
		}
		cancel(t, resumed)
		wantEnd(t, first, mcptask.ErrCancelled)
	})
}

// A task's question is a task at the client, which the server polls. If the person declines, the task that asks is
// cancelled.
func TestPatternsBothWays(t *testing.T) {
	rules.Covers(t, "D-16", "D-25")
	t.Parallel()
	patternsOver(t, func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		logs := &wiretest.SafeBuffer{}
		options := gosdk.ClientOptions{
			Tasks: taskserver.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))},
			Answer: patterns.AnswerApproval(func(_ context.Context, q mcptask.Question) (patterns.Approval, error) {
				if strings.Contains(q.Message, "bad") {
					return patterns.Approval{}, mcptask.ErrDeclined
				}
				return patterns.Approval{Approve: true}, nil
			}),
		}
		jobs := patterns.NewJobsClient(connect(options))
		if done, err := jobs.Ship(ctx, patterns.Job{Name: "good"}); err != nil || done.Text != "good shipped" {
			t.Errorf("%+v, %v", done, err)
		}
		if _, err := jobs.Ship(ctx, patterns.Job{Name: "bad"}); !errors.Is(err, mcptask.ErrCancelled) {
			t.Error(err)
		}
		text := logs.String()
		if n := strings.Count(text, `msg="task created"`); n != 2 || !strings.Contains(text, "tool=elicitation.create") || !strings.Contains(text, "revision="+wirecheck.Patterns) {
			t.Errorf("%d tasks at the client:\n%s", n, text)
		}
	})
}

// Users' tests can speak the guide without waiting.
func TestPatternsInProcess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		conn := mcptasktest.Connect(wirecheck.TB(t), mcptask.RevisionTaskPatterns, mcptasktest.Options{}, patterns.JobsTools(patternsJobs{}))
		if done, err := patterns.NewJobsClient(conn).Run(t.Context(), patterns.Job{Name: "a"}); err != nil || done.Text != "a ran as a task: true" {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// A server that speaks the guide refuses services that are not generated for it.
func TestPatternsUndeclared(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tools := patterns.JobsTools(patternsJobs{})
		tools.Capabilities = mcptask.Capabilities{mcptask.Revision20251125: mcptask.Declared()[mcptask.Revision20251125]}
		if _, err := taskserver.New(taskserver.Options{Revisions: wiretest.OnlyPatterns}, tools); err == nil || !strings.Contains(err.Error(), "--revision") {
			t.Error(err)
		}
	})
}
