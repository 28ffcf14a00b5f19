// Package deploy declares tools as users do, beside an enum and a server on the Go SDK.
package deploy

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen
//go:generate go tool stringer -type=State

// State is how far a release has come.
type State int

// The states of a release.
const (
	Waiting  State = iota // nobody has begun
	Building              // its image is built
	Testing               // its tests run
	Live                  // it is served
	Failed                // it never will be
)

// Environment is where a release goes.
type Environment string

// The environments.
const (
	Staging    Environment = "staging"    // for ourselves
	Production Environment = "production" // for everybody
)

// Releases ships what a team has made.
//
//mcptask:service fallback=tools
type Releases interface {
	// Build makes the image of one branch of a repository, and tests it.
	//
	//mcptask:tool task=required ttl=24h poll=2s onlost=restart
	Build(ctx context.Context, task *mcptask.Task, in BuildInput) (BuildReport, error)

	// Deploy ships a release; production asks a person first.
	//
	//mcptask:tool title="Deploy a release" grace=200ms
	Deploy(ctx context.Context, task *mcptask.Task, in DeployInput) (DeployReport, error)

	// Rollback takes the release of an environment back.
	//
	//mcptask:tool destructive
	Rollback(ctx context.Context, task *mcptask.Task, in Target, ok Approval) (DeployReport, error)

	// List lists the releases of a service, the newest first.
	//
	//mcptask:tool readonly
	List(ctx context.Context, in ListInput) (ListReport, error)

	// Describe says all that is known of a release.
	//
	//mcptask:tool readonly
	Describe(ctx context.Context, in Reference) (Release, error)

	// Notes writes the notes of a release as Markdown.
	//
	//mcptask:tool readonly
	Notes(ctx context.Context, in Reference) (string, error)
}

// Approval is what a person answers before a release is changed.
//
//mcptask:input message="Go ahead?"
type Approval struct {
	// Approve must be true to go on.
	Approve bool `json:"approve" jsonschema:"default=false"`
	// Reason is kept with the release.
	Reason string `json:"reason,omitempty"`
}

// BuildInput says what to build.
type BuildInput struct {
	// Repository is the address of the repository.
	Repository string `json:"repository" jsonschema:"format=uri"`
	// Branch is the branch to build, else the default one.
	Branch string `json:"branch,omitempty"`
	// Variables are set while the image is built.
	Variables map[string]string `json:"variables,omitempty"`
	// Timeout ends a build that takes longer.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// BuildReport says how a build went.
type BuildReport struct {
	// Release is what was built.
	Release Reference `json:"release"`
	// Stages lists the stages that passed, in order.
	Stages []Stage `json:"stages"`
}

// Stage is one stage of a build.
type Stage struct {
	// Name is what the stage does.
	Name string `json:"name"`
	// Started is when it began.
	Started time.Time `json:"started"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Stages are those that it consists of.
	Stages []Stage `json:"stages,omitempty"`
}

// Target is a service in an environment.
type Target struct {
	// Service is the name of the service.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Environment is where it runs.
	Environment Environment `json:"environment"`
}

// DeployInput says what to ship, and where.
type DeployInput struct {
	Target
	// Version is the version to ship, else the newest.
	Version string `json:"version,omitempty"`
	// Share is the part of the requests that the release gets at first, in percent.
	Share int `json:"share" jsonschema:"minimum=1,maximum=100,default=100"`
}

// DeployReport says what is live now.
type DeployReport struct {
	// Release is the one that is live.
	Release Reference `json:"release"`
	// Before is the one that was.
	Before *Reference `json:"before,omitempty"`
}

// Reference names a release.
type Reference struct {
	// Service is the name of the service.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Version is the version of the release.
	Version string `json:"version" jsonschema:"minLength=1"`
}

// ListInput says which releases to list.
type ListInput struct {
	// Service is the name of the service.
	Service string `json:"service" jsonschema:"minLength=1"`
	// Since leaves older releases out.
	Since *time.Time `json:"since,omitempty"`
	// Limit is how many to list.
	Limit int `json:"limit,omitempty" jsonschema:"minimum=1,maximum=1000"`
}

// ListReport lists releases.
type ListReport struct {
	// Releases are the newest first.
	Releases []Release `json:"releases"`
	// More tells that there are others.
	More bool `json:"more"`
}

// Release is one version of a service.
type Release struct {
	Reference
	// State is how far it has come.
	State State `json:"state"`
	// Environments are where it is live.
	Environments []Environment `json:"environments,omitempty"`
	// Built is when its image was made.
	Built time.Time `json:"built"`
	// Labels are what its team says of it.
	Labels map[string]string `json:"labels,omitempty"`
}
