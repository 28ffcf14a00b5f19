package serve_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

var pipelineTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type pipelineImpl struct{}

func (pipelineImpl) RunPipeline(_ context.Context, _ *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	return pipelineRan(in), nil
}

func pipelineRan(in pipeline.RunInput) pipeline.RunReport {
	report := pipeline.RunReport{Passed: in.Branch != ""}
	for _, name := range in.Steps {
		report.Steps = append(report.Steps, pipeline.Step{Name: name, Took: time.Minute})
	}
	return report
}

func (pipelineImpl) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	a, err := pipeline.AskApproval(ctx, task, "ship", "")
	if err != nil || !a.Approve {
		return pipeline.DeployReport{}, err
	}
	return pipeline.DeployReport{Version: in.Version, URL: in.Environment, Deployed: pipelineTime}, nil
}

func (pipelineImpl) LintFile(_ context.Context, in pipeline.LintInput) (pipeline.LintReport, error) {
	return pipelineLinted(in), nil
}

func pipelineLinted(in pipeline.LintInput) pipeline.LintReport {
	if in.Path == "" {
		return pipeline.LintReport{}
	}
	return pipeline.LintReport{Findings: []pipeline.Finding{{Line: 1, Message: in.Path}}}
}

func TestPipeline(t *testing.T) {
	answer := func(s *serve.Session) mcptask.Answerer {
		return pipeline.AnswerApproval(serve.Answers(s, pipeline.Approval{Approve: true}))
	}
	serve.Each(t, answer, []string{"Approval"}, func(s *serve.Session) {
		client := pipeline.NewCIClient(s)
		for _, in := range []pipeline.RunInput{
			{Repository: "https://example.com/a"},
			{Repository: "https://example.com/a", Branch: "main", Steps: []string{"build", "test"}},
		} {
			serve.Returns(s, "run_pipeline", client.RunPipeline, in, pipelineRan(in))
		}
		serve.Returns(s, "deploy_service", client.DeployService, pipeline.DeployInput{Service: "api", Environment: "staging", Version: "1"}, pipeline.DeployReport{Version: "1", URL: "staging", Deployed: pipelineTime})
		for _, in := range []pipeline.LintInput{{}, {Path: "a.go"}} {
			serve.Returns(s, "lint_file", client.LintFile, in, pipelineLinted(in))
		}
	}, pipeline.CITools(pipelineImpl{}))
}
