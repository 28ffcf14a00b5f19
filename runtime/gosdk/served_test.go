package gosdk_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// newServer returns a server of tasks and its SDK server, which live until the test ends.
func newServer(t testing.TB, options taskserver.Options, services ...mcptask.Tools) (tasks *taskserver.Server, sdk *mcp.Server) {
	t.Helper()
	tasks, err := taskserver.New(options, services...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	sdk = mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	return tasks, sdk
}

// serveHTTP serves an SDK server in memory. It checks each message against the schema of the revision that sessions
// speak.
func serveHTTP(t testing.TB, revision string, tasks *taskserver.Server, sdk *mcp.Server) (url string) {
	t.Helper()
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	server := memnet.NewServer(wirecheck.RevisionHandler(t, revision, handler), nil)
	t.Cleanup(func() {
		server.Close()
		wiretest.EndSessions(sdk)
	})
	return server.URL
}

// servePipes serves one session on pipes, and checks it as serveHTTP does. kill closes the pipes as the end of a
// process does.
func servePipes(t *testing.T, revision string, tasks *taskserver.Server, sdk *mcp.Server) (wire *mcp.IOTransport, kill func()) {
	t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	in, out := wirecheck.RevisionPipes(t, revision, fromClient, toClient)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = sdk.Run(context.WithoutCancel(t.Context()), gosdk.PipeTransport(tasks, in, out)) // the client ends it
		_ = toClient.Close()
	}()
	t.Cleanup(func() {
		_ = toServer.Close()
		<-ended
	})
	return &mcp.IOTransport{Reader: fromServer, Writer: toServer}, func() { _, _ = toClient.Close(), fromClient.Close() }
}

// eachServedWay runs a test with a server over HTTP and over pipes, in fake time. connect opens a connection in the
// revision, and the test may call it several times.
func eachServedWay(t *testing.T, revision string, options taskserver.Options, service mcptask.Tools,
	test func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn)) {
	t.Helper()
	sessions := wirecheck.Legacy
	if revision == wiretest.CandidateRevision {
		sessions = revision
	}
	for name, pipes := range map[string]bool{"HTTP": false, "pipes": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				tasks, sdk := newServer(t, options, service)
				url := serveHTTP(t, sessions, tasks, sdk)
				test(t, func(o gosdk.ClientOptions) (conn mcptask.Conn) {
					if o.Revision = revision; !pipes {
						conn = dial(t, url, o)
					} else {
						wire, _ := servePipes(t, sessions, tasks, sdk)
						conn = dialOver(t, wire, o)
					}
					if conn.Revision() != revision {
						t.Fatalf("the connection speaks %s", conn.Revision())
					}
					return conn
				})
			})
		})
	}
}

// dialOver is dial with a transport in the place of a URL.
func dialOver(t testing.TB, wire *mcp.IOTransport, options gosdk.ClientOptions) mcptask.Conn {
	t.Helper()
	conn, err := gosdk.ConnectOver(t.Context(), wire, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

const repository = "https://example.com/r"

// approve answers every question with an approval.
var approve = pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
	return pipeline.Approval{Approve: true}, nil
})

// startRun starts a run of a branch.
func startRun(t testing.TB, ci *pipeline.CIClient, branch string, steps ...string) *mcptask.Call[pipeline.RunReport] {
	t.Helper()
	call, err := ci.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: repository, Branch: branch, Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// deployStaging deploys without a question, and reports if the call became a task.
func deployStaging(t testing.TB, ci *pipeline.CIClient, options ...mcptask.CallOption) (isTask bool) {
	t.Helper()
	call, err := ci.StartDeployService(t.Context(), pipeline.DeployInput{Service: "api", Environment: "staging"}, options...)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := call.Wait(within(t, wiretest.Patience)); err != nil || report.Version != "1.2.3" {
		t.Errorf("%+v, %v", report, err)
	}
	_, isTask = call.Token()
	return isTask
}

// checkResumed resumes a run of two steps that has ended, by its token.
func checkResumed(t testing.TB, ci *pipeline.CIClient, token mcptask.Token) {
	t.Helper()
	call, err := ci.ResumeRunPipeline(token)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := call.Wait(within(t, wiretest.Patience)); err != nil || len(report.Steps) != 2 {
		t.Errorf("resumed: %+v, %v", report, err)
	}
}

// checkPipeline makes the usual calls of the pipeline's generated client. If the client approves, it also makes one
// that asks. It returns the token of a task that has ended.
func checkPipeline(t testing.TB, ci *pipeline.CIClient, approves bool) mcptask.Token {
	t.Helper()
	ctx := within(t, wiretest.Patience)
	call := startRun(t, ci, "", "build", "test")
	token, ok := call.Token()
	if !ok {
		t.Error("a required tool gave no task")
	}
	if report, err := call.Wait(ctx); err != nil || !report.Passed || len(report.Steps) != 2 {
		t.Errorf("%+v, %v", report, err)
	}
	var tool *mcptask.ToolError
	if _, err := startRun(t, ci, "broken").Wait(ctx); !errors.As(err, &tool) || tool.Result.Text() != "the branch does not build" {
		t.Error(err)
	}
	var wire *mcptask.Error
	if _, err := startRun(t, ci, "refused").Wait(ctx); !errors.As(err, &wire) || wire.Code != 4050 || wire.Message != "the repository is locked" {
		t.Error(err)
	}
	endless := startRun(t, ci, "endless")
	cancel(t, endless)
	wantEnd(t, endless, mcptask.ErrCancelled)
	if report, err := ci.LintFile(ctx, pipeline.LintInput{Path: "main.go"}); err != nil || len(report.Findings) != 1 {
		t.Errorf("%+v, %v", report, err)
	}
	if approves {
		if report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}); err != nil || report.Version != "1.2.3" {
			t.Errorf("asked: %+v, %v", report, err)
		}
	}
	if deployStaging(t, ci, mcptask.Plain()) {
		t.Error("a plain call became a task")
	}
	return token
}

// TestMain lets the tests reach servers in memory.
func TestMain(m *testing.M) { wiretest.Main(m) }
