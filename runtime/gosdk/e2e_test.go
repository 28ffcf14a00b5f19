package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// eachOfAll is eachRevision with the candidate.
func eachOfAll(t *testing.T, test func(t *testing.T, revision string)) {
	wiretest.EachRevision(t, test)
	t.Run(wiretest.CandidateRevision, func(t *testing.T) {
		t.Parallel()
		wiretest.InBubble(test)(t, wiretest.CandidateRevision)
	})
}

func TestCalls(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		ci := wiretest.Connect(t, url, revision, mcptask.Answerer{})
		ctx := t.Context() // without a deadline: the parallel subtests wait for their turn

		t.Run("a task gives its typed result", func(t *testing.T) {
			t.Parallel()
			call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Steps: []string{"build", "test"}})
			if err != nil {
				t.Fatal(err)
			}
			token, ok := call.Token()
			if !ok {
				t.Fatal("a required tool gave no task")
			}
			var statuses []string
			for s, err := range call.Updates(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				statuses = append(statuses, fmt.Sprint(s.Status, " ", s.Message))
			}
			t.Log(statuses)
			report, err := call.Wait(ctx)
			if err != nil || !report.Passed || len(report.Steps) != 2 {
				t.Fatalf("%+v, %v", report, err)
			}
			again, err := ci.ResumeRunPipeline(token)
			if err != nil {
				t.Fatal(err)
			}
			if report, err := again.Wait(ctx); err != nil || len(report.Steps) != 2 {
				t.Fatalf("resumed: %+v, %v", report, err)
			}
		})
		t.Run("a tool error", func(t *testing.T) {
			t.Parallel()
			_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "broken"})
			var toolErr *mcptask.ToolError
			if !errors.As(err, &toolErr) || toolErr.Result.Text() != "the branch does not build" {
				t.Fatal(err)
			}
		})
		t.Run("a protocol error", func(t *testing.T) {
			t.Parallel()
			_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "refused"})
			var wire *mcptask.Error
			if !errors.As(err, &wire) || wire.Code != -32050 || wire.Message != "the repository is locked" {
				t.Fatal(err)
			}
		})
		t.Run("a panic", func(t *testing.T) {
			t.Parallel()
			_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "panic"})
			var wire *mcptask.Error
			if !errors.As(err, &wire) || wire.Code != mcptask.CodeInternalError {
				t.Fatal(err)
			}
		})
		t.Run("a cancel", func(t *testing.T) {
			t.Parallel()
			call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "endless"})
			if err != nil {
				t.Fatal(err)
			}
			if err := call.Cancel(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
				t.Fatal(err)
			}
			if err := call.Cancel(ctx); err != nil {
				t.Fatal("cancel of a task that has ended:", err)
			}
		})
		t.Run("a tool that is never a task", func(t *testing.T) {
			t.Parallel()
			report, err := ci.LintFile(ctx, pipeline.LintInput{Path: "main.go"})
			if err != nil || len(report.Findings) != 1 {
				t.Fatalf("%+v, %v", report, err)
			}
		})
		t.Run("a quick optional tool", func(t *testing.T) {
			t.Parallel()
			var call *mcptask.Call[pipeline.DeployReport]
			for end := time.Now().Add(wiretest.Patience); ; { // a busy machine may miss the grace
				var err error
				if call, err = ci.StartDeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "staging"}); err != nil {
					t.Fatal(err)
				}
				_, isTask := call.Token()
				if isTask == (revision == mcptask.Revision20251125) {
					break
				}
				if time.Now().After(end) || !isTask {
					t.Fatalf("task: %v; grace answers at once where the server decides", isTask)
				}
			}
			if report, err := call.Wait(ctx); err != nil || report.Version != "1.2.3" {
				t.Fatalf("%+v, %v", report, err)
			}
		})
		t.Run("a plain call of an optional tool", func(t *testing.T) {
			t.Parallel()
			call, err := ci.StartDeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "staging"}, mcptask.Plain())
			if err != nil {
				t.Fatal(err)
			}
			if _, isTask := call.Token(); isTask {
				t.Error("a plain call became a task")
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
			call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "endless"})
			if err != nil {
				t.Fatal(err)
			}
			_ = call.Cancel(ctx)
			other, _ := wiretest.Serve(t, mcptask.Options{})
			token, _ := call.Token()
			strange, err := wiretest.Connect(t, other, revision, mcptask.Answerer{}).ResumeRunPipeline(token)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := strange.Wait(ctx); !errors.Is(err, mcptask.ErrNotFound) {
				t.Fatal(err)
			}
		})
	})
}

func TestQuestions(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
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
