package wiretest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// CI implements the pipeline's tools for the tests.
type CI struct{}

// RunPipeline does what the branch says, and takes 100 milliseconds for each step. The step "fails" fails.
func (CI) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	switch in.Branch {
	case "broken":
		return pipeline.RunReport{}, errors.New("the branch does not build")
	case "refused":
		return pipeline.RunReport{}, mcptask.Errorf(4050, "the repository is locked")
	case "panic":
		panic("a bug in the handler")
	case "endless":
		<-ctx.Done()
		return pipeline.RunReport{}, ctx.Err()
	}
	report := pipeline.RunReport{Passed: true, Steps: []pipeline.Step{}}
	for i, name := range in.Steps {
		task.Progress(ctx, float64(i), float64(len(in.Steps)), name)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return report, ctx.Err()
		}
		if name == "fails" {
			return report, errors.New("a step failed")
		}
		report.Steps = append(report.Steps, pipeline.Step{Name: name, Passed: true})
	}
	return report, nil
}

// DeployService asks before it deploys to production.
func (CI) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	if in.Environment == "production" {
		approval, err := pipeline.AskApproval(ctx, task, "ship", "Ship "+in.Service+" to production?")
		if err != nil {
			return pipeline.DeployReport{}, err
		}
		if !approval.Approve {
			return pipeline.DeployReport{}, errors.New("not approved")
		}
	}
	return pipeline.DeployReport{Version: "1.2.3"}, nil
}

// LintFile finds one fault in any file.
func (CI) LintFile(_ context.Context, in pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{Findings: []pipeline.Finding{{Line: 1, Message: "in " + in.Path}}}, nil
}

// Connect connects a generated client that speaks a revision.
func Connect(t testing.TB, url, revision string, answer mcptask.Answerer) *pipeline.CIClient {
	t.Helper()
	conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: revision, Answer: answer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if conn.Revision() != revision {
		t.Fatalf("the connection speaks %s", conn.Revision())
	}
	return pipeline.NewCIClient(conn)
}

// EachRevision runs a test in both official revisions, in fake time.
func EachRevision(t *testing.T, test func(t *testing.T, revision string)) {
	EachRevisionLive(t, InBubble(test))
}

// InBubble returns a test that runs in a bubble of its own.
func InBubble(test func(t *testing.T, revision string)) func(t *testing.T, revision string) {
	return func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) { test(t, revision) })
	}
}

// EachRevisionLive is EachRevision in real time.
func EachRevisionLive(t *testing.T, test func(t *testing.T, revision string)) {
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			test(t, revision)
		})
	}
}
