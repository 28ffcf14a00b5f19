package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// piped is a client on a pipe, in front of what stands for an SDK.
type piped struct {
	t     *testing.T
	g     *Gateway
	in    *io.PipeWriter
	lines chan string // what the gateway says
}

// newPiped opens a session of a client that answers questions. The SDK delays the reply to a call,
// as a user's middleware may.
func newPiped(t *testing.T, server *taskserver.Server, dawdles time.Duration) *piped {
	t.Helper()
	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	p := &piped{t: t, g: New(Config{Server: server.Backend()}), in: toGateway, lines: make(chan string)}
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

// serveLines does what the gateway needs of an SDK.
func serveLines(server *taskserver.Server, in io.Reader, out io.WriteCloser, dawdles time.Duration) {
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
		flow := TakeFlow(server.Backend(), token)
		var result json.RawMessage
		var err error
		switch {
		case m.Method == "initialize":
			result, err = flow.Decorate(json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`))
			flow.Connected("", "2025-11-25", nil)
		case flow != nil && flow.Tool != "":
			var reply taskserver.CallReply
			if reply, err = flow.Run(context.Background(), server.Backend(), m.Params.Name, m.Params.Arguments, nil); err == nil {
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
func askingServer(t *testing.T) *taskserver.Server {
	t.Helper()
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			answer, err := mcptask.Ask[struct{ Note string }](ctx, task,
				mcptask.InputSpec{Name: "Note", Message: "?", Schema: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}, "one", "")
			return answer.Note, err
		})
	return newServer(t, taskserver.Options{Logger: slog.New(slog.DiscardHandler)}, tool)
}

// TestPipeQuestionFollowsReply checks that on a pipe a question comes at once after the reply that
// tells the client of its task, however late that reply is.
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

// TestPipeReplyOfBytes checks that a reply of the SDK's counts as one even if it is not UTF-8, as
// with a tool that returns raw bytes. Its ID is free again, and the end of the pipe does not wait for
// it.
func TestPipeReplyOfBytes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPiped(t, askingServer(t), 0)
		for range 2 {
			p.say(`{"jsonrpc":"2.0","id":7,"method":"test/bytes"}`)
			if reply := p.hear(); !strings.Contains(reply, "\xff") {
				t.Fatal(reply)
			}
		}
	})
}

// TestPipeInitializesOnce checks that a second initialize, if the SDK allows it, does not change what
// other goroutines read of the session.
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

// TestPipeCountsListen checks that on a pipe too a subscription which the SDK serves alone counts as
// a waiting request until it is cancelled or answered, or the pipe ends.
func TestPipeCountsListen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 3
		server := newServer(t, taskserver.Options{Limits: taskserver.Limits{Waiting: most}, Logger: slog.New(slog.DiscardHandler),
			Principal: func(context.Context) (string, error) { return "p", nil }}) // both pipes count for one account
		listen := func(p *piped, id string) {
			p.say(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`, id, taskMeta)
		}
		refused := func(p *piped, id, why string) {
			t.Helper()
			listen(p, id)
			if reply := p.hear(); !strings.Contains(reply, `"id":`+id) || !strings.Contains(reply, why) {
				t.Fatalf("%s, want %s", reply, why)
			}
		}
		p := newPiped(t, server, 0)
		for id := range most {
			listen(p, fmt.Sprint(id))
		}
		refused(p, "9", `"limit":"waiting"`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
		refused(p, "0", "under way") // the SDK has not answered it
		listen(p, "10")
		refused(p, "11", `"limit":"waiting"`)
		p.say(`{"jsonrpc":"2.0","id":"-","method":"test/answer","params":{"name":"10"}}`) // the SDK does
		p.hear()
		p.hear()
		listen(p, "10")
		refused(p, "12", `"limit":"waiting"`)
		_ = p.in.Close()
		synctest.Wait()
		p = newPiped(t, server, 0)
		for id := range most {
			listen(p, fmt.Sprint(id))
		}
		refused(p, "9", `"limit":"waiting"`)
	})
}

// TestPipeListenAtTheEnd checks that a subscription which comes after the SDK has ended does not count
// any more.
func TestPipeListenAtTheEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		g := New(Config{Server: newServer(t, taskserver.Options{Limits: taskserver.Limits{Waiting: 1}}).Backend(),
			Principal: func(context.Context) (string, error) { return "p", nil }})
		in, asks := io.Pipe()
		reader, writer, err := g.Pipe(t.Context(), in, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		_ = writer.Close()
		fmt.Fprintf(asks, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},%s}}`+"\n", taskMeta)
		if line, _ := bufio.NewReader(reader).ReadString('\n'); !strings.Contains(line, "subscriptions/listen") {
			t.Errorf("the SDK gets %q", line)
		}
		if _, refusal := g.countWaiting(t.Context(), taskserver.Caller{Principal: "p"}); refusal != nil {
			t.Error(refusal)
		}
		_ = asks.Close()
	})
}

// TestPipeCancelledPoll checks that a request which the client cancels gets no answer.
func TestPipeCancelledPoll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := storetest.NewFaulty(taskstore.NewMemory(), storetest.Faults{Latency: time.Second}, 1)
		defer store.Set(storetest.Faults{})
		p := newPiped(t, newServer(t, taskserver.Options{Store: store}), 0)
		p.say(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"NOSUCHTASK"}}`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		time.Sleep(time.Minute)
		p.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		if line := p.hear(); !strings.Contains(line, `"id":2`) {
			t.Error(line)
		}
	})
}

// TestPipeCancelledRequest checks that the SDK's answer to a cancelled request does not reach the client,
// which may have forgotten the request, and that its ID is free again.
func TestPipeCancelledRequest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPiped(t, askingServer(t), 0)
		for id := range 2 {
			p.say(`{"jsonrpc":"2.0","id":"a","method":"subscriptions/listen","params":{"notifications":{},%s}}`, taskMeta)
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"test/answer","params":{"name":"\"a\""}}`, id)
			if line, want := p.hear(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id); line != want {
				t.Errorf("%s, want %s", line, want)
			}
		}
	})
}

// TestPipeForgetsUntakenFlow checks that a flow which the SDK has not taken is dropped, even if the
// SDK never answers the request.
func TestPipeForgetsUntakenFlow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := newServer(t, taskserver.Options{})
		in, asks := io.Pipe()
		reader, writer, err := New(Config{Server: server.Backend()}).Pipe(t.Context(), in, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(asks, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{%s}}`+"\n", taskMeta)
		line, _ := bufio.NewReader(reader).ReadString('\n')
		var m struct {
			Params struct {
				Meta map[string]any `json:"_meta"`
			}
		}
		_ = json.Unmarshal([]byte(line), &m)
		token, _ := m.Params.Meta[FlowMeta].(string)
		time.Sleep(flowLife)
		synctest.Wait()
		if token == "" || TakeFlow(server.Backend(), token) != nil {
			t.Errorf("the flow of token %q is left", token)
		}
		_ = asks.Close()
		_ = writer.Close()
	})
}

// refusedLines returns n requests that the reader of a pipe refuses itself.
func refusedLines(n int) string {
	var in strings.Builder
	for id := range n {
		fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"notifications/tasks"}`+"\n", id)
	}
	return in.String()
}

// pipeOf opens a pipe whose SDK reads until the end and never answers.
func pipeOf(t *testing.T, in io.Reader, out io.Writer) (sdk io.WriteCloser, ended chan struct{}) {
	t.Helper()
	reader, writer, err := New(Config{Server: newServer(t, taskserver.Options{}).Backend()}).Pipe(t.Context(), in, out)
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, reader)
		_ = writer.Close()
	}()
	return writer, ended
}

// TestEndOfInputBehindUnreadReplies checks that a client which does not read its replies still ends
// its server by closing its input.
func TestEndOfInputBehindUnreadReplies(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		defer func() { _ = unread.Close() }()
		_, ended := pipeOf(t, strings.NewReader(refusedLines(1000)), out)
		began := time.Now()
		<-ended
		if took := time.Since(began); took >= writeWithin {
			t.Errorf("the end was seen after %v", took)
		}
	})
}

// TestClientThatNeverReads checks that a server ends if its client sends requests without end and
// never reads, as soon as a write has taken longer than it may.
func TestClientThatNeverReads(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		unread, out := io.Pipe()
		defer func() { _ = unread.Close() }()
		in, asks := io.Pipe()
		defer func() { _ = asks.Close() }()
		_, ended := pipeOf(t, in, out)
		go func() {
			for line := refusedLines(1); ; {
				if _, err := io.WriteString(asks, line); err != nil {
					return
				}
			}
		}()
		began := time.Now()
		<-ended
		if took := time.Since(began); took < writeWithin || took > 2*writeWithin {
			t.Errorf("it ended after %v", took)
		}
		_ = in.Close()
	})
}

// TestLateReader checks that a client which reads late gets everything, in order.
func TestLateReader(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const asked = 100
		replies, out := io.Pipe()
		defer func() { _ = replies.Close() }()
		in, asks := io.Pipe()
		_, ended := pipeOf(t, in, out)
		_, _ = io.WriteString(asks, refusedLines(asked))
		time.Sleep(10 * writeWithin) // longer than a write may take, but nothing is in its way
		lines := bufio.NewScanner(replies)
		for id := range asked {
			if !lines.Scan() || !strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d,`, id)) {
				t.Fatalf("reply %d: %q", id, lines.Text())
			}
		}
		_ = asks.Close()
		<-ended
		synctest.Wait()
	})
}

// TestLastWordsAreWritten checks that the SDK's last message is written before the Close of its end
// returns.
func TestLastWordsAreWritten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		replies, out := io.Pipe()
		defer func() { _ = replies.Close() }()
		in, asks := io.Pipe()
		defer func() { _ = asks.Close() }()
		sdk, ended := pipeOf(t, in, out)
		const last = `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`
		heard := make(chan string, 1)
		go func() {
			time.Sleep(lastReplies / 2)
			line, _ := bufio.NewReader(replies).ReadString('\n')
			heard <- strings.TrimSpace(line)
		}()
		_, _ = io.WriteString(sdk, last+"\n")
		_ = sdk.Close()
		synctest.Wait()
		select {
		case line := <-heard:
			if line != last {
				t.Errorf("%q", line)
			}
		default:
			t.Error("it had not been written")
		}
		_ = in.Close()
		<-ended
	})
}

// TestPipeAnswersWhatWasAsked checks that requests before the end of the input are answered, also
// if the store is slow and obeys contexts.
func TestPipeAnswersWhatWasAsked(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := storetest.NewFaulty(taskstore.NewMemory(), storetest.Faults{Latency: lastReplies / 4}, 1)
		server := newServer(t, taskserver.Options{Store: store})
		var in strings.Builder
		for id, method := range []string{"tasks/get", "tasks/cancel", "tasks/get"} {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"taskId":"NOSUCHTASK",%s}}`+"\n", id, method, taskMeta)
		}
		var out bytes.Buffer
		reader, writer, err := New(Config{Server: server.Backend()}).Pipe(t.Context(), strings.NewReader(in.String()), &out)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, _ = io.Copy(io.Discard, reader) // as the SDK does, until the end
		took := time.Since(began)
		_ = writer.Close()
		synctest.Wait()
		if text := out.String(); strings.Count(text, `"code":-32602`) != 3 || took >= lastReplies {
			t.Errorf("after %v: %s", took, text)
		}
	})
}
