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
	// ExportReport writes a report to a file and returns the path of the file.
	//
	//mcptask:tool deadline=10m
	ExportReport(ctx context.Context, task *mcptask.Task, in ExportInput) (Export, error)

	// AnalyzeReport analyzes a report, part by part, as a job of the batch system.
	AnalyzeReport(ctx context.Context, task *mcptask.Task, in AnalyzeInput) (Analysis, error)
}

// ExportInput says what to export.
type ExportInput struct {
	// Name is the name of the report, such as sales-2026. The file has the same name with an ending.
	Name string `json:"name" jsonschema:"pattern=^[a-z0-9-]+$,maxLength=64"`
	// Rows is the number of rows to write.
	Rows int `json:"rows" jsonschema:"minimum=1,maximum=100000"`
}

// Export describes a report that was exported.
type Export struct {
	// File is the path of the file on the server.
	File string `json:"file"`
	// Run is the number of times that the work was started. It is 1 unless a server had to start it again.
	Run int `json:"run"`
}

// AnalyzeInput says what to analyze.
type AnalyzeInput struct {
	// Parts is the number of parts to analyze.
	Parts int `json:"parts" jsonschema:"minimum=1,maximum=1000"`
}

// Analysis describes an analysis that was made.
type Analysis struct {
	// Job is the key of the job in the batch system.
	Job string `json:"job"`
	// Parts is the number of parts that were analyzed.
	Parts int `json:"parts"`
	// Run is the number of times that the work was started. It is 1 unless a server had to start it again.
	Run int `json:"run"`
}
