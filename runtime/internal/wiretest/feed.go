package wiretest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Subscribe opens a subscription and reads its acknowledgement.
func (p *Peer) Subscribe(filter map[string]any) (f *Feed, agreed map[string]any) {
	p.T.Helper()
	f = p.Send("subscriptions/listen", map[string]any{"notifications": filter})
	return f, f.NextAcknowledgement()
}

// NextAcknowledgement returns the tasks that the next message acknowledges.
func (f *Feed) NextAcknowledgement() map[string]any {
	f.T.Helper()
	m := f.Next()
	if m.Method != "notifications/subscriptions/acknowledged" {
		f.T.Fatalf("no acknowledgement: %s", m.Text)
	}
	return DecodeParams(f.T, m.Text)["notifications"].(map[string]any)
}

// SubscribeTasks subscribes to tasks. It fails the test unless the server agrees to all of them.
func (p *Peer) SubscribeTasks(tasks ...string) *Feed {
	p.T.Helper()
	f, agreed := p.Subscribe(map[string]any{"taskIds": tasks})
	if want := fmt.Sprint(map[string]any{"taskIds": tasks}); fmt.Sprint(agreed) != want {
		p.T.Errorf("agreed to %v, not to %v", agreed, want)
	}
	return f
}

// NextTask returns the task in the next message. It fails the test unless the message is a task's
// state.
func (f *Feed) NextTask() map[string]any {
	f.T.Helper()
	m := f.Next()
	if m.Method != "notifications/tasks" {
		f.T.Fatalf("no task: %s", m.Text)
	}
	task := DecodeParams(f.T, m.Text)
	delete(task, "_meta")
	return task
}

// WantEnd fails the test unless the answer to the request comes next, and then the stream ends.
func (f *Feed) WantEnd() {
	f.T.Helper()
	if m := f.Next(); m.Result == nil || m.Method != "" {
		f.T.Errorf("not the answer to the request: %s", m.Text)
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

// UntilGone polls until the task has expired.
func (p *Peer) UntilGone(id string) {
	p.T.Helper()
	Await(p.T, func() (missing string) {
		if p.Task("tasks/get", id).Error != nil {
			return ""
		}
		return "the task stays"
	})
}

// Status returns the task in a message. It fails the test unless the message is a task's status.
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

// DecodeParams decodes the params of a message. It keeps the numbers as they came.
func DecodeParams(t testing.TB, text string) map[string]any {
	t.Helper()
	message, _ := decodeNumbers(t, []byte(text)).(map[string]any)
	params, _ := message["params"].(map[string]any)
	return params
}

// UntilMessage polls until the task has a status message.
func (p *Peer) UntilMessage(id, message string) {
	p.T.Helper()
	Await(p.T, func() (missing string) {
		if got := p.Task("tasks/get", id).OK().Text("statusMessage"); got != message {
			return fmt.Sprintf("the task says %q, not %q", got, message)
		}
		return ""
	})
}

// NextGuideMessage returns the next message. It fails the test unless the message has this method,
// in the form of the guide.
func (f *Feed) NextGuideMessage(method string) WireMessage {
	f.T.Helper()
	m := DecodeGuideMessage(f.T, f.Next().Text)
	if m.Method != method {
		f.T.Fatalf("%s, want %s", m.Text, method)
	}
	return m
}

// DecodeGuideMessage decodes a message. It fails the test if the message uses the form of another
// revision.
func DecodeGuideMessage(t testing.TB, text string) WireMessage {
	t.Helper()
	m := WireMessage{Text: text}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err, text)
	}
	if strings.Contains(text, "related-task") || m.Params.Task != nil {
		t.Errorf("words of 2025-11-25: %s", text)
	}
	return m
}

// In the functions below, the client has the tasks. It speaks literal JSON.

// TaskCapabilities returns the capabilities of a client that answers questions as tasks.
func TaskCapabilities(tasks string) string {
	return `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{},"tasks":` + tasks + `}`
}

// AllTaskCapabilities declares every kind of task of a client.
const AllTaskCapabilities = `{"list":{},"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}`

// RemoteTask returns the JSON of a client's task.
func RemoteTask(id, status string) string {
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":60000,"pollInterval":100}`, id, status)
}

// RemoteTaskCreated returns the response that creates a client's task.
func RemoteTaskCreated(id string) string {
	return `"result":{"task":` + RemoteTask(id, "working") + `}`
}

// WithRelatedTask adds the metadata that C-41 requires of an answer to tasks/result.
func WithRelatedTask(id, response string) string {
	return strings.TrimSuffix(response, "}") + fmt.Sprintf(`,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":%q}}}`, id)
}

// NextFollowUp returns the next message. It fails the test unless that is a request about a
// client's task.
func (f *Feed) NextFollowUp(method, remote string) WireMessage {
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

// NextTaskQuestion returns the next message. It fails the test unless that is a question that asks
// for a task.
func (f *Feed) NextTaskQuestion(task string) WireMessage {
	f.T.Helper()
	m := f.NextQuestion(task)
	if m.Params.Task == nil {
		f.T.Fatalf("the question asks for no task: %s", m.Text)
	}
	return m
}
