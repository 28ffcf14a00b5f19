package wiretest

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

// AllCapabilities declares that a client answers every kind of question.
const AllCapabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

// NoteSpec is the question for a NoteInput.
var NoteSpec = mcptask.InputSpec{Name: "Note", Message: "A note?",
	Schema: `{"type":"object","properties":{"note":{"type":"string","maxLength":5}},"required":["note"]}`}

// AskInput is the input of the tools that ask.
type AskInput struct {
	Steps []string `json:"steps"`
	// GiveUp is after how many milliseconds the handler withdraws the first question. 0 means
	// never.
	GiveUp int `json:"giveUp"`
	// Linger is for how many milliseconds the handler works afterwards.
	Linger int `json:"linger"`
}

// AskTools returns tools that ask in every way. Their results are texts that say how each question
// ended.
func AskTools() mcptask.Tools {
	optional := mcptask.Policy{Task: mcptask.TaskOptional, Poll: 20 * time.Millisecond}
	restart := optional
	restart.OnLost = mcptask.RestartWhenLost
	brief := optional
	brief.TTL = 5 * time.Second
	tool := func(name string, policy mcptask.Policy, f func(context.Context, *mcptask.Task, AskInput) (string, error)) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: OpenObject, Policy: policy}, f)
	}
	return mcptask.Tools{Service: "Ask", Impl: struct{}{}, Tools: []mcptask.Tool{
		tool("ask", restart, askSteps),
		tool("ask_briefly", brief, askSteps),
		tool("ask_and_fail", optional, func(ctx context.Context, task *mcptask.Task, _ AskInput) (string, error) {
			_, err := mcptask.Ask[NoteInput](ctx, task, NoteSpec, "one", "")
			return "", err
		}),
		tool("sample", optional, func(ctx context.Context, task *mcptask.Task, in AskInput) (string, error) {
			blocks := []mcptask.Content{}
			for _, step := range in.Steps {
				blocks = append(blocks, mcptask.TextContent(step))
			}
			if len(blocks) == 0 {
				blocks = append(blocks, mcptask.TextContent("Sum up."))
			}
			result, err := task.Sample(ctx, "sum", mcptask.SampleRequest{MaxTokens: 10, Messages: []mcptask.SampleMessage{{Role: "user", Content: blocks}}})
			if err != nil {
				return nameOutcome(err), nil
			}
			content, err := json.Marshal(result.Content)
			return result.Role + " " + result.Model + " " + string(content), err
		}),
		tool("roots", optional, func(ctx context.Context, task *mcptask.Task, _ AskInput) (string, error) {
			roots, err := task.Roots(ctx, "where")
			if err != nil {
				return nameOutcome(err), nil
			}
			return fmt.Sprint(roots), nil
		}),
		tool("never_a_task", mcptask.Policy{Task: mcptask.TaskForbidden}, func(ctx context.Context, task *mcptask.Task, _ AskInput) (string, error) {
			return askSteps(ctx, task, AskInput{Steps: []string{"one"}})
		}),
		tool("url", optional, func(ctx context.Context, task *mcptask.Task, _ AskInput) (string, error) {
			return nameOutcome(task.AskURL(ctx, "pay", "Pay here.", "https://example.com/pay")), nil
		}),
	}}
}

func askSteps(ctx context.Context, task *mcptask.Task, in AskInput) (string, error) {
	var answers []string
	for i, step := range in.Steps {
		asking := ctx
		if i == 0 && in.GiveUp > 0 {
			var cancel context.CancelFunc
			asking, cancel = context.WithTimeout(ctx, time.Duration(in.GiveUp)*time.Millisecond)
			defer cancel()
		}
		answer, err := mcptask.Ask[NoteInput](asking, task, NoteSpec, step, step+"?")
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			answer.Note = nameOutcome(err)
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

// nameOutcome names the error that a question ended with.
func nameOutcome(err error) string {
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

// ServeAsk starts a server of tools that ask.
func ServeAsk(t testing.TB, s Setup) (url string) {
	t.Helper()
	s.Tools = append(s.Tools, AskTools(), questions.AskerTools(FirstAsker{}))
	url, _ = ServeWith(t, s)
	return url
}

// FirstAsker implements the tools that ask before a task.
type FirstAsker struct{}

func (FirstAsker) AskFirst(_ context.Context, task *mcptask.Task, _ questions.Input, sure questions.Sure, which questions.Which) (questions.Report, error) {
	if !sure.Yes || which.One != "a" || len(which.Many) != 1 {
		return questions.Report{}, fmt.Errorf("got %v and %v", sure, which)
	}
	return questions.Report{Done: true}, nil
}

func (FirstAsker) AskOnly(_ context.Context, which questions.Which) error {
	if which.One != "a" {
		return fmt.Errorf("got %v", which)
	}
	return nil
}

// WireMessage is a message on a stream.
type WireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ID        string          `json:"id"` // the guide's name of a task
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
			// TaskID is the guide's name of the task that a question asks for.
			TaskID string `json:"taskId"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Text   string          `json:"-"`
}

// Feed is a stream that a peer reads.
type Feed struct {
	T        testing.TB
	Messages chan WireMessage
	Stop     func()
}

// Open sends a request and reads its event stream. The tap of the server checks the messages.
func (p *Peer) Open(method, body string, edits ...Edit) *Feed {
	p.T.Helper()
	client := &http.Client{Transport: p.Client.Transport}
	ctx, cancel := context.WithCancel(context.Background())
	var res *http.Response
	Await(p.T, func() (missing string) {
		var err error
		if res, err = client.Do(p.NewRequest(ctx, method, body, edits...)); err != nil {
			p.T.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			return ""
		}
		res.Body.Close()
		missing = fmt.Sprintf("%s of %.200s: %d", method, body, res.StatusCode)
		if res.StatusCode != http.StatusConflict { // the former GET stream is still open
			p.T.Fatal(missing)
		}
		return missing
	})
	f := &Feed{T: p.T, Messages: make(chan WireMessage, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(f.Messages)
		for data := range Events(res.Body) {
			m := WireMessage{Text: string(data)}
			if err := json.Unmarshal(data, &m); err != nil {
				p.T.Errorf("%v: %s", err, data)
			}
			if m.Method == "notifications/tasks/status" && !p.Statuses {
				continue
			}
			f.Messages <- m
		}
	}()
	f.Stop = func() { cancel(); <-done; res.Body.Close() }
	p.T.Cleanup(f.Stop)
	return f
}

// OpenGet opens the session's standalone stream.
func (p *Peer) OpenGet() *Feed {
	p.T.Helper()
	return p.Open(http.MethodGet, "", WithHeader("Accept", "text/event-stream"))
}

// Send sends a request and reads the stream that answers it.
func (p *Peer) Send(method string, params map[string]any) *Feed {
	p.T.Helper()
	body, edits := p.Request(method, params)
	return p.Open(http.MethodPost, body, edits...)
}

// Result sends tasks/result and reads the stream that answers it.
func (p *Peer) Result(id string) *Feed {
	p.T.Helper()
	return p.Send("tasks/result", map[string]any{"taskId": id})
}

// Next returns the next message.
func (f *Feed) Next() WireMessage {
	f.T.Helper()
	select {
	case m, ok := <-f.Messages:
		if !ok {
			f.T.Fatal("the stream has ended")
		}
		return m
	case <-time.After(Patience):
		f.T.Fatal("nothing on the stream")
	}
	return WireMessage{}
}

// NextQuestion returns the next message. It fails the test unless that is a question of the task.
func (f *Feed) NextQuestion(task string) WireMessage {
	f.T.Helper()
	m := f.Next()
	if m.Method == "" || m.ID == nil || m.Params.Meta.Related.TaskID != task {
		f.T.Fatalf("not a question of %s: %s", task, m.Text)
	}
	return m
}

// NextCancellation returns the next message. It fails the test unless that cancels the question.
func (f *Feed) NextCancellation(question WireMessage) WireMessage {
	f.T.Helper()
	m := f.Next()
	if m.Method != "notifications/cancelled" || string(m.Params.RequestID) != string(question.ID) {
		f.T.Errorf("%s, want a cancellation of %s", m.Text, question.ID)
	}
	return m
}

// WantSilence fails the test if a message comes.
func (f *Feed) WantSilence() {
	f.T.Helper()
	select {
	case m, ok := <-f.Messages:
		if ok {
			f.T.Errorf("unexpected: %s", m.Text)
		}
	case <-time.After(80 * time.Millisecond):
	}
}

// Respond answers a request from the server.
func (p *Peer) Respond(id json.RawMessage, response string, edits ...Edit) {
	p.T.Helper()
	r := p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, response), edits...)
	if r.Status != http.StatusAccepted {
		p.T.Errorf("response: %d %s", r.Status, r.Body)
	}
}

// AcceptNote returns a response that accepts a question for a note.
func AcceptNote(text string) string {
	return fmt.Sprintf(`"result":{"action":"accept","content":{"note":%q}}`, text)
}

// TaskText waits for a task to end and returns the text of its result.
func (p *Peer) TaskText(id string) string {
	p.T.Helper()
	var r *Response
	if p.Revision == ModernRevision {
		r = p.Until(id, "completed", "failed", "cancelled")
		r.Result, _ = json.Marshal(r.Get("result"))
	} else {
		r = p.Task("tasks/result", id).OK()
	}
	return ToolText(r.Result)
}

// ToolText returns the first text of a tool's result, with a prefix for a tool error.
func ToolText(result json.RawMessage) string {
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

// AskArguments returns the arguments of a tool that asks in these steps.
func AskArguments(steps ...string) map[string]any { return map[string]any{"steps": steps} }
