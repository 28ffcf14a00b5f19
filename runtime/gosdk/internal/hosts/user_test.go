package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// user is the person at a host. It approves whatever it is asked.
type user struct {
	thinks time.Duration // before each answer
	blind  bool          // the host fails to show questions, although it declares elicitation

	mu      sync.Mutex
	answers int
}

// answer asks the user. It returns nil if ctx ends first.
func (u *user) answer(ctx context.Context, schema json.RawMessage) map[string]any {
	select {
	case <-time.After(u.thinks):
	case <-ctx.Done():
		return nil
	}
	u.count()
	var form struct {
		Properties map[string]struct{ Type string }
	}
	_ = json.Unmarshal(schema, &form) // a question without fields has an empty answer
	content := map[string]any{}
	for name, field := range form.Properties {
		switch field.Type {
		case "boolean":
			content[name] = true
		case "string":
			content[name] = "as planned"
		}
	}
	return content
}

// count counts an answer.
func (u *user) count() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers++
}

// elicitation is the question in an elicitation/create.
type elicitation struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"requestedSchema"`
	Task    json.RawMessage `json:"task"`
	TaskID  string          `json:"taskId"` // of tasks/get, tasks/result and tasks/cancel
}

// ownTask is a question that the host keeps as a task.
type ownTask struct {
	created time.Time
	done    chan struct{}
	result  json.RawMessage // once done is closed
}

// show shows a question to the user and returns the result of elicitation/create. It returns nil
// if the question is withdrawn.
func (c *client) show(ctx context.Context, q elicitation) json.RawMessage {
	c.signalAll(sawQuestion)
	defer c.signalAll(sawAnswer)
	content := c.user.answer(ctx, q.Schema)
	if content == nil {
		return nil
	}
	result, err := json.Marshal(map[string]any{"action": "accept", "content": content})
	if err != nil {
		c.t.Error(err)
	}
	return result
}

// answerServer answers a request of the server.
func (c *client) answerServer(m message) {
	var q elicitation
	if err := json.Unmarshal(m.Params, &q); err != nil {
		c.t.Error(err)
		return
	}
	reply := func(result json.RawMessage) {
		if result != nil {
			c.tell(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
		}
	}
	ctx, cancel := context.WithCancel(c.ended)
	c.mu.Lock()
	_, withdrawn := c.forms[string(m.ID)] // on another stream
	c.forms[string(m.ID)] = cancel
	c.mu.Unlock()
	if withdrawn {
		cancel()
	}
	if !c.way.elicits {
		c.t.Errorf("a question to a host that has not declared elicitation: %s", m.Params)
	}
	c.work.Go(func() {
		defer cancel()
		switch {
		case c.user.blind:
			c.tell(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no window"}}`, m.ID))
		case m.Method == "elicitation/create" && q.Task == nil:
			reply(c.show(ctx, q))
		case m.Method == "elicitation/create":
			task := &ownTask{created: time.Now(), done: make(chan struct{})}
			id := "question " + string(m.ID)
			c.mu.Lock()
			c.tasks[id] = task
			c.mu.Unlock()
			reply([]byte(fmt.Sprintf(`{"task":%s}`, task.encode(id))))
			task.result = c.show(c.ended, q)
			close(task.done)
		default:
			c.answerTask(ctx, m.Method, q.TaskID, reply)
		}
	})
}

// answerTask answers a request about a task of the host's own.
func (c *client) answerTask(ctx context.Context, method, id string, reply func(json.RawMessage)) {
	c.mu.Lock()
	task := c.tasks[id]
	c.mu.Unlock()
	if task == nil {
		c.t.Errorf("%s of an unknown task %q", method, id)
		return
	}
	if method != "tasks/result" {
		reply(task.encode(id))
		return
	}
	select {
	case <-task.done:
		reply(task.result)
	case <-ctx.Done():
	}
}

// encode returns the task as VS Code shows it.
func (o *ownTask) encode(id string) json.RawMessage {
	status := "working"
	select {
	case <-o.done:
		status = "completed"
	default:
	}
	at := o.created.UTC().Format(time.RFC3339)
	return fmt.Appendf(nil, `{"taskId":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,"ttl":null,"pollInterval":1000}`, id, status, at, at)
}

// withdraw takes back a question that the server has cancelled.
func (c *client) withdraw(m message) {
	var cancelled struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &cancelled) // the tap checks it
	c.mu.Lock()
	cancel := c.forms[string(cancelled.RequestID)]
	if cancel == nil {
		cancel = func() {}
		c.forms[string(cancelled.RequestID)] = cancel
	}
	c.mu.Unlock()
	cancel()
}
