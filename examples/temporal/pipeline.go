package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/ci"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/taskflow"
)

// pipelineQueue is the task queue of the workers that have RunPipeline.
const pipelineQueue = "pipelines"

// RunPipeline is the workflow that is the tool run_pipeline. The person's answer decides whether it ships.
func RunPipeline(ctx workflow.Context, in ci.PipelineInput) (ci.PipelineReport, error) {
	task := taskflow.New(ctx)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	report := ci.PipelineReport{Stages: []string{}}
	stages := []string{"build", "test", "ship"}
	for i, stage := range stages {
		if stage == "ship" {
			approval, err := taskflow.Ask[ci.Approval](ctx, task, ci.ApprovalInput(), "ship", fmt.Sprintf("Ship %s to production?", in.Version))
			if err != nil {
				return report, err
			}
			if !approval.Approve {
				return report, errors.New("not shipped: the person refused")
			}
		}
		task.Progress(float64(i), float64(len(stages)), stage)
		if err := workflow.ExecuteActivity(ctx, RunStage, in.Version, stage).Get(ctx, nil); err != nil {
			return report, err
		}
		report.Stages = append(report.Stages, stage)
	}
	return report, nil
}

// RunStage is the activity that runs one stage of a pipeline. It waits instead of working.
func RunStage(ctx context.Context, version, stage string) error {
	activity.GetLogger(ctx).Info("running", "version", version, "stage", stage)
	return pause(ctx, time.Second)
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
