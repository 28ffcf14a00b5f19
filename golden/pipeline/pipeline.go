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

	// DeployService ships a service. Before it ships to production, it asks a person.
	//
	//mcptask:tool title="Deploy a service" grace=200ms
	DeployService(ctx context.Context, task *mcptask.Task, in DeployInput) (DeployReport, error)

	// LintFile checks one file and returns what it found.
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
	// Repository is the URL of the repository, such as https://example.com/web.git.
	Repository string `json:"repository" jsonschema:"format=uri"`
	// Branch is the branch to build, such as main. If it is left out, the default branch of the repository is built.
	Branch string `json:"branch,omitempty"`
	// Steps are the names of the steps to run, such as build and test. By default, all steps run.
	Steps []string `json:"steps,omitempty"`
}

// RunReport is how a pipeline went.
type RunReport struct {
	// Passed reports whether every step passed.
	Passed bool `json:"passed"`
	// Steps are the steps that ran, in order.
	Steps []Step `json:"steps"`
}

// Step is one step of a pipeline.
type Step struct {
	Name    string        `json:"name"`
	Passed  bool          `json:"passed"`
	Took    time.Duration `json:"took"`              // how long the step ran, in nanoseconds
	Summary string        `json:"summary,omitempty"` // the last line of the log of the step
}

// DeployInput says what to ship where.
type DeployInput struct {
	// Service is the name of the service to ship, such as billing.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Environment is the environment to ship the service to.
	Environment string `json:"environment,omitempty" jsonschema:"enum=staging,enum=production,default=staging"`
	// Version is the version to ship, such as v1.4.2. If it is left out, the newest version is shipped.
	Version string `json:"version,omitempty"`
}

// DeployReport is what was shipped.
type DeployReport struct {
	Version  string    `json:"version"`       // the version that runs now
	URL      string    `json:"url,omitempty"` // the address of the service
	Deployed time.Time `json:"deployed"`      // when the new version took over
}

// LintInput names the file to check.
type LintInput struct {
	Path string `json:"path" jsonschema:"the path of the file in the repository, such as cmd/server/main.go"`
}

// LintReport is what is wrong with a file.
type LintReport struct {
	Findings []Finding `json:"findings"`
}

// Finding is one problem.
type Finding struct {
	Line    int    `json:"line" jsonschema:"minimum=1"` // the number of the line, from 1
	Message string `json:"message"`                     // the problem, in a sentence
}
