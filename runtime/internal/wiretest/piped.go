package wiretest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// Piped is a client of literal JSON on pipes to a server in this process.
type Piped struct {
	T     *testing.T
	In    *io.PipeWriter
	Lines chan string // the server's lines; closed at its end
	Stop  context.CancelFunc
	ended chan error
}

// PipeLimit is MaxBody of the servers that NewPiped starts.
const PipeLimit = 2000

// NewPiped starts a server of tools, with limits, and connects to it.
func NewPiped(t *testing.T, tools ...mcptask.Tool) *Piped {
	t.Helper()
	return NewPipedWith(t, taskserver.Options{MaxBody: PipeLimit, Limits: NoPollLimits}, tools...)
}

// NewPipedWith is NewPiped with options.
func NewPipedWith(t *testing.T, options taskserver.Options, tools ...mcptask.Tool) *Piped {
	t.Helper()
	tasks, err := taskserver.New(options, EndlessTools(tools...))
	if err != nil {
		t.Fatal(err)
	}
	p := PipeTo(t, tasks, 100)
	t.Cleanup(func() { _ = tasks.Close() })
	return p
}

// EndlessTools adds to tools the tool "endless", whose tasks run until they are cancelled.
func EndlessTools(tools ...mcptask.Tool) mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional}
	return mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: append(tools,
		mcptask.NewTool(mcptask.ToolSpec{Name: "endless", InputSchema: OpenObject, Policy: policy},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (struct{}, error) {
				<-ctx.Done()
				return struct{}{}, ctx.Err()
			}),
	)}
}

// PipeTo connects a client to a server. held is how many lines the client buffers before it stops
// reading.
func PipeTo(t *testing.T, tasks *taskserver.Server, held int) *Piped {
	t.Helper()
	return PipeToRevision(t, LegacyRevision, tasks, held)
}

// PipeToRevision is PipeTo for a server that speaks a revision in its sessions.
func PipeToRevision(t *testing.T, revision string, tasks *taskserver.Server, held int) *Piped {
	t.Helper()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	serverIn, serverOut := wirecheck.RevisionPipes(t, revision, inRead, outWrite)
	ctx, stop := context.WithCancel(context.Background())
	p := &Piped{T: t, In: in, Lines: make(chan string, held), Stop: stop, ended: make(chan error, 1)}
	go func() {
		err := sdk.Run(ctx, PipeTransport(tasks, serverIn, serverOut))
		_ = outWrite.Close()
		p.ended <- err
	}()
	go func() {
		defer close(p.Lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			select {
			case p.Lines <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		_ = in.Close()
		_ = out.Close()
	})
	return p
}

// Say sends a line.
func (p *Piped) Say(format string, args ...any) {
	p.T.Helper()
	if _, err := fmt.Fprintf(p.In, format+"\n", args...); err != nil {
		p.T.Fatal(err)
	}
}

// Ask sends a line and returns the next one from the server.
func (p *Piped) Ask(format string, args ...any) string {
	p.T.Helper()
	p.Say(format, args...)
	return p.Hear()
}

// Hear returns the next line from the server.
func (p *Piped) Hear() string {
	p.T.Helper()
	select {
	case line, ok := <-p.Lines:
		if !ok {
			p.T.Fatal("no more lines")
		}
		return line
	case <-time.After(Patience):
		p.T.Fatal("nothing heard")
		return ""
	}
}

// Initialize opens the session of a client without capabilities.
func (p *Piped) Initialize() { p.T.Helper(); p.InitializeWith(`{}`) }

// InitializeWith opens the session of a client with capabilities.
func (p *Piped) InitializeWith(capabilities string) {
	p.T.Helper()
	p.Ask(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities)
	p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// StartEndless starts an endless task and returns its ID.
func (p *Piped) StartEndless() string {
	p.T.Helper()
	var r struct {
		Result struct{ Task struct{ TaskID string } }
	}
	line := p.Ask(`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"endless","arguments":{},"task":{}}}`)
	if err := json.Unmarshal([]byte(line), &r); err != nil || r.Result.Task.TaskID == "" {
		p.T.Fatal(line, err)
	}
	return r.Result.Task.TaskID
}

// WantEnd fails the test unless the server ends.
func (p *Piped) WantEnd() {
	p.T.Helper()
	select {
	case err := <-p.ended: // the SDK chooses the error
		p.T.Log(err)
	case <-time.After(Patience):
		stacks := make([]byte, 1<<16)
		p.T.Fatalf("the server goes on:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// PipeTransport is gosdk.StdioTransport on other pipes.
func PipeTransport(tasks *taskserver.Server, in io.Reader, out io.Writer) mcp.Transport {
	return &pipeTransport{tasks, in, out}
}

// pipeTransport is an mcp.Transport behind a gateway.
type pipeTransport struct {
	tasks *taskserver.Server
	in    io.Reader
	out   io.Writer
}

// Connect implements mcp.Transport.
func (p *pipeTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	g := gateway.New(gateway.Config{
		Server:    p.tasks.Backend(),
		Principal: func(context.Context) (string, error) { return gosdk.Local, nil },
	})
	reader, writer, err := g.Pipe(ctx, p.in, p.out)
	if err != nil {
		return nil, err
	}
	return (&mcp.IOTransport{Reader: reader, Writer: writer, MaxLineLength: -1}).Connect(ctx)
}

// PipedMessage is a line from the server.
type PipedMessage struct {
	ID     string
	Method string
	Params struct {
		TaskID string
		Task   json.RawMessage
	}
	Result struct {
		Task    struct{ TaskID string }
		Content []struct{ Text string }
	}
	Line string
}

// NextMessage returns the next message that is not a status notification.
func (p *Piped) NextMessage() PipedMessage {
	p.T.Helper()
	for {
		m := PipedMessage{Line: p.Hear()}
		if err := json.Unmarshal([]byte(m.Line), &m); err != nil {
			p.T.Fatal(err, m.Line)
		}
		if m.Method != "notifications/tasks/status" {
			return m
		}
	}
}

// Exchange sends a line. It fails the test unless the next line from the server is want.
func (p *Piped) Exchange(want, format string, args ...any) {
	p.T.Helper()
	p.Say(format, args...)
	p.WantLines(want)
}

// WantLines fails the test unless these lines come, in this order.
func (p *Piped) WantLines(lines ...string) {
	p.T.Helper()
	for _, want := range lines {
		if got := p.Hear(); !SameJSON(got, want) {
			p.T.Fatalf("%s, want %s", got, want)
		}
	}
}
