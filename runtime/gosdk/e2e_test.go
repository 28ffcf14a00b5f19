package gosdk_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

func TestCalls(t *testing.T) {
	each := func(name string, test func(t *testing.T, ci *pipeline.CIClient, revision string)) {
		t.Run(name, func(t *testing.T) {
			wiretest.EachRevision(t, func(t *testing.T, revision string) {
				url, _ := wiretest.Serve(t, taskserver.Options{})
				test(t, wiretest.Connect(t, url, revision, mcptask.Answerer{}), revision)
			})
		})
	}
	each("what programs do", func(t *testing.T, ci *pipeline.CIClient, _ string) {
		checkResumed(t, ci, checkPipeline(t, ci, false))
	})
	each("progress", func(t *testing.T, ci *pipeline.CIClient, _ string) {
		for last, want := range map[string]mcptask.ProgressReport{"test": {}, "fails": {Done: 1, Total: 2}} {
			var end mcptask.ProgressReport
			for s, err := range startRun(t, ci, "", "build", last).Updates(within(t, wiretest.Patience)) {
				if err != nil {
					t.Fatal(err)
				}
				end = s.Progress
			}
			if end.Done != want.Done || end.Total != want.Total {
				t.Errorf("%s: %+v at the end, want %+v", last, end, want)
			}
		}
	})
	each("a panic", func(t *testing.T, ci *pipeline.CIClient, _ string) {
		_, err := ci.RunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: "panic"})
		if !isError(mcptask.CodeInternalError)(err) {
			t.Fatal(err)
		}
	})
	each("a cancel of a task that has ended", func(t *testing.T, ci *pipeline.CIClient, _ string) {
		call := startRun(t, ci, "endless")
		for range 2 {
			cancel(t, call)
			wantEnd(t, call, mcptask.ErrCancelled)
		}
	})
	each("a quick optional tool", func(t *testing.T, ci *pipeline.CIClient, revision string) {
		// Grace answers at once if the server decides.
		if isTask := deployStaging(t, ci); isTask != (revision == mcptask.Revision20251125) {
			t.Errorf("task: %v", isTask)
		}
	})
	each("invalid arguments", func(t *testing.T, ci *pipeline.CIClient, _ string) {
		if _, err := ci.DeployService(t.Context(), pipeline.DeployInput{Service: "", Environment: "mars"}); err == nil {
			t.Error("an environment that does not exist is accepted")
		}
	})
	each("a question that the client cannot ask", func(t *testing.T, ci *pipeline.CIClient, _ string) {
		_, err := ci.DeployService(t.Context(), pipeline.DeployInput{Service: "api", Environment: "production"})
		var toolErr *mcptask.ToolError
		if !errors.As(err, &toolErr) {
			t.Fatal(err)
		}
	})
	each("a task that is not there", func(t *testing.T, ci *pipeline.CIClient, revision string) {
		call := startRun(t, ci, "endless")
		cancel(t, call)
		other, _ := wiretest.Serve(t, taskserver.Options{})
		token, _ := call.Token()
		strange, err := wiretest.Connect(t, other, revision, mcptask.Answerer{}).ResumeRunPipeline(token)
		if err != nil {
			t.Fatal(err)
		}
		wantEnd(t, strange, mcptask.ErrNotFound)
	})
}

func TestQuestions(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, taskserver.Options{})
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
