package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/hosts/bakery"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// baker implements the declared tools.
type baker struct {
	// takes is how long baking takes if the call gives no time.
	takes time.Duration
	log   *slog.Logger
}

// Price implements bakery.Bakery.
func (baker) Price(_ context.Context, in bakery.PriceInput) (bakery.PriceTag, error) {
	return bakery.PriceTag{Cents: price(in.Bread)}, nil
}

// price is the price of a loaf in cents.
func price(bread string) int { return 100 * len(bread) }

// Bake implements bakery.Bakery. It takes ten steps, and reports them as progress.
func (b baker) Bake(ctx context.Context, task *mcptask.Task, in bakery.BakeInput) (bakery.Baked, error) {
	const steps = 10
	takes := b.takes
	if in.Seconds > 0 {
		takes = time.Duration(in.Seconds * float64(time.Second))
	}
	step := time.NewTicker(max(takes/steps, time.Millisecond))
	defer step.Stop()
	b.log.Info("baking", "loaves", in.Loaves)
	for done := range steps {
		if !in.Quiet {
			task.Progress(ctx, float64(done), steps, "baking")
		}
		select {
		case <-step.C:
		case <-ctx.Done():
			b.log.Info("stopped baking", "loaves", in.Loaves, "cause", context.Cause(ctx))
			return bakery.Baked{}, context.Cause(ctx)
		}
	}
	b.log.Info("baked", "loaves", in.Loaves)
	return bakery.Baked{Report: fmt.Sprintf("%d loaves are baked", in.Loaves)}, nil
}

// Order implements bakery.Bakery.
func (baker) Order(ctx context.Context, task *mcptask.Task, in bakery.OrderInput) (bakery.Ordered, error) {
	answer, err := bakery.AskAgreement(ctx, task, "price",
		fmt.Sprintf("%d loaves of %s cost %d cents. Do you agree?", in.Loaves, in.Bread, in.Loaves*price(in.Bread)))
	switch {
	case errors.Is(err, mcptask.ErrDeclined), err == nil && !answer.Agreed:
		return bakery.Ordered{}, errors.New("nothing was ordered: the person refused")
	case err != nil:
		return bakery.Ordered{}, err
	}
	return bakery.Ordered{Confirmation: fmt.Sprintf("%d loaves of %s are ordered", in.Loaves, in.Bread)}, nil
}

// Advertise implements bakery.Bakery.
func (baker) Advertise(ctx context.Context, task *mcptask.Task, in bakery.AdvertiseInput) (bakery.Advertisement, error) {
	sampled, err := task.Sample(ctx, "line", mcptask.SampleRequest{
		Messages:  []mcptask.SampleMessage{{Role: "user", Content: []mcptask.Content{mcptask.TextContent("Praise " + in.Bread + " in one line.")}}},
		MaxTokens: 100,
	})
	if err != nil {
		return bakery.Advertisement{}, err
	}
	return bakery.Advertisement{Line: sampled.Content.Text()}, nil
}
