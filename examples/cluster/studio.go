package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/cluster/films"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// atReplica is the format of progress messages. The demonstration reads them.
const atReplica = "on replica %d"

// studio implements the declared tools on one replica. It waits instead of working.
type studio struct {
	replica int
}

// RenderFilm implements films.Studio.
func (s studio) RenderFilm(ctx context.Context, task *mcptask.Task, in films.RenderInput) (films.FilmReport, error) {
	return s.work(ctx, task, in.Film, in.Frames)
}

// PublishFilm implements films.Studio. A run after a crash gets the answer that the first one got.
func (s studio) PublishFilm(ctx context.Context, task *mcptask.Task, in films.PublishInput) (films.FilmReport, error) {
	consent, err := films.AskConsent(ctx, task, "consent", fmt.Sprintf("Publish %s?", in.Film))
	if err != nil {
		return films.FilmReport{}, err
	}
	if !consent.Agree {
		return films.FilmReport{}, errors.New("the film was not published: the person refused")
	}
	return s.work(ctx, task, in.Film, in.Copies)
}

// work does a number of steps. Each reports which replica is at work.
func (s studio) work(ctx context.Context, task *mcptask.Task, film string, steps int) (films.FilmReport, error) {
	for step := range steps {
		task.Progress(ctx, float64(step), float64(steps), fmt.Sprintf(atReplica, s.replica))
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return films.FilmReport{}, context.Cause(ctx)
		}
	}
	return films.FilmReport{Film: film, Replica: s.replica, Run: task.Attempt()}, nil
}
