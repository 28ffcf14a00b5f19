// Package films declares the tools of a film studio, whose work takes long.
package films

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Studio makes films.
//
//mcptask:service fallback=none task=required poll=200ms onlost=restart
type Studio interface {
	// RenderFilm renders all frames of a film.
	RenderFilm(ctx context.Context, task *mcptask.Task, in RenderInput) (FilmReport, error)

	// PublishFilm publishes copies of a film. It asks a person for consent first.
	PublishFilm(ctx context.Context, task *mcptask.Task, in PublishInput) (FilmReport, error)
}

// Consent is what a person answers before a film is published.
//
//mcptask:input message="Publish it?"
type Consent struct {
	// Agree says whether to publish the film.
	Agree bool `json:"agree" jsonschema:"default=false"`
}

// RenderInput says what to render.
type RenderInput struct {
	// Film is the name of the film.
	Film string `json:"film" jsonschema:"minLength=1"`
	// Frames is the number of frames of the film.
	Frames int `json:"frames" jsonschema:"minimum=1"`
}

// PublishInput says what to publish.
type PublishInput struct {
	// Film is the name of the film.
	Film string `json:"film" jsonschema:"minLength=1"`
	// Copies is the number of copies to make.
	Copies int `json:"copies" jsonschema:"minimum=1"`
}

// FilmReport says what has become of a film.
type FilmReport struct {
	// Film is the name of the film.
	Film string `json:"film"`
	// Replica is the number of the server that finished the work.
	Replica int `json:"replica"`
	// Run is the number of times that the work was started. It is 1 unless a server had to start it again.
	Run int `json:"run"`
}
