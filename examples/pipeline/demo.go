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

// startPipeline starts a pipeline, which is always a task, and returns its token.
func (d demo) startPipeline(ctx context.Context, branch string) (*mcptask.Call[pipeline.RunReport], mcptask.Token, error) {
	call, err := d.ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: branch})
	if err != nil {
		return nil, "", err
	}
	token, ok := call.Token()
	if !ok {
		return nil, "", errors.New("run_pipeline did not become a task")
	}
	return call, token, nil
}

// outcome is how a pipeline ended.
type outcome struct {
	status mcptask.Status
	report pipeline.RunReport
	err    error // of the tool
}

// runPipeline starts a pipeline, prints its progress and returns how it ended. It calls react on each progress.
func (d demo) runPipeline(ctx context.Context, branch string, react func(*mcptask.Call[pipeline.RunReport]) error) (outcome, error) {
	call, _, err := d.startPipeline(ctx, branch)
	if err != nil {
		return outcome{}, err
	}
	var last mcptask.Snapshot
	for s, err := range call.Updates(ctx) {
		switch {
		case err != nil:
			return outcome{}, err
		case last.TaskID == "":
			printEvent(d.out, "created", "%s  task %.8s…, kept for %.0f h, polled every %v", s.Status, s.TaskID, s.TTL.Hours(), s.Poll)
		case !s.Done():
			printEvent(d.out, "progress", "%s  %s", s.Status, s.Message)
			if err := react(call); err != nil {
				return outcome{}, err
			}
		}
		last = s
	}
	report, err := call.Wait(ctx)
	return outcome{last.Status, report, err}, nil
}

// watch does nothing on a progress.
func watch(*mcptask.Call[pipeline.RunReport]) error { return nil }

func (d demo) showResult(ctx context.Context) error {
	d.printTitle("a pipeline that passes")
	end, err := d.runPipeline(ctx, "main", watch)
	if err := errors.Join(err, end.err); err != nil {
		return err
	}
	printEvent(d.out, "result", "%s  %d stages in %.1f s", end.status, len(end.report.Stages), end.report.Seconds)
	return nil
}

func (d demo) showResume(ctx context.Context) error {
	d.printTitle("a call that is resumed by its token")
	_, token, err := d.startPipeline(ctx, "main")
	if err != nil {
		return err
	}
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
	begin := time.Now()
	cancel := func(call *mcptask.Call[pipeline.RunReport]) error { return call.Cancel(ctx) }
	end, err := d.runPipeline(ctx, "slow", cancel)
	if err != nil {
		return err
	}
	if !errors.Is(end.err, mcptask.ErrCancelled) {
		return fmt.Errorf("the cancelled pipeline ended with %v", end.err)
	}
	printEvent(d.out, "result", "%s  after %v instead of minutes", end.status, time.Since(begin).Round(100*time.Millisecond))
	return nil
}

func (d demo) showToolError(ctx context.Context) error {
	d.printTitle("a tool error: the branch does not build")
	end, err := d.runPipeline(ctx, "broken", watch)
	if err != nil {
		return err
	}
	var toolErr *mcptask.ToolError
	if !errors.As(end.err, &toolErr) {
		return fmt.Errorf("the broken branch ended with %v", end.err)
	}
	printEvent(d.out, "result", "%s  isError: %s", end.status, toolErr.Result.Text())
	return nil
}

func (d demo) showProtocolError(ctx context.Context) error {
	d.printTitle("a protocol error: the repository is locked")
	end, err := d.runPipeline(ctx, "locked", watch)
	if err != nil {
		return err
	}
	var wire *mcptask.Error
	if !errors.As(end.err, &wire) || wire.Code != codeLocked {
		return fmt.Errorf("the locked repository ended with %v", end.err)
	}
	printEvent(d.out, "result", "%s  %v", end.status, wire)
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
