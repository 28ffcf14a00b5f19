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
	// RunPipeline builds and tests one branch of a repository.
	//
	//mcptask:tool task=required ttl=24h poll=200ms onlost=restart
	//mcptask:tool immediate="The pipeline is running; its report follows."
	RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)

	// DeployService ships a service; production asks a person first.
	//
	//mcptask:tool title="Deploy a service" grace=200ms poll=200ms
	DeployService(ctx context.Context, task *mcptask.Task, in DeployInput) (DeployReport, error)

	// LintFile checks one file at once.
	//
	//mcptask:tool readonly
	LintFile(ctx context.Context, in LintInput) (LintReport, error)
}

// Approval is what a person answers before a deployment.
//
//mcptask:input message="Ship it?"
type Approval struct {
	// Approve ships the service.
	Approve bool `json:"approve" jsonschema:"default=false"`
}

// RunInput says what to build.
type RunInput struct {
	// Repository is the name of the repository.
	Repository string `json:"repository" jsonschema:"minLength=1"`
	// Branch is the branch to build.
	Branch string `json:"branch"`
}

// RunReport describes the outcome of a pipeline.
type RunReport struct {
	// Stages lists the stages that passed, in order.
	Stages []Stage `json:"stages"`
	// Seconds is how long the whole pipeline took.
	Seconds float64 `json:"seconds"`
}

// Stage is one stage of a pipeline.
type Stage struct {
	// Name is what the stage does.
	Name string `json:"name"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// DeployInput says what to ship to which environment.
type DeployInput struct {
	// Service is the name of the service.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Environment is where the service goes.
	Environment string `json:"environment" jsonschema:"enum=staging,enum=production"`
}

// DeployReport says what was shipped.
type DeployReport struct {
	// Version is the version that is live now.
	Version string `json:"version"`
}

// LintInput names a file.
type LintInput struct {
	// Path is the file's path in the repository.
	Path string `json:"path" jsonschema:"minLength=1"`
}

// LintReport lists what is wrong with a file.
type LintReport struct {
	// Findings has one line a finding.
	Findings []string `json:"findings"`
}

// StageFailed says that a stage of a pipeline failed.
//
//mcptask:error code=stage_failed
type StageFailed struct {
	// Stage is the stage that failed.
	Stage string `json:"stage"`
	// Log is the end of its log.
	Log string `json:"log"`
}

// Error implements error.
func (e *StageFailed) Error() string { return e.Stage + ": " + e.Log }
