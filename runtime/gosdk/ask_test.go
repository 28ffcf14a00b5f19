package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const canAll = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

var noteSpec = mcptask.InputSpec{Name: "Note", Message: "A note?",
	Schema: `{"type":"object","properties":{"note":{"type":"string","maxLength":5}},"required":["note"]}`}

type askInput struct {
	Steps []string `json:"steps"`
	// GiveUp is after how many milliseconds the first question is withdrawn.
	GiveUp int `json:"giveUp"`
	// Linger is how many milliseconds the handler works afterwards.
	Linger int `json:"linger"`
}

// askTools ask in every way, and report what they were told as text.
func askTools() mcptask.Tools {
	optional := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 20 * time.Millisecond}
	restart := optional
	restart.OnLost = mcptask.RestartWhenLost
	tool := func(name string, policy mcptask.Policy, f func(context.Context, *mcptask.Task, askInput) (string, error)) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: openObject, Policy: policy}, f)
	}
	return mcptask.Tools{Service: "Ask", Impl: struct{}{}, Tools: []mcptask.Tool{
		tool("ask", restart, askSteps),
		tool("ask_and_fail", optional, func(ctx context.Context, task *mcptask.Task, _ askInput) (string, error) {
			_, err := mcptask.Ask[noteInput](ctx, task, noteSpec, "one", "")
			return "", err
		}),
		tool("sample", optional, func(ctx context.Context, task *mcptask.Task, _ askInput) (string, error) {
			result, err := task.Sample(ctx, "sum", mcptask.SampleRequest{MaxTokens: 10,
				Messages: []mcptask.SampleMessage{{Role: "user", Content: mcptask.TextContent("Sum up.")}}})
			if err != nil {
				return told(err), nil
			}
			return result.Role + " " + result.Model + " " + string(result.Content), nil
		}),
		tool("roots", optional, func(ctx context.Context, task *mcptask.Task, _ askInput) (string, error) {
			roots, err := task.Roots(ctx, "where")
			if err != nil {
				return told(err), nil
			}
			return fmt.Sprint(roots), nil
		}),
		tool("url", optional, func(ctx context.Context, task *mcptask.Task, _ askInput) (string, error) {
			return told(task.AskURL(ctx, "pay", "Pay here.", "https://example.com/pay")), nil
		}),
	}}
}

func askSteps(ctx context.Context, task *mcptask.Task, in askInput) (string, error) {
	var answers []string
	for i, step := range in.Steps {
		asking := ctx
		if i == 0 && in.GiveUp > 0 {
			var cancel context.CancelFunc
			asking, cancel = context.WithTimeout(ctx, time.Duration(in.GiveUp)*time.Millisecond)
			defer cancel()
		}
		answer, err := mcptask.Ask[noteInput](asking, task, noteSpec, step, step+"?")
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			answer.Note = told(err)
		}
		answers = append(answers, answer.Note)
	}
	if in.Linger > 0 {
		select {
		case <-time.After(time.Duration(in.Linger) * time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return strings.Join(answers, ","), nil
}

// told names what a question ended with.
func told(err error) string {
	for name, target := range map[string]error{
		"declined": mcptask.ErrDeclined, "dismissed": mcptask.ErrDismissed, "cannot ask": mcptask.ErrCannotAsk,
		"invalid": mcptask.ErrInvalidAnswer, "given up": context.DeadlineExceeded,
	} {
		if errors.Is(err, target) {
			return name
		}
	}
	return fmt.Sprint(err)
}

// serveAsk starts a server of tools that ask.
func serveAsk(t testing.TB, s setup) (url string) {
	t.Helper()
	s.tools = append(s.tools, askTools(), questions.AskerTools(firstAsker{}))
	url, _ = serveWith(t, s)
	return url
}

type firstAsker struct{}

func (firstAsker) AskFirst(_ context.Context, task *mcptask.Task, _ questions.Input, sure questions.Sure, which questions.Which) (questions.Report, error) {
	if !sure.Yes || which.One != "a" || len(which.Many) != 1 {
		return questions.Report{}, fmt.Errorf("got %v and %v", sure, which)
	}
	return questions.Report{Done: true}, nil
}

func (firstAsker) AskOnly(_ context.Context, which questions.Which) error {
	if which.One != "a" {
		return fmt.Errorf("got %v", which)
	}
	return nil
}

// wireMessage is a message on a stream.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Message   string          `json:"message"`
		URL       string          `json:"url"`
		RequestID json.RawMessage `json:"requestId"`
		TaskID    string          `json:"taskId"`
		Task      json.RawMessage `json:"task"`
		Schema    json.RawMessage `json:"requestedSchema"`
		Meta      struct {
			Related struct {
				TaskID string `json:"taskId"`
			} `json:"io.modelcontextprotocol/related-task"`
			Subscription json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	text   string
}

// feed is a stream that a peer reads.
type feed struct {
	t        testing.TB
	messages chan wireMessage
	stop     func()
}

// open sends a request and reads its event stream.
func (p *peer) open(method, body string, edits ...edit) *feed {
	p.t.Helper()
	client := &http.Client{Transport: p.client.Transport}
	ctx, cancel := context.WithCancel(context.Background())
	var res *http.Response
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var err error
		if res, err = client.Do(p.start(ctx, method, body, edits...)); err != nil {
			p.t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			break
		}
		res.Body.Close()
		if res.StatusCode != http.StatusConflict || time.Now().After(end) { // the former GET stream is still open
			p.t.Fatalf("%s of %.200s: %d", method, body, res.StatusCode)
		}
	}
	c, err := checker()
	if err != nil {
		p.t.Fatal(err)
	}
	f := &feed{t: p.t, messages: make(chan wireMessage, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(f.messages)
		for data := range events(res.Body) {
			m := wireMessage{text: string(data)}
			if err := json.Unmarshal(data, &m); err != nil {
				p.t.Errorf("%v: %s", err, data)
			}
			if err := p.checkStreamed(c, body, m, data); err != nil {
				p.t.Error(err)
			}
			if m.Method == "notifications/tasks/status" && !p.statuses {
				continue
			}
			f.messages <- m
		}
	}()
	f.stop = func() { cancel(); <-done; res.Body.Close() }
	p.t.Cleanup(f.stop)
	return f
}

func (p *peer) get() *feed {
	p.t.Helper()
	return p.open(http.MethodGet, "", withHeader("Accept", "text/event-stream"))
}

// send opens the stream of a request.
func (p *peer) send(method string, params map[string]any) *feed {
	p.t.Helper()
	body, edits := p.request(method, params)
	return p.open(http.MethodPost, body, edits...)
}

func (p *peer) result(id string) *feed {
	p.t.Helper()
	return p.send("tasks/result", map[string]any{"taskId": id})
}

// next is the next message.
func (f *feed) next() wireMessage {
	f.t.Helper()
	select {
	case m, ok := <-f.messages:
		if !ok {
			f.t.Fatal("the stream has ended")
		}
		return m
	case <-time.After(patience):
		f.t.Fatal("nothing on the stream")
	}
	return wireMessage{}
}

// question is the next message, which is a question of the task.
func (f *feed) question(task string) wireMessage {
	f.t.Helper()
	m := f.next()
	if m.Method == "" || m.ID == nil || m.Params.Meta.Related.TaskID != task {
		f.t.Fatalf("no question of %s: %s", task, m.text)
	}
	return m
}

// silent fails if anything comes.
func (f *feed) silent() {
	f.t.Helper()
	select {
	case m, ok := <-f.messages:
		if ok {
			f.t.Errorf("unexpected: %s", m.text)
		}
	case <-time.After(80 * time.Millisecond):
	}
}

// respond answers a request of the server's.
func (p *peer) respond(id json.RawMessage, response string, edits ...edit) {
	p.t.Helper()
	r := p.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, response), edits...)
	if r.status != http.StatusAccepted {
		p.t.Errorf("response: %d %s", r.status, r.body)
	}
}

func note(text string) string {
	return fmt.Sprintf(`"result":{"action":"accept","content":{"note":%q}}`, text)
}

// text is the text of a tool result.
func (p *peer) outcome(id string) string {
	p.t.Helper()
	var r *response
	if p.revision == modernRevision {
		r = p.until(id, "completed", "failed", "cancelled")
		r.Result, _ = json.Marshal(r.get("result"))
	} else {
		r = p.task("tasks/result", id).ok()
	}
	return toolText(r.Result)
}

func toolText(result json.RawMessage) string {
	var content struct {
		Content []struct{ Text string }
		IsError bool
	}
	if json.Unmarshal(result, &content) != nil || len(content.Content) == 0 {
		return string(result)
	}
	if content.IsError {
		return "isError: " + content.Content[0].Text
	}
	return content.Content[0].Text
}

func ask(steps ...string) map[string]any { return map[string]any{"steps": steps} }
