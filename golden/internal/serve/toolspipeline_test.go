package serve_test

import (
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	ours "github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/tools/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestToolsPipeline calls the server of golden/pipeline with the client that is generated from its list of tools.
func TestToolsPipeline(t *testing.T) {
	answer := func(s *serve.Session) mcptask.Answerer {
		return ours.AnswerApproval(serve.Answers(s, ours.Approval{Approve: true}))
	}
	serve.Each(t, answer, []string{"Approval"}, func(s *serve.Session) {
		var client pipeline.Jobs = pipeline.NewJobsClient(s)
		run := pipeline.RunPipelineInput{Repository: "https://example.com/a", Branch: pointer("main"), Steps: []string{"build"}}
		ran := pipeline.RunPipelineOutput{
			Passed: true, Steps: []pipeline.Step{{Name: "build", Took: int64(time.Minute)}},
		}
		serve.Returns(s, "run_pipeline", client.RunPipeline, run, ran)
		deploy := pipeline.DeployServiceInput{
			Service: "api", Environment: pipeline.EnvironmentStaging, Version: pointer("1"),
		}
		shipped := pipeline.DeployServiceOutput{Version: "1", URL: pointer("staging"), Deployed: pipelineTime}
		serve.Returns(s, "deploy_service", client.DeployService, deploy, shipped)
		lint := pipeline.LintFileInput{Path: "a.go"}
		found := pipeline.LintFileOutput{Findings: []pipeline.Finding{{Line: 1, Message: "a.go"}}}
		serve.Returns(s, "lint_file", client.LintFile, lint, found)
		resumeRun(s, run, ran)
	}, ours.CITools(pipelineImpl{}))
}

// resumeRun starts a task and resumes it by its token.
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
