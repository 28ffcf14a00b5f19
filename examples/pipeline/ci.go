package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// ci implements the declared tools. It sleeps instead of working; everything else is as in a real
// server.
type ci struct{}

// codeLocked is a JSON-RPC error code of this server.
const codeLocked = 4050

var stages = []string{"checkout", "build", "test", "package"}

// RunPipeline implements pipeline.CI. The name of the branch decides the outcome.
func (ci) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	if in.Branch == "locked" {
		return pipeline.RunReport{}, mcptask.Errorf(codeLocked, "the repository %s is locked", in.Repository)
	}
	report := pipeline.RunReport{Stages: []pipeline.Stage{}}
	for i, name := range stages {
		stage, err := mcptask.Step(ctx, task, name, func(ctx context.Context) (pipeline.Stage, error) {
			task.Progress(ctx, float64(i), float64(len(stages)), name)
			return work(ctx, in.Branch, name)
		})
		if err != nil {
			return report, err
		}
		report.Stages = append(report.Stages, stage)
		report.Seconds += stage.Seconds
	}
	return report, nil
}

// work takes a moment, or ten minutes for the tests of the branch "slow", unless ctx ends first.
func work(ctx context.Context, branch, stage string) (pipeline.Stage, error) {
	takes := 500 * time.Millisecond
	if branch == "slow" && stage == "test" {
		takes = 10 * time.Minute
	}
	begin := time.Now()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return pipeline.Stage{}, context.Cause(ctx)
	}
	if branch == "broken" && stage == "build" {
		return pipeline.Stage{}, &pipeline.StageFailed{Stage: stage, Log: "main.go:12:3: undefined: frobnicate"}
	}
	return pipeline.Stage{Name: stage, Seconds: time.Since(begin).Seconds()}, nil
}

// DeployService implements pipeline.CI.
func (ci) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	if in.Environment == "production" {
		approval, err := pipeline.AskApproval(ctx, task, "ship", fmt.Sprintf("Ship %s to production?", in.Service))
		switch {
		case errors.Is(err, mcptask.ErrDeclined), err == nil && !approval.Approve:
			return pipeline.DeployReport{}, fmt.Errorf("%s was not shipped: the person refused", in.Service)
		case err != nil:
			return pipeline.DeployReport{}, err
		}
	}
	return pipeline.DeployReport{Version: "1.4.2"}, nil
}

// LintFile implements pipeline.CI.
func (ci) LintFile(_ context.Context, in pipeline.LintInput) (pipeline.LintReport, error) {
	report := pipeline.LintReport{Findings: []string{}}
	if !strings.HasSuffix(in.Path, ".go") {
		report.Findings = append(report.Findings, in.Path+" is not a Go file")
	}
	return report, nil
}
