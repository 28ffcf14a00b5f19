package gosdk_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// eachProposedWay runs a test with the pipeline's server over HTTP and over pipes. The server speaks the proposal
// SEP-1686 alone or beside the released revisions.
func eachProposedWay(t *testing.T, test func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn)) {
	t.Helper()
	tools := pipeline.CITools(wiretest.CI{})
	tools.Capabilities = mcptask.Declared() // as if it were generated for all of them
	for name, options := range map[string]taskserver.Options{"alone": {Revisions: []string{mcptask.RevisionSEP1686}}, "beside": wiretest.WithProposal()} {
		options.Limits = wiretest.NoPollLimits
		options.Principal = func(context.Context) (string, error) { return "ann", nil }
		t.Run(name, func(t *testing.T) { eachServedWay(t, mcptask.RevisionSEP1686, options, tools, test) })
	}
}

// TestProposalWithGeneratedClient: the generated client of the proposal with the
// generated server.
func TestProposalWithGeneratedClient(t *testing.T) {
	rules.Covers(t, "A-02", "A-07", "A-13", "A-36", "A-38")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		var asked atomic.Int32
		ci := pipeline.NewCIClient(connect(gosdk.ClientOptions{Answer: pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			if q.TaskID == "" {
				t.Errorf("a question of no task: %+v", q)
			}
			return pipeline.Approval{Approve: true}, nil
		})}))
		token := checkPipeline(t, ci, true)
		other := pipeline.NewCIClient(connect(gosdk.ClientOptions{})) // as another process does
		for range 2 {
			checkResumed(t, other, token)
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times", asked.Load())
		}
		wiretest.RunTogether(20, func(n int) {
			steps := make([]string, n%3)
			if report, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository, Steps: steps}); err != nil || len(report.Steps) != len(steps) {
				t.Errorf("%d: %+v, %v", n, report, err)
			}
		})
	})
}

// TestProposalCancelledByClient: the caller of a task can cancel it, by Cancel or by leaving. No other client can.
func TestProposalCancelledByClient(t *testing.T) {
	rules.Covers(t, "A-40", "A-45", "A-47")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		ci, other := pipeline.NewCIClient(connect(gosdk.ClientOptions{})), pipeline.NewCIClient(connect(gosdk.ClientOptions{}))
		call := startRun(t, ci, "endless")
		token, _ := call.Token()
		taken, err := other.ResumeRunPipeline(token)
		if err != nil {
			t.Fatal(err)
		}
		if err := taken.Cancel(ctx); err == nil {
			t.Error("cancelled without the call")
		}
		cancel(t, call)
		for _, c := range []*mcptask.Call[pipeline.RunReport]{call, taken} {
			wantEnd(t, c, mcptask.ErrCancelled)
		}
	})
}

// TestProposalKeys: calls with one key share a task, in any process; with other
// arguments the key is refused.
func TestProposalKeys(t *testing.T) {
	rules.Covers(t, "A-07")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		in, key := pipeline.RunInput{Repository: repository, Steps: []string{"a"}}, mcptask.IdempotencyKey("0123456789abcdef")
		var tokens []string
		for range 2 {
			ci := pipeline.NewCIClient(connect(gosdk.ClientOptions{}))
			for range 2 {
				call, err := ci.StartRunPipeline(ctx, in, key)
				if err != nil {
					t.Fatal(err)
				}
				if report, err := call.Wait(ctx); err != nil || len(report.Steps) != 1 {
					t.Errorf("%+v, %v", report, err)
				}
				token, _ := call.Token()
				tokens = append(tokens, string(token))
			}
			_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository}, key)
			if !isError(wiretest.InvalidParams)(err) {
				t.Error(err)
			}
		}
		if fmt.Sprint(tokens) != fmt.Sprint([]string{tokens[0], tokens[0], tokens[0], tokens[0]}) {
			t.Errorf("the tokens %s", tokens)
		}
	})
}

// TestProposalDeleted: the server deletes a task that was read if the client asks for that.
func TestProposalDeleted(t *testing.T) {
	rules.Covers(t, "A-54", "A-56")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		ci, other := pipeline.NewCIClient(connect(gosdk.ClientOptions{DeleteTasks: true})), pipeline.NewCIClient(connect(gosdk.ClientOptions{}))
		call := startRun(t, ci, "", "a")
		token, _ := call.Token()
		if _, err := call.Wait(ctx); err != nil {
			t.Error(err)
		}
		again, err := other.ResumeRunPipeline(token)
		if err != nil {
			t.Fatal(err)
		}
		wantEnd(t, again, mcptask.ErrNotFound)
	})
}

// TestProposalCommand: a server that is a process of its own.
func TestProposalCommand(t *testing.T) {
	rules.Covers(t, "A-07", "A-39", "A-40")
	t.Parallel()
	ctx := within(t, wiretest.Patience)
	cmd := wiretest.StdioServer(t)
	cmd.Env = append(cmd.Env, wiretest.EnvRevision+"="+mcptask.RevisionSEP1686)
	conn, err := gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{
		Revision: mcptask.RevisionSEP1686,
		Answer: pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
			return pipeline.Approval{Approve: q.TaskID != ""}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	checkPipeline(t, pipeline.NewCIClient(conn), true)
}

// TestProposalGoroutines: calls that have ended, were cancelled or were abandoned leave no goroutine and no connection.
func TestProposalGoroutines(t *testing.T) {
	check := wiretest.Goroutines(t)
	t.Run("calls", inBubble(func(t *testing.T) {
		url, _ := wiretest.Serve(t, wiretest.WithProposal())
		ctx := within(t, wiretest.Patience)
		conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: mcptask.RevisionSEP1686})
		if err != nil {
			t.Fatal(err)
		}
		ci := pipeline.NewCIClient(conn)
		if _, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository}); err != nil {
			t.Error(err)
		}
		for range 5 {
			_ = startRun(t, ci, "endless") // no caller waits for it
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}))
	check()
}
