package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// piped is a client on a pipe, in front of what stands for an SDK.
type piped struct {
	t     *testing.T
	g     *Gateway
	in    *io.PipeWriter
	lines chan string // what the gateway says
}

// newPiped begins a session of a client that answers questions. The SDK takes its time for
// the reply to a call, as a user's middleware may. A tool asks at once.
func newPiped(t *testing.T, server *mcptask.Server, dawdles time.Duration) *piped {
	t.Helper()
	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	p := &piped{t: t, g: New(Config{Server: server}), in: toGateway, lines: make(chan string)}
	reader, writer, err := p.g.Pipe(t.Context(), in, out)
	if err != nil {
		t.Fatal(err)
	}
	go serveLines(server, reader, writer, dawdles)
	ended := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(fromGateway); lines.Scan(); {
			select {
			case p.lines <- lines.Text():
			case <-ended:
				return
			}
		}
	}()
	t.Cleanup(func() { close(ended); _, _ = toGateway.Close(), fromGateway.Close() })
	p.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	p.hear()
	return p
}

// serveLines is an SDK as far as the gateway needs one.
func serveLines(server *mcptask.Server, in io.Reader, out io.WriteCloser, dawdles time.Duration) {
	defer out.Close()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
				Meta      map[string]any `json:"_meta"`
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		token, _ := m.Params.Meta[FlowMeta].(string)
		flow := TakeFlow(server, token)
		var result json.RawMessage
		var err error
		switch {
		case m.Method == "initialize":
			result, err = flow.Decorate(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`))
			flow.Connected("", "2025-11-25", nil)
		case flow != nil && flow.Tool != "":
			var reply mcptask.CallReply
			if reply, err = flow.Run(context.Background(), server, m.Params.Name, m.Params.Arguments, Hooks{}); err == nil {
				result, err = flow.Encode(reply)
			}
			time.Sleep(dawdles)
		case m.Method == "subscriptions/listen":
			continue // until the test has it answered
		case m.Method == "test/bytes":
			result = json.RawMessage("\"\xff\"")
		case m.Method == "test/answer":
			_, _ = out.Write(append(wire.EncodeReply(json.RawMessage(m.Params.Name), json.RawMessage(`{}`), nil), '\n'))
		}
		var failed *mcptask.Error
		if err != nil {
			failed = wireError(err)
		} else if result == nil {
			result = json.RawMessage(`{}`)
		}
		_, _ = out.Write(append(wire.EncodeReply(m.ID, result, failed), '\n'))
	}
}

func (p *piped) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *piped) hear() string {
	p.t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(time.Hour):
		p.t.Fatal("nothing comes")
		return ""
	}
}

// askingServer has a tool that asks at once.
func askingServer(t *testing.T) *mcptask.Server {
	t.Helper()
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			answer, err := mcptask.Ask[struct{ Note string }](ctx, task,
				mcptask.InputSpec{Name: "Note", Message: "?", Schema: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}, "one", "")
			return answer.Note, err
		})
	server, err := mcptask.NewServer(mcptask.Options{Logger: slog.New(slog.DiscardHandler)}, mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// On a pipe a question follows the reply that tells the client of its task, however long that
// takes, and at once.
func TestPipeQuestionFollowsReply(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := askingServer(t)
		p := newPiped(t, server, time.Minute)
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","task":{}}}`)
		reply := p.hear()
		var created struct {
			Result struct{ Task struct{ TaskID string } }
		}
		if err := json.Unmarshal([]byte(reply), &created); err != nil || created.Result.Task.TaskID == "" {
			t.Fatalf("first came %s", reply)
		}
		told := time.Now()
		if question := p.hear(); !strings.Contains(question, "elicitation/create") || time.Since(told) > 0 {
			t.Errorf("after %v: %s", time.Since(told), question)
		}
		// Another session learns of the task by the reply to what it asks.
		for range 50 {
			other := newPiped(t, server, 0)
			other.say(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":%q}}`, created.Result.Task.TaskID)
			if reply := other.hear(); !strings.Contains(reply, `"id":2`) {
				t.Fatalf("before the reply to tasks/get: %s", reply)
			}
			_ = other.in.Close()
			time.Sleep(time.Second) // of polls that are limited
		}
	})
}

// A reply of the SDK's that is not UTF-8, such as of a tool with bytes of its own, is one too: its ID is
// free again, and nobody waits for it at the end.
func TestPipeReplyOfBytes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := askingServer(t)
		p := newPiped(t, server, 0)
		for range 2 {
			p.say(`{"jsonrpc":"2.0","id":7,"method":"test/bytes"}`)
			if reply := p.hear(); !strings.Contains(reply, "\xff") {
				t.Fatal(reply)
			}
		}
	})
}

// A client that initializes its session again, if the SDK lets it, changes nothing that others read.
func TestPipeInitializesOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPiped(t, askingServer(t), 0)
		for id := range 20 {
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","task":{}}}`, id)
			p.say(`{"jsonrpc":"2.0","id":"again","method":"initialize","params":{"capabilities":{}}}`)
			for questions, replies := 0, 0; questions < 1 || replies < 2; {
				if line := p.hear(); strings.Contains(line, "elicitation/create") {
					questions++
				} else if !strings.Contains(line, `"method"`) {
					replies++
				}
			}
		}
	})
}
