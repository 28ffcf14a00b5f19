package serve_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/caller"
	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// callerCI implements the declared tools.
type callerCI struct{}

func (*callerCI) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	report := pipeline.RunReport{Passed: true, Steps: []pipeline.Step{}}
	switch in.Branch {
	case "broken":
		return report, errors.New("the branch does not build")
	case "endless":
		<-ctx.Done()
		return report, ctx.Err()
	}
	for i, name := range in.Steps {
		task.Progress(ctx, float64(i), float64(len(in.Steps)), name)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return report, ctx.Err()
		}
		report.Steps = append(report.Steps, pipeline.Step{Name: name, Passed: true})
	}
	return report, nil
}

func (*callerCI) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	if in.Environment == "production" {
		// "ship" names the step: when the handler runs again, the same step gets the stored answer.
		a, err := pipeline.AskApproval(ctx, task, "ship", "Ship "+in.Service+" to production?")
		if err != nil || !a.Approve {
			return pipeline.DeployReport{}, errors.Join(err, errors.New("not approved"))
		}
	}
	return pipeline.DeployReport{Version: "1.2.3"}, nil
}

func (*callerCI) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{}, nil
}

// callerPrinted is the client's output in every revision.
const callerPrinted = `run: true 1
same task: true
resumed: completed true
settled: 3 true true true
deployed: 1.2.3
`

// TestCaller calls the tools in every way that the client has, in a bubble: the polls, two seconds apart, take no time.
func TestCaller(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			var out strings.Builder
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{}, pipeline.CITools(&callerCI{}))
			if err := caller.Call(t.Context(), &out, conn); err != nil || out.String() != callerPrinted {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	})
}

// pointer returns a pointer to a value.
func pointer[T any](v T) *T { return &v }
