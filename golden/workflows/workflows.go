// Package workflows has tools whose handlers are workflows, beside one that is written in Go.
package workflows

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Releases ships software. What it says of lost tasks and of slots, and its deadline, are for the tool that is written in Go.
//
//mcptask:service onlost=fail deadline=1h concurrency=2
type Releases interface {
	// Build builds a version.
	//
	//mcptask:tool workflow=RunPipeline
	Build(ctx context.Context, task *mcptask.Task, in BuildInput) (BuildReport, error)

	// Ship ships a version. It asks before it starts, and once more when it is built.
	//
	//mcptask:tool workflow=releases.Ship task=required onlost=restart attempts=20
	Ship(ctx context.Context, task *mcptask.Task, in *BuildInput, sure Approval, where Place) (*BuildReport, error)

	// Explain says in words what a version brings.
	//
	//mcptask:tool workflow="explain a version"
	Explain(ctx context.Context, task *mcptask.Task, in BuildInput) (string, error)

	// Withdraw withdraws the newest version.
	//
	//mcptask:tool workflow=Withdraw destructive
	Withdraw(ctx context.Context, task *mcptask.Task, sure Approval) error

	// Check checks a version here.
	Check(ctx context.Context, task *mcptask.Task, in BuildInput) (BuildReport, error)
}

// Upkeep has workflows alone, so that UpkeepWorkflows implements it.
//
//mcptask:service prefix=upkeep_ attempts=50
type Upkeep interface {
	// Sweep removes what nobody needs.
	//
	//mcptask:tool workflow=Sweep
	Sweep(ctx context.Context, task *mcptask.Task) error
}

// BuildInput says what to build.
type BuildInput struct {
	Version string `json:"version"`
}

// BuildReport is how it went.
type BuildReport struct {
	Version string `json:"version"`
	Passed  bool   `json:"passed"`
}

// Approval is what a person answers.
//
//mcptask:input message="Are you sure?"
type Approval struct {
	// Approve must be true to go on.
	Approve bool `json:"approve"`
}

// Place is where a version goes.
//
//mcptask:input message="Where to?"
type Place struct {
	Name string `json:"name" jsonschema:"enum=staging,enum=production"`
}
