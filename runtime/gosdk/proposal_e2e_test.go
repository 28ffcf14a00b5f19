package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// eachProposedWay runs a test with the generated client of the pipeline and its
// server, which speaks the proposal SEP-1686 alone or beside the others, over HTTP
// and over pipes. dial opens a connection, as often as the test likes.
func eachProposedWay(t *testing.T, test func(t *testing.T, dial func(gosdk.ClientOptions) mcptask.Conn)) {
	for name, revisions := range map[string][]string{
		"alone":  {mcptask.RevisionSEP1686},
		"beside": {mcptask.RevisionSEP1686, mcptask.Revision20251125, mcptask.Revision20260728},
	} {
		options := mcptask.Options{Revisions: revisions, Limits: wiretest.NoPollLimits, Principal: func(context.Context) (string, error) { return "ann", nil }}
		keep := func(t *testing.T, conn mcptask.Conn, err error) mcptask.Conn {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if conn.Revision() != mcptask.RevisionSEP1686 {
				t.Fatalf("the connection speaks %s", conn.Revision())
			}
			return conn
		}
		t.Run(name+", HTTP", func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Panics: true})
				test(t, func(o gosdk.ClientOptions) mcptask.Conn {
					o.Revision = mcptask.RevisionSEP1686
					conn, err := gosdk.Connect(t.Context(), url, o)
					return keep(t, conn, err)
				})
			})
		})
		t.Run(name+", pipes", func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				tools := pipeline.CITools(wiretest.CI{})
				tools.Capabilities = mcptask.Declared() // as if it were generated for all of them
				tasks, err := mcptask.NewServer(options, tools)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tasks.Close() })
				test(t, func(o gosdk.ClientOptions) mcptask.Conn {
					o.Revision = mcptask.RevisionSEP1686
					conn, err := gosdk.ConnectOver(t.Context(), pipedTo(t, tasks), o)
					return keep(t, conn, err)
				})
			})
		})
	}
}

// pipedTo starts a session of a server on pipes.
func pipedTo(t *testing.T, tasks *mcptask.Server) mcp.Transport {
	t.Helper()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	serverIn, serverOut := wirecheck.Pipes(t, inRead, outWrite)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sdk.Run(context.WithoutCancel(t.Context()), gosdk.PipeTransport(tasks, serverIn, serverOut)) // the client's end is its own
		_ = outWrite.Close()
	}()
	t.Cleanup(func() {
		_, _ = in.Close(), out.Close()
		<-ended
	})
	return &mcp.IOTransport{Reader: out, Writer: in}
}

const repository = "https://example.com/r"

// TestProposalWithGeneratedClient: the generated client of the proposal with the
// generated server.
func TestProposalWithGeneratedClient(t *testing.T) {
	rules.Covers(t, "A-02", "A-07", "A-13", "A-36", "A-38")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, dial func(gosdk.ClientOptions) mcptask.Conn) {
		ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		var asked atomic.Int32
		ci := pipeline.NewCIClient(dial(gosdk.ClientOptions{Answer: pipeline.AnswerApproval(func(_ context.Context, q mcptask.Question) (pipeline.Approval, error) {
			asked.Add(1)
			if q.TaskID == "" {
				t.Errorf("a question of no task: %+v", q)
			}
			return pipeline.Approval{Approve: true}, nil
		})}))
		call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: repository, Steps: []string{"build", "test"}})
		if err != nil {
			t.Fatal(err)
		}
		token, ok := call.Token()
		if !ok {
			t.Error("no task")
		}
		if report, err := call.Wait(ctx); err != nil || len(report.Steps) != 2 {
			t.Errorf("%+v, %v", report, err)
		}
		other := pipeline.NewCIClient(dial(gosdk.ClientOptions{})) // as another process does
		for range 2 {
			again, err := other.ResumeRunPipeline(token)
			if err != nil {
				t.Fatal(err)
			}
			if report, err := again.Wait(ctx); err != nil || len(report.Steps) != 2 {
				t.Errorf("resumed: %+v, %v", report, err)
			}
		}
		var tool *mcptask.ToolError
		if _, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository, Branch: "broken"}); !errors.As(err, &tool) || tool.Result.Text() != "the branch does not build" {
			t.Error(err)
		}
		var wire *mcptask.Error
		if _, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository, Branch: "refused"}); !errors.As(err, &wire) || wire.Code != -32050 {
			t.Error(err)
		}
		if report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}); err != nil || report.Version != "1.2.3" || asked.Load() != 1 {
			t.Errorf("%+v, %v, asked %d times", report, err, asked.Load())
		}
		if report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "staging"}, mcptask.Plain()); err != nil || report.Version != "1.2.3" {
			t.Errorf("%+v, %v", report, err)
		}
		if report, err := ci.LintFile(ctx, pipeline.LintInput{Path: "a.go"}); err != nil || len(report.Findings) != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		var running sync.WaitGroup
		for n := range 20 {
			running.Go(func() {
				steps := make([]string, n%3)
				if report, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository, Steps: steps}); err != nil || len(report.Steps) != len(steps) {
					t.Errorf("%d: %+v, %v", n, report, err)
				}
			})
		}
		running.Wait()
	})
}

// TestProposalCancelledByClient: a task is cancelled by who has called it, and by
// who leaves; nobody else can.
func TestProposalCancelledByClient(t *testing.T) {
	rules.Covers(t, "A-40", "A-45", "A-47")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, dial func(gosdk.ClientOptions) mcptask.Conn) {
		ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		ci, other := pipeline.NewCIClient(dial(gosdk.ClientOptions{})), pipeline.NewCIClient(dial(gosdk.ClientOptions{}))
		endless := pipeline.RunInput{Repository: repository, Branch: "endless"}
		call, err := ci.StartRunPipeline(ctx, endless)
		if err != nil {
			t.Fatal(err)
		}
		token, _ := call.Token()
		taken, err := other.ResumeRunPipeline(token)
		if err != nil {
			t.Fatal(err)
		}
		if err := taken.Cancel(ctx); err == nil {
			t.Error("cancelled without the call")
		}
		if err := call.Cancel(ctx); err != nil {
			t.Error(err)
		}
		for _, c := range []*mcptask.Call[pipeline.RunReport]{call, taken} {
			if _, err := c.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
				t.Error(err)
			}
		}
	})
}

// TestProposalKeys: calls with one key share a task, in any process; with other
// arguments the key is refused.
func TestProposalKeys(t *testing.T) {
	rules.Covers(t, "A-07")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, dial func(gosdk.ClientOptions) mcptask.Conn) {
		ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		in, key := pipeline.RunInput{Repository: repository, Steps: []string{"a"}}, mcptask.IdempotencyKey("0123456789abcdef")
		var tokens []string
		for range 2 {
			ci := pipeline.NewCIClient(dial(gosdk.ClientOptions{}))
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
			var wire *mcptask.Error
			if !errors.As(err, &wire) || wire.Code != wiretest.InvalidParams {
				t.Error(err)
			}
		}
		if fmt.Sprint(tokens) != fmt.Sprint([]string{tokens[0], tokens[0], tokens[0], tokens[0]}) {
			t.Errorf("the tokens %s", tokens)
		}
	})
}

// TestProposalDeleted: what was read is gone from the server, where the client says
// so.
func TestProposalDeleted(t *testing.T) {
	rules.Covers(t, "A-54", "A-56")
	t.Parallel()
	eachProposedWay(t, func(t *testing.T, dial func(gosdk.ClientOptions) mcptask.Conn) {
		ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
		defer cancel()
		ci, other := pipeline.NewCIClient(dial(gosdk.ClientOptions{DeleteTasks: true})), pipeline.NewCIClient(dial(gosdk.ClientOptions{}))
		call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: repository, Steps: []string{"a"}})
		if err != nil {
			t.Fatal(err)
		}
		token, _ := call.Token()
		if _, err := call.Wait(ctx); err != nil {
			t.Error(err)
		}
		again, err := other.ResumeRunPipeline(token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Wait(ctx); !errors.Is(err, mcptask.ErrNotFound) {
			t.Error(err)
		}
	})
}

// TestProposalCommand: a server that is a process of its own.
func TestProposalCommand(t *testing.T) {
	rules.Covers(t, "A-07", "A-39", "A-40")
	t.Parallel()
	ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
	defer cancel()
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
	ci := pipeline.NewCIClient(conn)
	if report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}); err != nil || report.Version != "1.2.3" {
		t.Errorf("%+v, %v", report, err)
	}
	call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: repository, Branch: "endless"})
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Cancel(ctx); err != nil {
		t.Error(err)
	}
	if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
		t.Error(err)
	}
}

// TestProposalGoroutines: calls that are done, cancelled or left behind leave
// nothing running, nor a connection open.
func TestProposalGoroutines(t *testing.T) {
	check := wiretest.Goroutines(t)
	t.Run("calls", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			url, _ := wiretest.Serve(t, wiretest.WithProposal())
			ctx, cancel := wiretest.WithTimeout(t, wiretest.Patience)
			defer cancel()
			conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: mcptask.RevisionSEP1686})
			if err != nil {
				t.Fatal(err)
			}
			ci := pipeline.NewCIClient(conn)
			if _, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: repository}); err != nil {
				t.Error(err)
			}
			for range 5 {
				call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: repository, Branch: "endless"})
				if err != nil {
					t.Fatal(err)
				}
				_ = call // nobody waits for it
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	check()
}
