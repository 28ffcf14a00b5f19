package serve_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	ours "github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/tools/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

var toolsPipelineTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type toolsPipelineImpl struct{}

func (toolsPipelineImpl) RunPipeline(_ context.Context, _ *mcptask.Task, in ours.RunInput) (ours.RunReport, error) {
	report := ours.RunReport{Passed: in.Branch != ""}
	for _, name := range in.Steps {
		report.Steps = append(report.Steps, ours.Step{Name: name, Took: time.Minute})
	}
	return report, nil
}

func (toolsPipelineImpl) DeployService(ctx context.Context, task *mcptask.Task, in ours.DeployInput) (ours.DeployReport, error) {
	a, err := ours.AskApproval(ctx, task, "ship", "")
	if err != nil || !a.Approve {
		return ours.DeployReport{}, err
	}
	return ours.DeployReport{Version: in.Version, URL: in.Environment, Deployed: toolsPipelineTime}, nil
}

func (toolsPipelineImpl) LintFile(_ context.Context, in ours.LintInput) (ours.LintReport, error) {
	return ours.LintReport{Findings: []ours.Finding{{Line: 1, Message: in.Path}}}, nil
}

// TestToolsPipeline calls a server of ours with the client that was made of its list, in each revision.
func TestToolsPipeline(t *testing.T) {
	answer := func(s *serve.Session) mcptask.Answerer {
		return ours.AnswerApproval(serve.Answers(s, ours.Approval{Approve: true}))
	}
	serve.Each(t, answer, []string{"Approval"}, func(s *serve.Session) {
		var client pipeline.Jobs = pipeline.NewJobsClient(s)
		run := pipeline.RunPipelineInput{Repository: "https://example.com/a", Branch: new("main"), Steps: []string{"build"}}
		ran := pipeline.RunPipelineOutput{
			Passed: true, Steps: []pipeline.RunPipelineOutputStepsItem{{Name: "build", Took: int64(time.Minute)}},
		}
		serve.Wants(s, "run_pipeline", ran, func() (pipeline.RunPipelineOutput, error) { return client.RunPipeline(s.Context(), run) })
		deploy := pipeline.DeployServiceInput{
			Service: "api", Environment: pipeline.DeployServiceInputEnvironmentStaging, Version: new("1"),
		}
		shipped := pipeline.DeployServiceOutput{Version: "1", URL: new("staging"), Deployed: toolsPipelineTime}
		serve.Wants(s, "deploy_service", shipped, func() (pipeline.DeployServiceOutput, error) { return client.DeployService(s.Context(), deploy) })
		lint := pipeline.LintFileInput{Path: "a.go"}
		found := pipeline.LintFileOutput{Findings: []pipeline.LintFileOutputFindingsItem{{Line: 1, Message: "a.go"}}}
		serve.Wants(s, "lint_file", found, func() (pipeline.LintFileOutput, error) { return client.LintFile(s.Context(), lint) })
		resumeRun(s, run, ran)
	}, ours.CITools(toolsPipelineImpl{}))
}

// resumeRun holds a task by its token, and takes it up again.
func resumeRun(s *serve.Session, in pipeline.RunPipelineInput, want pipeline.RunPipelineOutput) {
	client := pipeline.NewJobsClient(s)
	call, err := client.StartRunPipeline(s.Context(), in)
	if err != nil {
		s.Fatal(err)
	}
	token, ok := call.Token()
	if !ok {
		s.Fatal("run_pipeline did not become a task")
	}
	again, err := client.ResumeRunPipeline(token)
	if err != nil {
		s.Fatal(err)
	}
	if got, err := again.Wait(s.Context()); err != nil || got.Passed != want.Passed {
		s.Errorf("got %+v: %v", got, err)
	}
}
