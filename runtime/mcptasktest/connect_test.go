package mcptasktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// ci takes twenty minutes for each step.
type ci struct{}

func (ci) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	report := pipeline.RunReport{Passed: true, Steps: []pipeline.Step{}}
	for i, name := range in.Steps {
		task.Progress(ctx, float64(i), float64(len(in.Steps)), name)
		select {
		case <-time.After(20 * time.Minute):
		case <-ctx.Done():
			return report, ctx.Err()
		}
		report.Steps = append(report.Steps, pipeline.Step{Name: name, Passed: true})
	}
	return report, nil
}

func (ci) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	a, err := pipeline.AskApproval(ctx, task, "ship", "")
	if err != nil || !a.Approve {
		return pipeline.DeployReport{}, errors.Join(err, errors.New("not approved"))
	}
	return pipeline.DeployReport{Version: in.Version}, nil
}

func (ci) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{}, nil
}

func TestAnHourTakesNoTime(t *testing.T) {
	rules.Covers(t, "E-19")
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{}, pipeline.CITools(ci{}))
			begin := time.Now()
			call, err := pipeline.NewCIClient(conn).StartRunPipeline(t.Context(), pipeline.RunInput{
				Repository: "https://example.com/shop", Steps: []string{"build", "test", "ship"},
			})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for s, err := range call.Updates(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				seen[s.Message] = true
			}
			report, err := call.Wait(t.Context())
			if err != nil || len(report.Steps) != 3 || !seen["test (1/3)"] {
				t.Errorf("%+v, %v, %v", report, err, seen)
			}
			if took := time.Since(begin); took < time.Hour || took > time.Hour+10*time.Second {
				t.Errorf("an hour took %v", took)
			}
		})
	})
}

func TestListTools(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{}, pipeline.CITools(ci{}))
		tools, err := conn.ListTools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			if tool.Name == "deploy_service" && tool.Title == "Deploy a service" && tool.Description != "" && len(tool.InputSchema) > 0 && len(tool.OutputSchema) > 0 {
				return
			}
		}
		t.Errorf("%+v", tools)
	})
}

// holder runs pipelines until they are cancelled, and tells whose they are.
type holder struct {
	ci
	principals chan string
}

func (h holder) RunPipeline(ctx context.Context, task *mcptask.Task, _ pipeline.RunInput) (pipeline.RunReport, error) {
	h.principals <- task.Principal()
	<-ctx.Done()
	return pipeline.RunReport{}, ctx.Err()
}

// TestCallerIsLocal checks that the caller of a test is Local and has all slots, although the bytes are those of HTTP.
func TestCallerIsLocal(t *testing.T) {
	const slots = 4
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			h := holder{principals: make(chan string, slots)}
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Server: taskserver.Options{Concurrency: slots}}, pipeline.CITools(h))
			for range slots {
				if _, err := pipeline.NewCIClient(conn).StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/shop"}); err != nil {
					t.Fatal(err)
				}
				if got := <-h.principals; got != mcptasktest.Local {
					t.Errorf("the principal is %q", got)
				}
			}
		})
	})
}
