package handlers

import (
	"context"
	"time"

	"example.com/app/ci"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type fake struct{}

func (fake) Run(_ context.Context, _ *mcptask.Task, _ ci.Input) error {
	time.Sleep(time.Second)
	return nil
}

func (fake) Lint(context.Context, ci.Input) error { return nil }
