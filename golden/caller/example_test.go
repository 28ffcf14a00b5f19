package caller_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/caller"
	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// ci implements the declared tools.
type ci struct{}

func (*ci) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
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

func (*ci) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	if in.Environment == "production" {
		// "ship" names the step: when the handler runs again, the same step gets the stored answer.
		a, err := pipeline.AskApproval(ctx, task, "ship", "Ship "+in.Service+" to production?")
		if err != nil || !a.Approve {
			return pipeline.DeployReport{}, errors.Join(err, errors.New("not approved"))
		}
	}
	return pipeline.DeployReport{Version: "1.2.3"}, nil
}

func (*ci) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{}, nil
}

// The whole way: a server of the generated tools beside the official SDK, and
// the generated client in both revisions.
func Example() {
	tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(&ci{})) // duplicate or invalid tools: err
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	server := httptest.NewServer(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	defer server.Close()

	askThePerson := func(context.Context, mcptask.Question) (pipeline.Approval, error) {
		return pipeline.Approval{Approve: true}, nil
	}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		fmt.Println(revision)
		if err := caller.Run(context.Background(), os.Stdout, server.URL, revision, askThePerson); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 2025-11-25
	// run: true 1
	// same task: true
	// resumed: completed true
	// settled: 3 true true true
	// deployed: 1.2.3
	// 2026-07-28
	// run: true 1
	// same task: true
	// resumed: completed true
	// settled: 3 true true true
	// deployed: 1.2.3
}
