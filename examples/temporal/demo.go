package main

import (
	"context"
	"fmt"
	"io"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/ci"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

const (
	// layers is how many layers the image has, of a tenth of a second each.
	layers = 40
	// killAt is the layer at which the worker is killed.
	killAt = 10
)

// demo is a client that calls both tools.
type demo struct {
	out     io.Writer
	url     string
	workers []*process
}

// run calls one tool after the other.
func (d demo) run(ctx context.Context) error {
	conn, err := gosdk.Connect(ctx, d.url, gosdk.ClientOptions{
		Answer: ci.AnswerApproval(func(_ context.Context, q mcptask.Question) (ci.Approval, error) {
			fmt.Fprintf(d.out, "run_pipeline asks: %s The client says yes\n", q.Message)
			return ci.Approval{Approve: true}, nil
		}),
	})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", d.url, err)
	}
	defer conn.Close()
	client := ci.NewCIClient(conn)
	if err := d.buildImage(ctx, client); err != nil {
		return fmt.Errorf("build_image: %w", err)
	}
	if err := d.runPipeline(ctx, client); err != nil {
		return fmt.Errorf("run_pipeline: %w", err)
	}
	return nil
}

// buildImage calls the handler, and kills the worker that runs it.
func (d demo) buildImage(ctx context.Context, client *ci.CIClient) error {
	call, err := client.StartBuildImage(ctx, ci.BuildInput{Version: "v1.2.0", Layers: layers})
	if err != nil {
		return err
	}
	task, at := "", "" // at is the worker of the newest report
	killed := false
	for s, err := range call.Updates(ctx) {
		if err != nil {
			return err
		}
		if task == "" {
			task = s.TaskID
			fmt.Fprintf(d.out, "build_image is the task and the workflow %s\n", task)
		}
		var worker string
		if _, err := fmt.Sscanf(s.Message, onWorker, &worker); err != nil {
			continue
		}
		if worker != at {
			at = worker
			fmt.Fprintf(d.out, "build_image runs on %s\n", worker)
		}
		if !killed && s.Progress.Done >= killAt {
			killed = true
			if err := d.killWorker(worker); err != nil {
				return err
			}
			fmt.Fprintf(d.out, "killed %s at layer %.0f of %d; Temporal gives it up %v after its last heartbeat\n", worker, s.Progress.Done, layers, heartbeat)
		}
	}
	report, err := call.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "build_image completed on %s in run %d\n", report.Worker, report.Run)
	return nil
}

// killWorker kills the worker of this name.
func (d demo) killWorker(name string) error {
	for _, w := range d.workers {
		if w.name == name {
			return w.kill()
		}
	}
	return fmt.Errorf("the task runs on %q, which is not a worker", name)
}

// runPipeline calls the workflow.
func (d demo) runPipeline(ctx context.Context, client *ci.CIClient) error {
	call, err := client.StartRunPipeline(ctx, ci.PipelineInput{Version: "v1.2.0"})
	if err != nil {
		return err
	}
	task, message := "", ""
	for s, err := range call.Updates(ctx) {
		if err != nil {
			return err
		}
		if task == "" {
			task = s.TaskID
			fmt.Fprintf(d.out, "run_pipeline is the task %s, and runs the workflow %[1]s/RunPipeline\n", task)
		}
		if s.Status == mcptask.StatusWorking && s.Message != "" && s.Message != message {
			message = s.Message
			fmt.Fprintf(d.out, "run_pipeline reports: %s\n", message)
		}
	}
	report, err := call.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "run_pipeline completed: %v\n", report.Stages)
	return nil
}
