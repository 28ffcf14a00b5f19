// Package pipeline declares the tools of a continuous-integration server.
package pipeline

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// CI runs continuous-integration jobs.
//
//mcptask:service
type CI interface {
	// RunPipeline builds and tests one branch of a repository. It takes minutes.
	//
	//mcptask:tool task=required ttl=24h poll=200ms onlost=restart
	//mcptask:tool immediate="The pipeline is running; its report follows."
	RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)

	// DeployService ships the newest version of a service. Before it ships to production, it asks a person.
	//
	//mcptask:tool title="Deploy a service" grace=200ms poll=200ms
	DeployService(ctx context.Context, task *mcptask.Task, in DeployInput) (DeployReport, error)

	// LintFile checks one file of the repository and returns what it found.
	//
	//mcptask:tool readonly
	LintFile(ctx context.Context, in LintInput) (LintReport, error)
}

// Approval is what a person answers before a deployment.
//
//mcptask:input message="Ship it?"
type Approval struct {
	// Approve says whether to ship the service.
	Approve bool `json:"approve" jsonschema:"default=false"`
}

// RunInput says what to build.
type RunInput struct {
	// Repository is the name of the repository, such as web.
	Repository string `json:"repository" jsonschema:"minLength=1"`
	// Branch is the name of the branch to build, such as main.
	Branch string `json:"branch"`
}

// RunReport describes the outcome of a pipeline.
type RunReport struct {
	// Stages are the stages that passed, in the order in which they ran.
	Stages []Stage `json:"stages"`
	// Seconds is how many seconds the whole pipeline took.
	Seconds float64 `json:"seconds"`
}

// Stage is one stage of a pipeline.
type Stage struct {
	// Name is the name of the stage, such as build or test.
	Name string `json:"name"`
	// Seconds is how many seconds the stage took.
	Seconds float64 `json:"seconds"`
}

// DeployInput says what to ship to which environment.
type DeployInput struct {
	// Service is the name of the service to ship, such as billing.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Environment is the environment to ship the service to.
	Environment string `json:"environment" jsonschema:"enum=staging,enum=production"`
}

// DeployReport says what was shipped.
type DeployReport struct {
	// Version is the version of the service that runs now.
	Version string `json:"version"`
}

// LintInput names a file.
type LintInput struct {
	// Path is the path of the file, relative to the root of the repository, such as cmd/server/main.go.
	Path string `json:"path" jsonschema:"minLength=1"`
}

// LintReport lists what is wrong with a file.
type LintReport struct {
	// Findings are the problems of the file, one line of text for each. The list is empty if there are none.
	Findings []string `json:"findings"`
}

// StageFailed means that a stage of the pipeline failed.
//
//mcptask:error code=stage_failed
type StageFailed struct {
	// Stage is the name of the stage that failed.
	Stage string `json:"stage"`
	// Log is the end of the log of this stage.
	Log string `json:"log"`
}

// Error implements error.
func (e *StageFailed) Error() string { return e.Stage + ": " + e.Log }
