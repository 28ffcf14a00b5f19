package wiretest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// checkStreamed holds what comes on the stream of a request against the schema.
func (p *Peer) checkStreamed(c *wirecheck.Checker, request string, m WireMessage, data []byte) error {
	var sent struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal([]byte(request), &sent) // a GET has none
	switch {
	case sent.Method != "subscriptions/listen" && m.Method == "":
		return nil // whoever asked knows what it is the answer to
	case sent.Method != "subscriptions/listen":
		return c.Message(p.schema(), data)
	case m.Method == "" && string(m.ID) != string(sent.ID):
		return fmt.Errorf("the answer to another request: %s", data)
	case m.Method == "":
		return c.Response(ModernRevision, sent.Method, data)
	case m.Method == "notifications/progress" || m.Method == "notifications/message":
		return fmt.Errorf("not for a subscription: %s", data) // E-67
	case string(m.Params.Meta.Subscription) != string(sent.ID): // E-68
		return fmt.Errorf("of another subscription: %s", data)
	}
	return c.Message(ModernRevision, data)
}

// Subscribe opens a subscription and reads its acknowledgement.
func (p *Peer) Subscribe(filter map[string]any) (f *Feed, agreed map[string]any) {
	p.T.Helper()
	f = p.Send("subscriptions/listen", map[string]any{"notifications": filter})
	return f, f.Acknowledged()
}

func (f *Feed) Acknowledged() map[string]any {
	f.T.Helper()
	m := f.Next()
	if m.Method != "notifications/subscriptions/acknowledged" {
		f.T.Fatalf("no acknowledgement: %s", m.Text)
	}
	return Numbers(f.T, m.Text)["notifications"].(map[string]any)
}

// Follow is subscribe to tasks, all of which have to be agreed to.
func (p *Peer) Follow(tasks ...string) *Feed {
	p.T.Helper()
	f, agreed := p.Subscribe(map[string]any{"taskIds": tasks})
	if want := fmt.Sprint(map[string]any{"taskIds": tasks}); fmt.Sprint(agreed) != want {
		p.T.Errorf("agreed to %v, not to %v", agreed, want)
	}
	return f
}

// Task is the next message, which is the state of a task.
func (f *Feed) Task() map[string]any {
	f.T.Helper()
	m := f.Next()
	if m.Method != "notifications/tasks" {
		f.T.Fatalf("no task: %s", m.Text)
	}
	task := Numbers(f.T, m.Text)
	delete(task, "_meta")
	return task
}

// Ends fails unless the answer to the request comes next, and nothing else.
func (f *Feed) Ends() {
	f.T.Helper()
	if m := f.Next(); m.Result == nil || m.Method != "" {
		f.T.Errorf("no end: %s", m.Text)
	}
	select {
	case m, ok := <-f.Messages:
		if ok {
			f.T.Errorf("after the end: %s", m.Text)
		}
	case <-time.After(Patience):
		f.T.Error("the stream stays open")
	}
}

// UntilGone polls until the task's ttl is over.
func (p *Peer) UntilGone(id string) {
	p.T.Helper()
	for end := time.Now().Add(Patience); p.Task("tasks/get", id).Error == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.T.Fatal("the task stays")
		}
	}
}

// Status reads a message that is the status of a task.
func (m WireMessage) Status(t testing.TB) (task map[string]any) {
	t.Helper()
	var n struct {
		Method string
		Params map[string]any
	}
	if err := json.Unmarshal([]byte(m.Text), &n); err != nil || n.Method != "notifications/tasks/status" {
		t.Fatalf("no status: %v: %s", err, m.Text)
	}
	return n.Params
}

// Numbers are the params of a message, with the numbers as they came.
func Numbers(t testing.TB, text string) map[string]any {
	t.Helper()
	var n struct{ Params map[string]any }
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&n); err != nil {
		t.Fatal(err)
	}
	return n.Params
}

// UntilMessage polls until the task has a status message.
func (p *Peer) UntilMessage(id, message string) {
	p.T.Helper()
	for end := time.Now().Add(Patience); p.Task("tasks/get", id).OK().Text("statusMessage") != message; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.T.Fatalf("the task never says %q", message)
		}
	}
}

// GuideMessage is a request of the server's in the guide's form.
type GuideMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ID   string                     `json:"id"`
		Task json.RawMessage            `json:"task"`
		Meta map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Text string `json:"-"`
}

// Made is the ID of the task that a question asks for, "" where it asks for none.
func (m GuideMessage) Made() (id string) {
	_ = json.Unmarshal(m.Params.Meta["taskId"], &id) // none is ""
	return id
}

// Read reads a message, which names no task the way that other revisions do.
func Read(t testing.TB, text string) GuideMessage {
	t.Helper()
	m := GuideMessage{Text: text}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err, text)
	}
	if strings.Contains(text, "related-task") || m.Params.Task != nil {
		t.Errorf("words of 2025-11-25: %s", text)
	}
	return m
}

// Heard is the next message on a stream, which is of a method.
func (f *Feed) Heard(method string) GuideMessage {
	f.T.Helper()
	m := Read(f.T, f.Next().Text)
	if m.Method != method {
		f.T.Fatalf("%s, want %s", m.Text, method)
	}
	return m
}

// The client as the receiver of tasks, in literal JSON.

// Takes declares that a client takes such questions as tasks.
func Takes(tasks string) string {
	return `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{},"tasks":` + tasks + `}`
}

const TakesAll = `{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}`

// RemoteTask is a client's task.
func RemoteTask(id, status string) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000,"pollInterval":100}`, id, status)
}

func RemoteBegan(id string) string { return `"result":{"task":` + RemoteTask(id, "working") + `}` }

// RelatedTo adds what C-41 asks of the answer to tasks/result.
func RelatedTo(id, response string) string {
	return strings.TrimSuffix(response, "}") + fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, id)
}

// FollowUp is the next message, which is a request about a client's task.
func (f *Feed) FollowUp(method, remote string) WireMessage {
	f.T.Helper()
	m := f.Next()
	if m.Method != method || m.ID == nil || m.Params.TaskID != remote {
		f.T.Fatalf("no %s of %s: %s", method, remote, m.Text)
	}
	if strings.Contains(m.Text, "_meta") {
		f.T.Errorf("metadata in %s", m.Text)
	}
	return m
}

// Augmented is the next message, which is a question that asks for a task.
func (f *Feed) Augmented(task string) WireMessage {
	f.T.Helper()
	m := f.Question(task)
	if m.Params.Task == nil {
		f.T.Fatalf("no task is asked for: %s", m.Text)
	}
	return m
}
