// Package caller only calls: it is the client program that the documentation
// shows, and links the generated client without an implementation of the tools.
package caller

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// Run connects to a server in one revision and calls its tools.
func Run(ctx context.Context, out io.Writer, url, revision string, askThePerson func(context.Context, mcptask.Question) (pipeline.Approval, error)) error {
	conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision, Answer: pipeline.AnswerApproval(askThePerson)})
	if err != nil {
		return err
	}
	defer conn.Close()
	return Call(ctx, out, conn)
}

// Call calls the tools of a server in every way that the client has.
func Call(ctx context.Context, out io.Writer, conn mcptask.Conn) error {
	ci := pipeline.NewCIClient(conn)
	in := pipeline.RunInput{Repository: "https://example.com/shop", Branch: "main", Steps: []string{"build"}}

	report, err := ci.RunPipeline(ctx, in) // as if it were a Go function
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "run:", report.Passed, len(report.Steps))

	key := "nightly-2026-11-20-" + conn.Revision() // the same key again is the same task
	call, err := ci.StartRunPipeline(ctx, in, mcptask.IdempotencyKey(key))
	if err != nil {
		return err
	}
	token, ok := call.Token()
	if !ok {
		return errors.New("a required tool gave no task")
	}
	same, err := ci.StartRunPipeline(ctx, in, mcptask.IdempotencyKey(key))
	if err != nil {
		return err
	}
	again, ok := same.Token() // in 2026-07-28 there is none if the task has ended: the answer is the result
	fmt.Fprintln(out, "same task:", token == again || !ok && conn.Revision() == mcptask.Revision20260728)

	call, err = ci.ResumeRunPipeline(token)
	if err != nil {
		return err
	}
	var last mcptask.Snapshot
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return err
		}
		last = snapshot
	}
	report, err = call.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "resumed:", last.Status, report.Passed)

	var calls []*mcptask.Call[pipeline.RunReport]
	for _, branch := range []string{"main", "broken", "endless"} {
		in.Branch = branch
		call, err := ci.StartRunPipeline(ctx, in)
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	if err := calls[2].Cancel(ctx); err != nil {
		return err
	}
	settled := map[*mcptask.Call[pipeline.RunReport]]error{}
	for call, err := range mcptask.Settled(ctx, calls...) {
		settled[call] = err
	}
	var toolErr *mcptask.ToolError
	fmt.Fprintln(out, "settled:", len(settled), settled[calls[0]] == nil, errors.As(settled[calls[1]], &toolErr), errors.Is(settled[calls[2]], mcptask.ErrCancelled))

	deployed, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "staging"}, mcptask.Plain())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "deployed:", deployed.Version)
	return nil
}
