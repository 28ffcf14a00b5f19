package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// demo shows the generated client in one revision. It stops at the first unexpected result.
type demo struct {
	out io.Writer
	ci  *pipeline.CIClient
}

// runDemo connects to a server and runs all parts of the demo.
func runDemo(ctx context.Context, out io.Writer, url, revision string) error {
	conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision, Answer: answerApproval(out)})
	if err != nil {
		return err
	}
	defer conn.Close()
	return showCalls(ctx, out, conn)
}

// answerApproval answers like a person who approves everything except billing.
func answerApproval(out io.Writer) mcptask.Answerer {
	return pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
		if strings.Contains(q.Message, "billing") {
			printEvent(out, "question", "%s  no", q.Message)
			return pipeline.Approval{}, mcptask.ErrDeclined
		}
		printEvent(out, "question", "%s  yes", q.Message)
		return pipeline.Approval{Approve: true}, nil
	})
}

// showCalls goes through the calls on one connection.
func showCalls(ctx context.Context, out io.Writer, conn mcptask.Conn) error {
	fmt.Fprintf(out, "\n%s\n", conn.Revision())
	d := demo{out, pipeline.NewCIClient(conn)}
	for _, part := range []func(context.Context) error{
		d.showResult, d.showResume, d.showCancel, d.showToolError, d.showProtocolError, d.showPlainTool, d.showGrace, d.showApproval, d.showRefusal,
	} {
		if err := part(ctx); err != nil {
			return fmt.Errorf("%s: %w", conn.Revision(), err)
		}
	}
	return nil
}

// printEvent prints one event.
func printEvent(out io.Writer, event, format string, args ...any) {
	fmt.Fprintf(out, "    %-9s %s\n", event, fmt.Sprintf(format, args...))
}

func (d demo) printTitle(text string) { fmt.Fprintf(d.out, "\n  %s\n", text) }

// startPipeline starts a pipeline and prints the task.
func (d demo) startPipeline(ctx context.Context, branch string) (*mcptask.Call[pipeline.RunReport], error) {
	call, err := d.ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: branch})
	if err != nil {
		return nil, err
	}
	if _, ok := call.Token(); !ok {
		return nil, errors.New("run_pipeline did not become a task")
	}
	return call, nil
}

// followTask prints the progress of a task until it ends, and returns its last state.
func (d demo) followTask(ctx context.Context, call *mcptask.Call[pipeline.RunReport]) (mcptask.Snapshot, error) {
	return d.followTaskAnd(ctx, call, func(context.Context) error { return nil })
}

// followTaskAnd is followTask with an action that runs on the first progress.
func (d demo) followTaskAnd(ctx context.Context, call *mcptask.Call[pipeline.RunReport], do func(context.Context) error) (last mcptask.Snapshot, err error) {
	for s, err := range call.Updates(ctx) {
		switch {
		case err != nil:
			return s, err
		case last.TaskID == "":
			printEvent(d.out, "created", "%s  task %.8s…, kept for %.0f h, polled every %v", s.Status, s.TaskID, s.TTL.Hours(), s.Poll)
		case !s.Done():
			printEvent(d.out, "progress", "%s  %s", s.Status, s.Message)
			if err := do(ctx); err != nil {
				return s, err
			}
		}
		last = s
	}
	return last, nil
}

func (d demo) showResult(ctx context.Context) error {
	d.printTitle("a pipeline that passes")
	call, err := d.startPipeline(ctx, "main")
	if err != nil {
		return err
	}
	last, err := d.followTask(ctx, call)
	if err != nil {
		return err
	}
	report, err := call.Wait(ctx)
	if err != nil {
		return err
	}
	printEvent(d.out, "result", "%s  %d stages in %.1f s", last.Status, len(report.Stages), report.Seconds)
	return nil
}

func (d demo) showResume(ctx context.Context) error {
	d.printTitle("a call that is resumed by its token")
	call, err := d.startPipeline(ctx, "main")
	if err != nil {
		return err
	}
	token, _ := call.Token()
	printEvent(d.out, "token", "%.24s…", token)
	again, err := d.ci.ResumeRunPipeline(token)
	if err != nil {
		return err
	}
	report, err := again.Wait(ctx)
	if err != nil {
		return err
	}
	printEvent(d.out, "result", "%s  %d stages", pipeline.TaskStatusCompleted, len(report.Stages))
	return nil
}

func (d demo) showCancel(ctx context.Context) error {
	d.printTitle("a slow pipeline that is cancelled")
	call, err := d.startPipeline(ctx, "slow")
	if err != nil {
		return err
	}
	begin := time.Now()
	last, err := d.followTaskAnd(ctx, call, call.Cancel)
	if err != nil {
		return err
	}
	if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
		return fmt.Errorf("the cancelled pipeline ended with %v", err)
	}
	printEvent(d.out, "result", "%s  after %v instead of minutes", last.Status, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

func (d demo) showToolError(ctx context.Context) error {
	d.printTitle("a tool error: the branch does not build")
	call, err := d.startPipeline(ctx, "broken")
	if err != nil {
		return err
	}
	last, err := d.followTask(ctx, call)
	if err != nil {
		return err
	}
	_, err = call.Wait(ctx)
	var toolErr *mcptask.ToolError
	if !errors.As(err, &toolErr) {
		return fmt.Errorf("the broken branch ended with %v", err)
	}
	printEvent(d.out, "result", "%s  isError: %s", last.Status, toolErr.Result.Text())
	return nil
}

func (d demo) showProtocolError(ctx context.Context) error {
	d.printTitle("a protocol error: the repository is locked")
	call, err := d.startPipeline(ctx, "locked")
	if err != nil {
		return err
	}
	last, err := d.followTask(ctx, call)
	if err != nil {
		return err
	}
	_, err = call.Wait(ctx)
	var wire *mcptask.Error
	if !errors.As(err, &wire) || wire.Code != codeLocked {
		return fmt.Errorf("the locked repository ended with %v", err)
	}
	printEvent(d.out, "result", "%s  %v", last.Status, wire)
	return nil
}

func (d demo) showPlainTool(ctx context.Context) error {
	d.printTitle("lint_file is never a task")
	report, err := d.ci.LintFile(ctx, pipeline.LintInput{Path: "README.md"})
	if err != nil {
		return err
	}
	printEvent(d.out, "result", "%q", report.Findings)
	return nil
}

func (d demo) showGrace(ctx context.Context) error {
	d.printTitle("deploy_service becomes a task only if it takes longer than its grace")
	call, err := d.ci.StartDeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "staging"})
	if err != nil {
		return err
	}
	report, err := call.Wait(ctx)
	if err != nil {
		return err
	}
	how := "answered at once"
	if _, isTask := call.Token(); isTask {
		how = "as the task that the client asked for"
	}
	printEvent(d.out, "result", "version %s, %s", report.Version, how)
	return nil
}

func (d demo) showApproval(ctx context.Context) error {
	d.printTitle("a deployment to production asks a person first")
	report, err := d.ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"})
	if err != nil {
		return err
	}
	printEvent(d.out, "result", "version %s", report.Version)
	return nil
}

func (d demo) showRefusal(ctx context.Context) error {
	d.printTitle("a deployment that the person refuses")
	_, err := d.ci.DeployService(ctx, pipeline.DeployInput{Service: "billing", Environment: "production"})
	var toolErr *mcptask.ToolError
	if !errors.As(err, &toolErr) {
		return fmt.Errorf("the refused deployment ended with %v", err)
	}
	printEvent(d.out, "result", "isError: %s", toolErr.Result.Text())
	return nil
}
