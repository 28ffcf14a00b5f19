package mcpgo_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// envServe makes the test's program a server on standard input and output.
const envServe = "MCPGO_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(envServe) == "" {
		os.Exit(m.Run())
	}
	if err := serveChild(); err != nil {
		log.Fatal(err)
	}
}

// serveChild serves the tools of the tests.
func serveChild() error {
	tasks, err := taskserver.New(taskserver.Options{Limits: wiretest.NoPollLimits}, pipeline.CITools(wiretest.CI{}))
	if err != nil {
		return err
	}
	s := server.NewMCPServer("brown", "1.0.0")
	mcpgo.AddTools(s, tasks)
	if err := mcpgo.AddTaskTool(s, tasks, workTool(), work, mcptask.Policy{}); err != nil {
		return err
	}
	s.AddTool(mcp.NewTool("own"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if _, ok := mcptask.FromContext(ctx); ok {
			return nil, errors.New("a tool of mcp-go's own has a task")
		}
		return mcp.NewToolResultText("own"), nil
	})
	return errors.Join(mcpgo.ServeStdio(context.Background(), s, tasks), mcpgo.Shutdown(context.Background(), nil, tasks))
}

// TestStdio checks calls, tasks and questions over standard input and output. The server ends with its input.
func TestStdio(t *testing.T) {
	eachRevision(t, func(t *testing.T, revision string) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
		defer cancel()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envServe+"=1")
		conn, err := gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{
			Revision: revision,
			Answer: pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
				return pipeline.Approval{Approve: true}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		if conn.Revision() != revision {
			t.Errorf("the revision is %s", conn.Revision())
		}
		call, err := mcptask.Start[string](ctx, conn, "work", arguments("Ada"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := call.Token(); !ok {
			t.Error("not a task")
		}
		if text, err := call.Wait(ctx); err != nil || text != "Ada has worked" {
			t.Errorf("%q, %v", text, err)
		}
		for tool, want := range map[string]string{"work": "Bo has worked", "own": "own"} {
			if text, err := mcptask.Run[string](ctx, conn, tool, arguments("Bo"), mcptask.Plain()); err != nil || text != want {
				t.Errorf("%s: %q, %v", tool, text, err)
			}
		}
		ci := pipeline.NewCIClient(conn)
		if report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}); err != nil || report.Version != "1.2.3" {
			t.Errorf("asked: %+v, %v", report, err)
		}
		waits, err := mcptask.Start[string](ctx, conn, "work", arguments("waits"))
		if err != nil {
			t.Fatal(err)
		}
		if err := waits.Cancel(ctx); err != nil {
			t.Error(err)
		}
		if _, err := waits.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error("the server did not end in order:", err)
		}
	})
}

// TestStdioWithMCPGo checks mcp-go's own client, which knows no tasks here: the result, and the fallback tools.
func TestStdioWithMCPGo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
	defer cancel()
	c, err := client.NewStdioMCPClient(os.Args[0], append(os.Environ(), envServe+"=1"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // it fails if the server has ended with an error
	var initialize mcp.InitializeRequest
	initialize.Params.ProtocolVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
	initialize.Params.ClientInfo = mcp.Implementation{Name: "t", Version: "1"}
	if _, err := c.Initialize(ctx, initialize); err != nil {
		t.Fatal(err)
	}
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil || !strings.Contains(fmt.Sprint(list.Tools), "task_result") {
		t.Error(list, err)
	}
	var call mcp.CallToolRequest
	call.Params.Name, call.Params.Arguments = "work", arguments("Ada")
	result, err := c.CallTool(ctx, call)
	if err != nil || len(result.Content) != 1 || mcp.GetTextFromContent(result.Content[0]) != "Ada has worked" {
		t.Error(result, err)
	}
}

// pipes is a server in this process and its client's ends. mcp-go has one session on pipes in a process, so tests with
// pipes do not run at the same time.
type pipes struct {
	t     *testing.T
	tasks *taskserver.Server
	in    *io.PipeWriter
	out   *io.PipeReader
	lines *bufio.Scanner
	ended chan error
}

// servePipes starts a server of workTool on pipes.
func servePipes(ctx context.Context, t *testing.T) *pipes {
	t.Helper()
	tasks, s := adopt(t, taskserver.Options{}, work)
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	p := &pipes{t: t, tasks: tasks, in: toServer, out: fromServer, lines: bufio.NewScanner(fromServer), ended: make(chan error, 1)}
	go func() { p.ended <- mcpgo.ServeStdioOn(ctx, s, tasks, in, out) }()
	t.Cleanup(p.close)
	return p
}

// close closes the client's ends.
func (p *pipes) close() {
	_ = p.in.Close()
	_ = p.out.Close()
}

// ask sends a line and returns the next one.
func (p *pipes) ask(line string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatal(err)
	}
	return p.next()
}

func (p *pipes) next() string {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatal("no more lines")
	}
	return p.lines.Text()
}

const (
	initializeLine = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{}}},"clientInfo":{"name":"t","version":"1"}}}`
	workLine       = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"work","arguments":{"name":"waits"}%s,"_meta":{"progressToken":"p%[1]d"}}}`
)

// TestPipeProgress checks that progress of an unchanged handler reaches the client of a plain call and of a task, after the
// task, and that nothing is left when the client is killed while both still run.
func TestPipeProgress(t *testing.T) {
	check := wiretest.Goroutines(t)
	p := servePipes(t.Context(), t)
	if line := p.ask(initializeLine); !strings.Contains(line, `"tasks":{`) || !strings.Contains(line, `"brown"`) {
		t.Errorf("%s", line)
	}
	if line := p.ask(fmt.Sprintf(workLine, 1, "")); !strings.Contains(line, "notifications/progress") || !strings.Contains(line, `"p1"`) || !strings.Contains(line, "half of it") {
		t.Errorf("%s", line)
	}
	if line := p.ask(fmt.Sprintf(workLine, 2, `,"task":{}`)); !strings.Contains(line, `"taskId"`) {
		t.Errorf("%s", line)
	}
	for {
		if line := p.next(); strings.Contains(line, "notifications/progress") {
			if !strings.Contains(line, `"p2"`) || !strings.Contains(line, "io.modelcontextprotocol/related-task") {
				t.Errorf("%s", line)
			}
			break
		}
	}
	p.close() // as a client that is killed
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
	if err := p.tasks.Close(); err != nil {
		t.Error(err)
	}
	check()
}

// TestPipeEnds checks that ServeStdio returns with its context and with Shutdown, although the client keeps the pipe open.
func TestPipeEnds(t *testing.T) {
	for name, end := range map[string]func(p *pipes, cancel func()) (want error){
		"context":  func(_ *pipes, cancel func()) error { cancel(); return context.Canceled },
		"shutdown": func(p *pipes, _ func()) error { return mcpgo.Shutdown(t.Context(), nil, p.tasks) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := servePipes(ctx, t)
			p.ask(initializeLine)
			if want, err := end(p, cancel), <-p.ended; !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
		})
	}
}
