// Package lab declares the tools of a photo lab, whose work takes a while.
package lab

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Lab is a photo lab.
//
//mcptask:service fallback=none task=required poll=200ms ttl=10m onlost=restart
type Lab interface {
	// DevelopFilm develops all frames of a film.
	DevelopFilm(ctx context.Context, task *mcptask.Task, in DevelopInput) (Film, error)

	// PrintPhoto prints a photo. It asks a person first which paper to use.
	PrintPhoto(ctx context.Context, task *mcptask.Task, in PrintInput) (Print, error)

	// ScanNegative scans a negative. It fails if the negative is scratched.
	ScanNegative(ctx context.Context, task *mcptask.Task, in ScanInput) (Scan, error)
}

// DevelopInput says what to develop.
type DevelopInput struct {
	// Film is the name of the film, such as holidays-3.
	Film string `json:"film" jsonschema:"minLength=1"`
	// Frames is the number of frames on the film.
	Frames int `json:"frames" jsonschema:"minimum=1"`
}

// Film is a film that was developed.
type Film struct {
	// Film is the name of the film.
	Film string `json:"film"`
	// Run is the number of times that the work was started. It is 1 unless a server had to start it again.
	Run int `json:"run"`
}

// PrintInput says what to print.
type PrintInput struct {
	// Photo is the name of the photo.
	Photo string `json:"photo" jsonschema:"minLength=1"`
}

// Paper is what a person answers before a photo is printed.
//
//mcptask:input message="Which paper?"
type Paper struct {
	// Glossy says whether to use glossy paper instead of matte paper.
	Glossy bool `json:"glossy" jsonschema:"default=false"`
}

// Print is a photo on paper.
type Print struct {
	// Photo is the name of the photo.
	Photo string `json:"photo"`
	// Glossy says whether the paper is glossy.
	Glossy bool `json:"glossy"`
	// Run is the number of times that the work was started. It is 1 unless a server had to start it again.
	Run int `json:"run"`
}

// ScanInput says what to scan.
type ScanInput struct {
	// Negative is the name of the negative.
	Negative string `json:"negative" jsonschema:"minLength=1"`
	// IsScratched says whether the negative has a scratch.
	IsScratched bool `json:"is_scratched,omitempty"`
}

// Scan is the picture of a negative.
type Scan struct {
	// Negative is the name of the negative.
	Negative string `json:"negative"`
	// Width is the width of the picture in pixels.
	Width int `json:"width" jsonschema:"minimum=1"`
}
