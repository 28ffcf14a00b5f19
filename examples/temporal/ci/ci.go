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
	// BuildImage builds the image of a version. This takes long.
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
	// Approve must be true to go on.
	Approve bool `json:"approve" jsonschema:"default=false"`
}

// BuildInput says what to build.
type BuildInput struct {
	// Version is the version to build.
	Version string `json:"version" jsonschema:"minLength=1"`
	// Layers is how many layers the image has.
	Layers int `json:"layers" jsonschema:"minimum=1"`
}

// BuildReport says what was built.
type BuildReport struct {
	// Worker is the name of the worker that has finished the image.
	Worker string `json:"worker"`
	// Run counts the runs of the handler, from 1.
	Run int `json:"run"`
}

// PipelineInput says what to ship.
type PipelineInput struct {
	// Version is the version to ship.
	Version string `json:"version" jsonschema:"minLength=1"`
}

// PipelineReport says what the pipeline has done.
type PipelineReport struct {
	// Stages are the stages that have passed.
	Stages []string `json:"stages"`
}
