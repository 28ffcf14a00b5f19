package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/observe/lab"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// photoLab implements the declared tools. It waits instead of working.
type photoLab struct{}

// DevelopFilm implements lab.Lab.
func (photoLab) DevelopFilm(ctx context.Context, task *mcptask.Task, in lab.DevelopInput) (lab.Film, error) {
	for frame := range in.Frames {
		task.Progress(ctx, float64(frame), float64(in.Frames), fmt.Sprintf("frame %d", frame+1))
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return lab.Film{}, err
		}
	}
	return lab.Film{Film: in.Film, Run: task.Attempt()}, nil
}

// PrintPhoto implements lab.Lab. A run after a crash gets the answer that the first one got, and the photo if it was
// exposed.
func (photoLab) PrintPhoto(ctx context.Context, task *mcptask.Task, in lab.PrintInput) (lab.Print, error) {
	paper, err := lab.AskPaper(ctx, task, "paper", fmt.Sprintf("Which paper for %s?", in.Photo))
	if err != nil {
		return lab.Print{}, err
	}
	return mcptask.Step(ctx, task, "expose", func(ctx context.Context) (lab.Print, error) {
		return lab.Print{Photo: in.Photo, Glossy: paper.Glossy, Run: task.Attempt()}, pause(ctx, 200*time.Millisecond)
	})
}

// ScanNegative implements lab.Lab.
func (photoLab) ScanNegative(ctx context.Context, _ *mcptask.Task, in lab.ScanInput) (lab.Scan, error) {
	if err := pause(ctx, 200*time.Millisecond); err != nil {
		return lab.Scan{}, err
	}
	if in.IsScratched {
		return lab.Scan{}, errors.New("the negative has a scratch: send another one")
	}
	return lab.Scan{Negative: in.Negative, Width: 6000}, nil
}

// pause waits, or returns why ctx has ended.
func pause(ctx context.Context, duration time.Duration) error {
	select {
	case <-time.After(duration):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
