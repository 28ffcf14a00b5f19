package push

import (
	"encoding/json"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// Stream is one live way to a client: a session's own stream (C-53), or that of a request
// that waits for a task (C-51). What it is to say waits in a queue until the stream's
// writer takes it. The mailbox's lock guards the queue.
type Stream struct {
	mailbox *Mailbox
	task    string // of a request that waits; "" is the session's own stream
	// revision is that of the request that the stream answers; nil is the one in which
	// the session knows each task.
	revision dialect.Teller
	queue    []message
	wake     chan struct{} // has room for one: nobody who puts ever blocks
}

// message is a question, the cancellation of one, or a task's status. Its name stands for
// it until it is taken: the request's ID, or a statusName.
type message struct {
	name string
	data []byte
}

// Wake returns a channel that has a value when there may be something to take.
func (c *Stream) Wake() <-chan struct{} { return c.wake }

// Take returns the messages to write, the changes that have just come included.
func (c *Stream) Take() (messages [][]byte) {
	c.mailbox.mu.Lock()
	defer c.mailbox.mu.Unlock()
	c.mailbox.handleInbox()
	for _, m := range c.queue {
		messages = append(messages, m.data)
	}
	c.queue = nil
	return messages
}

func (c *Stream) put(name string, data []byte) {
	c.queue = append(c.queue, message{name, data})
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// retract takes a message back that the writer has not taken yet, and returns whether it
// could: so a client that does not read has no more in its queue than is open.
func (c *Stream) retract(name string) bool {
	queued := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(m message) bool { return m.name == name })
	return len(c.queue) < queued
}

// replace puts a message in the place of the one with the same name.
func (c *Stream) replace(name string, data []byte) {
	c.retract(name)
	c.put(name, data)
}

// cancel tells the client that a question needs no answer any longer.
func (c *Stream) cancel(requestID string) {
	if !c.retract(requestID) {
		c.put(requestID, Cancelled(requestID, "the task no longer waits for the answer"))
	}
}

// Cancelled makes the notification that takes a request back. The ID is a string, or any
// ID as JSON.
func Cancelled(requestID any, reason string) []byte {
	data, _ := encodeRequest("", "notifications/cancelled", map[string]any{"requestId": requestID, "reason": reason}) // an ID always marshals
	return data
}

// encodeRequest makes a request, or a notification if there is no ID.
func encodeRequest(id, method string, params any) ([]byte, error) {
	return json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      string `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
}
