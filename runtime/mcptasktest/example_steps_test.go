package mcptasktest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// durable runs the steps of a pipeline, each of them once, and then rests.
type durable struct {
	ci
	ran  *[]string // the steps
	rest time.Duration
}

func (d durable) RunPipeline(ctx context.Context, task *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	report := pipeline.RunReport{Passed: true, Steps: []pipeline.Step{}}
	for _, name := range in.Steps {
		step, err := mcptask.Step(ctx, task, name, func(context.Context) (pipeline.Step, error) {
			*d.ran = append(*d.ran, name)
			return pipeline.Step{Name: name, Passed: true}, nil
		})
		if err != nil {
			return report, err
		}
		report.Steps = append(report.Steps, step)
	}
	return report, mcptask.Sleep(ctx, task, "rest", d.rest)
}

func TestEachStepRunsOnce(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			var ran []string
			conn := mcptasktest.Connect(t, revision, mcptasktest.Options{
				Interrupt: mcptasktest.Once(t, mcptasktest.After("build"), mcptasktest.Before("ship")),
			}, pipeline.CITools(durable{ran: &ran, rest: 2 * time.Hour}))
			call, err := pipeline.NewCIClient(conn).StartRunPipeline(t.Context(), pipeline.RunInput{
				Repository: "https://example.com/shop", Steps: []string{"build", "test", "ship"},
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			mcptasktest.Interrupt(t, conn) // in the middle of the sleep
			report, err := call.Wait(t.Context())
			if err != nil || len(report.Steps) != 3 || len(ran) != 3 {
				t.Errorf("%+v, %v; the steps ran: %q", report, err, ran)
			}
		})
	})
}

// A later run of the handler finds what earlier ones have stored.
func ExampleStored() {
	t := new(exampleT) // in a test: its own t
	defer t.end()

	var ran []string
	task := mcptasktest.NewTask(t,
		mcptasktest.Stored("build", pipeline.Step{Name: "build", Passed: true}),
		mcptasktest.Stored("test", pipeline.Step{Name: "test", Passed: true}),
	)
	report, err := durable{ran: &ran}.RunPipeline(t.Context(), task, pipeline.RunInput{Steps: []string{"build", "test", "ship"}})
	fmt.Println("ran:", ran, "of", len(report.Steps), err)
	// Output:
	// ran: [ship] of 3 <nil>
}

// Each step runs once, although the process is killed twice.
func ExampleOnce() {
	t := new(exampleT) // in a test: its own t
	defer t.end()

	var ran []string
	conn := mcptasktest.Connect(t, mcptask.Revision20260728, mcptasktest.Options{
		Interrupt: mcptasktest.Once(t, mcptasktest.After("build"), mcptasktest.Before("ship")),
	}, pipeline.CITools(durable{ran: &ran}))
	report, err := pipeline.NewCIClient(conn).RunPipeline(t.Context(), pipeline.RunInput{
		Repository: "https://example.com/shop", Steps: []string{"build", "test", "ship"},
	})
	fmt.Println("ran:", ran, "of", len(report.Steps), err)
	// Output:
	// ran: [build test ship] of 3 <nil>
}
