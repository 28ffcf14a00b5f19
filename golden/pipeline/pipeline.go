// Package pipeline is the declaration that the documentation shows, with its generated file.
package pipeline

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// CI runs continuous-integration jobs.
//
//mcptask:service
type CI interface {
	// RunPipeline builds and tests one branch of a repository.
	//
	//mcptask:tool task=required ttl=24h poll=2s onlost=restart
	RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)

	// DeployService ships a service; production asks a person first.
	//
	//mcptask:tool title="Deploy a service" grace=200ms
	DeployService(ctx context.Context, task *mcptask.Task, in DeployInput) (DeployReport, error)

	// LintFile checks one file at once.
	LintFile(ctx context.Context, in LintInput) (LintReport, error)
}

// Approval is what a person answers before a deployment.
//
//mcptask:input message="Ship it?"
type Approval struct {
	// Approve must be true to go on.
	Approve bool `json:"approve" jsonschema:"default=false"`
}

// RunInput says what to build.
type RunInput struct {
	// Repository is where the source is, as a URL.
	Repository string `json:"repository" jsonschema:"format=uri"`
	// Branch is the branch to build. The default is the default branch of the repository.
	Branch string `json:"branch,omitempty"`
	// Steps names the steps to run. The default is all of them.
	Steps []string `json:"steps,omitempty"`
}

// RunReport is how a pipeline went.
type RunReport struct {
	// Passed reports whether every step passed.
	Passed bool   `json:"passed"`
	Steps  []Step `json:"steps"`
}

// Step is one step of a pipeline.
type Step struct {
	Name    string        `json:"name"`
	Passed  bool          `json:"passed"`
	Took    time.Duration `json:"took"` // in nanoseconds
	Summary string        `json:"summary,omitempty"`
}

// DeployInput says what to ship where.
type DeployInput struct {
	// Service is the name of the service.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Environment is where it goes.
	Environment string `json:"environment,omitempty" jsonschema:"enum=staging,enum=production,default=staging"`
	Version     string `json:"version,omitempty"`
}

// DeployReport is what was shipped.
type DeployReport struct {
	Version  string    `json:"version"`
	URL      string    `json:"url,omitempty"`
	Deployed time.Time `json:"deployed"`
}

// LintInput names the file to check.
type LintInput struct {
	Path string `json:"path" jsonschema:"the file's path in the repository"`
}

// LintReport is what is wrong with a file.
type LintReport struct {
	Findings []Finding `json:"findings"`
}

// Finding is one problem.
type Finding struct {
	Line    int    `json:"line" jsonschema:"minimum=1"`
	Message string `json:"message"`
}
