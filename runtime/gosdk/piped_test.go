package gosdk_test

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
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// piped is a literal client on pipes of a server in this process.
type piped struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string // what the server has said; closed at its end
	stop  context.CancelFunc
	ended chan error
}

const pipeLimit = 2000

func newPiped(t *testing.T, tools ...mcptask.Tool) *piped {
	t.Helper()
	return newPipedWith(t, mcptask.Options{MaxBody: pipeLimit, Limits: hurried}, tools...)
}

func newPipedWith(t *testing.T, options mcptask.Options, tools ...mcptask.Tool) *piped {
	t.Helper()
	tasks, err := mcptask.NewServer(options, endlessTools(tools...))
	if err != nil {
		t.Fatal(err)
	}
	p := pipeTo(t, tasks, 100)
	t.Cleanup(func() { _ = tasks.Close() })
	return p
}

// endlessTools are tools with one more, which has no end.
func endlessTools(tools ...mcptask.Tool) mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskOptional}
	return mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: append(tools,
		mcptask.NewTool(mcptask.ToolSpec{Name: "endless", InputSchema: openObject, Policy: policy},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (struct{}, error) {
				<-ctx.Done()
				return struct{}{}, ctx.Err()
			}),
	)}
}

// pipeTo connects a client with a server. held is how many lines the client takes
// that nobody has asked for yet; then it does not read.
func pipeTo(t *testing.T, tasks *mcptask.Server, held int) *piped {
	t.Helper()
	return pipeIn(t, legacyRevision, tasks, held)
}

// pipeIn is pipeTo for a server that speaks a revision in its sessions.
func pipeIn(t *testing.T, revision string, tasks *mcptask.Server, held int) *piped {
	t.Helper()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	inRead, in := io.Pipe()
	out, outWrite := io.Pipe()
	serverIn, serverOut := wirecheck.RevisionPipes(t, revision, inRead, outWrite)
	ctx, stop := context.WithCancel(context.Background())
	p := &piped{t: t, in: in, lines: make(chan string, held), stop: stop, ended: make(chan error, 1)}
	go func() {
		err := sdk.Run(ctx, gosdk.PipeTransport(tasks, serverIn, serverOut))
		_ = outWrite.Close()
		p.ended <- err
	}()
	go func() {
		defer close(p.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			select {
			case p.lines <- lines.Text():
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

func (p *piped) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

// ask sends a line and returns the next one that comes.
func (p *piped) ask(format string, args ...any) string {
	p.t.Helper()
	p.say(format, args...)
	return p.hear()
}

func (p *piped) hear() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("no more lines")
		}
		return line
	case <-time.After(patience):
		p.t.Fatal("nothing heard")
		return ""
	}
}

func (p *piped) initialize() { p.t.Helper(); p.declare(`{}`) }

// declare is initialize with a client's capabilities.
func (p *piped) declare(capabilities string) {
	p.t.Helper()
	p.ask(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities)
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (p *piped) endless() string {
	p.t.Helper()
	var r struct {
		Result struct{ Task struct{ TaskID string } }
	}
	line := p.ask(`{"jsonrpc":"2.0","id":"e","method":"tools/call","params":{"name":"endless","arguments":{},"task":{}}}`)
	if err := json.Unmarshal([]byte(line), &r); err != nil || r.Result.Task.TaskID == "" {
		p.t.Fatal(line, err)
	}
	return r.Result.Task.TaskID
}

func (p *piped) ends() {
	p.t.Helper()
	select {
	case err := <-p.ended: // how it ends is the SDK's to say
		p.t.Log(err)
	case <-time.After(patience):
		stacks := make([]byte, 1<<16)
		p.t.Fatalf("the server goes on:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}
