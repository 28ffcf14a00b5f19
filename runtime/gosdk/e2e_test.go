package gosdk_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

func TestCalls(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		ci := wiretest.Connect(t, url, revision, mcptask.Answerer{})
		ctx := t.Context() // without a deadline: the parallel subtests wait for their turn

		t.Run("what programs do", func(t *testing.T) {
			t.Parallel()
			checkResumed(t, ci, checkPipeline(t, ci, false))
		})
		t.Run("a panic", func(t *testing.T) {
			t.Parallel()
			_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "panic"})
			if !isError(mcptask.CodeInternalError)(err) {
				t.Fatal(err)
			}
		})
		t.Run("a cancel of a task that has ended", func(t *testing.T) {
			t.Parallel()
			call := startRun(t, ci, "endless")
			for range 2 {
				cancel(t, call)
				wantEnd(t, call, mcptask.ErrCancelled)
			}
		})
		t.Run("a quick optional tool", func(t *testing.T) {
			t.Parallel()
			for end := time.Now().Add(wiretest.Patience); ; { // a busy machine may miss the grace
				isTask := deployStaging(t, ci)
				if isTask == (revision == mcptask.Revision20251125) {
					break
				}
				if time.Now().After(end) || !isTask {
					t.Fatalf("task: %v; grace answers at once if the server decides", isTask)
				}
			}
		})
		t.Run("invalid arguments", func(t *testing.T) {
			t.Parallel()
			_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: ""})
			t.Log(err)
			_, err = ci.DeployService(ctx, pipeline.DeployInput{Service: "", Environment: "mars"})
			if err == nil {
				t.Fatal("accepted")
			}
			t.Log(err)
		})
		t.Run("a question without anybody to ask", func(t *testing.T) {
			t.Parallel()
			_, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"})
			var toolErr *mcptask.ToolError
			if !errors.As(err, &toolErr) {
				t.Fatal(err)
			}
		})
		t.Run("a task that is not there", func(t *testing.T) {
			t.Parallel()
			call := startRun(t, ci, "endless")
			_ = call.Cancel(ctx)
			other, _ := wiretest.Serve(t, mcptask.Options{})
			token, _ := call.Token()
			strange, err := wiretest.Connect(t, other, revision, mcptask.Answerer{}).ResumeRunPipeline(token)
			if err != nil {
				t.Fatal(err)
			}
			wantEnd(t, strange, mcptask.ErrNotFound)
		})
	})
}

func TestQuestions(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		ctx := within(t, wiretest.Patience)
		var asked atomic.Int32
		ci := wiretest.Connect(t, url, revision, pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			if q.Message == "Ship web to production?" {
				return pipeline.Approval{}, mcptask.ErrDeclined
			}
			return pipeline.Approval{Approve: true}, nil
		}))
		report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"})
		if err != nil || report.Version != "1.2.3" {
			t.Fatalf("%+v, %v", report, err)
		}
		_, err = ci.DeployService(ctx, pipeline.DeployInput{Service: "web", Environment: "production"})
		var toolErr *mcptask.ToolError
		if !errors.As(err, &toolErr) {
			t.Fatal(err)
		}
		if revision == mcptask.Revision20251125 { // on the call's own stream
			report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}, mcptask.Plain())
			if err != nil || report.Version != "1.2.3" {
				t.Fatalf("plain: %+v, %v", report, err)
			}
			asked.Add(-1)
		}
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
}
