// Package reports declares tools whose work other processes do.
package reports

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Reports makes reports.
//
//mcptask:service task=required poll=200ms onlost=restart ttl=1h
type Reports interface {
	// ExportReport writes a report into a file.
	//
	//mcptask:tool deadline=10m
	ExportReport(ctx context.Context, task *mcptask.Task, in ExportInput) (Export, error)

	// AnalyzeReport analyzes a report on the batch system.
	AnalyzeReport(ctx context.Context, task *mcptask.Task, in AnalyzeInput) (Analysis, error)
}

// ExportInput says what to export.
type ExportInput struct {
	// Name is the name of the report, and of its file without the ending.
	Name string `json:"name" jsonschema:"pattern=^[a-z0-9-]+$,maxLength=64"`
	// Rows is how many rows the report has.
	Rows int `json:"rows" jsonschema:"minimum=1,maximum=100000"`
}

// Export describes a report that was exported.
type Export struct {
	// File is the path of the file.
	File string `json:"file"`
	// Run counts the runs of the handler, from 1.
	Run int `json:"run"`
}

// AnalyzeInput says what to analyze.
type AnalyzeInput struct {
	// Parts is how many parts the analysis has.
	Parts int `json:"parts" jsonschema:"minimum=1,maximum=1000"`
}

// Analysis describes an analysis that was made.
type Analysis struct {
	// Job is the key of the job in the batch system.
	Job string `json:"job"`
	// Parts is how many parts were analyzed.
	Parts int `json:"parts"`
	// Run counts the runs of the handler, from 1.
	Run int `json:"run"`
}
