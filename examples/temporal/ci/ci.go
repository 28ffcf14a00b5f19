// Package ci declares the tools of a continuous-integration server. One is a handler in Go, and one is a
// workflow of Temporal.
package ci

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// CI builds and ships versions of a service.
//
//mcptask:service fallback=none task=required poll=200ms
type CI interface {
	// BuildImage builds the container image of a version. It takes minutes.
	//
	//mcptask:tool onlost=restart
	BuildImage(ctx context.Context, task *mcptask.Task, in BuildInput) (BuildReport, error)

	// RunPipeline builds, tests and ships a version. It asks a person before it ships.
	//
	//mcptask:tool workflow=RunPipeline
	RunPipeline(ctx context.Context, task *mcptask.Task, in PipelineInput) (PipelineReport, error)
}

// Approval is what a person answers before a version is shipped.
//
//mcptask:input message="Ship it?"
type Approval struct {
	// Approve says whether to ship the version.
	Approve bool `json:"approve" jsonschema:"default=false"`
}

// BuildInput says what to build.
type BuildInput struct {
	// Version is the version to build, such as v1.4.2.
	Version string `json:"version" jsonschema:"minLength=1"`
	// Layers is the number of layers of the image.
	Layers int `json:"layers" jsonschema:"minimum=1"`
}

// BuildReport says what was built.
type BuildReport struct {
	// Worker is the name of the worker that finished the image.
	Worker string `json:"worker"`
	// Run is the number of times that the work was started. It is 1 unless a server had to start it again.
	Run int `json:"run"`
}

// PipelineInput says what to ship.
type PipelineInput struct {
	// Version is the version to ship, such as v1.4.2.
	Version string `json:"version" jsonschema:"minLength=1"`
}

// PipelineReport says what the pipeline has done.
type PipelineReport struct {
	// Stages are the names of the stages that passed, in order.
	Stages []string `json:"stages"`
}
