package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcptaskgen/mcptaskgen/examples/observe/lab"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// customers is how many customers there are in each revision. Each has one order at a time.
const customers = 5

// order is one order of a customer. It returns an error if it does not end as it should.
type order func(ctx context.Context, client *lab.LabClient) error

// orders are the orders of a customer, one after another.
var orders = []order{develop, printPhoto, scan, scan, printPhoto, changeMind, scanScratched, writeTooMuch}

// runLoad lets customers place orders over HTTP until outer ends or an order fails. Their client has the hooks of the
// server, so that a trace begins with its customer.
func (p *program) runLoad(outer context.Context, url string, orders []order) error {
	ctx, leave := context.WithCancelCause(outer)
	defer leave(nil)
	tracer := p.telemetry.tracers.Tracer("customers")
	var shopping sync.WaitGroup
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{
			Revision: revision, Hooks: []taskserver.Hooks{p.hooks}, Answer: lab.AnswerPaper(choosePaper),
			// In 2025-11-25 questions are tasks of the client. A customer who leaves needs no warning that they are
			// lost.
			Tasks: taskserver.Options{Logger: slog.New(slog.DiscardHandler)},
		})
		if err != nil {
			leave(fmt.Errorf("connect in %s: %w", revision, err))
			break
		}
		defer conn.Close()
		client := lab.NewLabClient(conn)
		for first := range customers {
			shopping.Go(func() {
				for n := first; ctx.Err() == nil; n++ {
					if err := place(ctx, tracer, client, orders[n%len(orders)]); err != nil {
						leave(fmt.Errorf("%s: %w", revision, err))
					}
				}
			})
		}
	}
	shopping.Wait()
	cause := context.Cause(ctx)
	if outer.Err() != nil && errors.Is(cause, context.Canceled) {
		return nil
	}
	return cause
}

// place places an order in a span of its own.
func place(ctx context.Context, tracer trace.Tracer, client *lab.LabClient, o order) error {
	ctx, span := tracer.Start(ctx, "customer")
	defer span.End()
	err := o(ctx, client)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}

// choosePaper answers the lab's questions, after a while.
func choosePaper(ctx context.Context, _ mcptask.Question) (lab.Paper, error) {
	if err := pause(ctx, rand.N(time.Second)); err != nil {
		return lab.Paper{}, err
	}
	return lab.Paper{Glossy: rand.N(2) == 0}, nil
}

func develop(ctx context.Context, client *lab.LabClient) error {
	_, err := client.DevelopFilm(ctx, lab.DevelopInput{Film: "holidays", Frames: 1 + rand.N(12)})
	return err
}

func printPhoto(ctx context.Context, client *lab.LabClient) error {
	_, err := client.PrintPhoto(ctx, lab.PrintInput{Photo: "sunset"})
	return err
}

func scan(ctx context.Context, client *lab.LabClient) error {
	_, err := client.ScanNegative(ctx, lab.ScanInput{Negative: "portrait"})
	return err
}

// scanScratched orders a scan that fails.
func scanScratched(ctx context.Context, client *lab.LabClient) error {
	_, err := client.ScanNegative(ctx, lab.ScanInput{Negative: "portrait", IsScratched: true})
	var failure *mcptask.ToolError
	if errors.As(err, &failure) {
		return nil
	}
	return fmt.Errorf("the scan of a scratched negative ended with %v", err)
}

// changeMind cancels an order.
func changeMind(ctx context.Context, client *lab.LabClient) error {
	call, err := client.StartDevelopFilm(ctx, lab.DevelopInput{Film: "wedding", Frames: 1000})
	if err != nil {
		return err
	}
	if err := call.Cancel(ctx); err != nil {
		return err
	}
	if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
		return fmt.Errorf("a cancelled order ended with %v", err)
	}
	return nil
}

// writeTooMuch sends arguments that a limit refuses.
func writeTooMuch(ctx context.Context, client *lab.LabClient) error {
	_, err := client.DevelopFilm(ctx, lab.DevelopInput{Film: strings.Repeat("x", maxArguments), Frames: 1})
	var refusal *mcptask.Error
	if errors.As(err, &refusal) && refusal.Limit() == "arguments" {
		return nil
	}
	return fmt.Errorf("too many arguments ended with %v", err)
}
