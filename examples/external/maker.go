package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/external/reports"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// maker implements the declared tools.
type maker struct {
	program string // this one
	dir     string // of the reports
	pace    time.Duration
	batch   batchClient
}

// ExportReport implements reports.Reports. A child process writes the report under a name that belongs to this run. Only a
// run that still has the task gives the file its name.
func (m maker) ExportReport(ctx context.Context, task *mcptask.Task, in reports.ExportInput) (reports.Export, error) {
	file := filepath.Join(m.dir, in.Name+".csv")
	key := mcptask.StepKey(task, "export") // the same in every run
	unfinished := func(run int) string { return fmt.Sprintf("%s.%s.%d", file, key, run) }
	for run := 1; run < task.Attempt(); run++ {
		// A former run that still lives cannot give its file the name any more.
		if err := os.Remove(unfinished(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return reports.Export{}, err
		}
	}
	mine := unfinished(task.Attempt())
	progress := func(line string) {
		if row, err := strconv.Atoi(line); err == nil {
			task.Progress(ctx, float64(row), float64(in.Rows), "rows written")
		}
	}
	err := runChild(ctx, progress, m.program, "-export", mine, "-rows", strconv.Itoa(in.Rows), "-pace", m.pace.String())
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = os.Rename(mine, file)
	}
	if err != nil {
		_ = os.Remove(mine) // there may be none
		return reports.Export{}, fmt.Errorf("%s was not exported: %w", in.Name, err)
	}
	return reports.Export{File: file, Run: task.Attempt()}, nil
}

// AnalyzeReport implements reports.Reports. The job outlives the server. A later run finds it by its key.
func (m maker) AnalyzeReport(ctx context.Context, task *mcptask.Task, in reports.AnalyzeInput) (reports.Analysis, error) {
	key := mcptask.StepKey(task, "analyze") // the same in every run
	spec := jobSpec{Parts: in.Parts}
	spec.Until, _ = ctx.Deadline() // the ttl's end: no server may be there to cancel the job
	found, err := m.batch.submit(ctx, key, spec)
	if err == nil {
		err = task.WithoutSlot(ctx, func(ctx context.Context) error {
			found, err = m.batch.follow(ctx, key, func(j job) {
				task.Progress(ctx, float64(j.Done), float64(j.Parts), "parts analyzed")
			})
			return err
		})
	}
	if err != nil && !task.Interrupted(ctx) { // the task is over, so the job is too
		cancelling, end := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer end()
		err = errors.Join(err, m.batch.cancel(cancelling, key))
	}
	if err == nil && found.State != jobDone {
		err = fmt.Errorf("job %s %s: %s", key, found.State, found.Error)
	}
	return reports.Analysis{Job: key, Parts: found.Done, Run: task.Attempt()}, err
}
