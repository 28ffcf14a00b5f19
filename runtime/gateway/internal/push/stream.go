package push

import (
	"encoding/json"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// Stream is an open way to a client: a session's own stream (C-53), or that of a request that waits
// for a task (C-51). Its messages wait in a queue until its writer takes them. The mailbox's lock
// guards the queue.
type Stream struct {
	mailbox *Mailbox
	task    string // of the waiting request; "" means the session's own stream
	// revision is the revision of the waiting request. nil means the revision in which the session
	// knows each task.
	revision protocol.Teller
	// call says that this is the stream of a call, which may end before its task does. A question that
	// the client got there stays with the client. giveUp ends the call's wait.
	call   bool
	giveUp func()
	// spare says that a session's own stream is meant for calls. Others are preferred.
	spare bool
	queue []message
	wake  chan struct{} // has a buffer of one, so that put never blocks
}

// message is a question, a cancellation, or a task's status. Its name identifies it in the queue:
// the request's ID, or a statusName.
type message struct {
	name string
	data []byte
}

// Wake returns a channel that receives a value when there may be messages to take.
func (c *Stream) Wake() <-chan struct{} { return c.wake }

// Take returns the messages to write. It handles the mailbox's inbox first.
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

// retract removes a message that the writer has not taken yet. It returns true if it has removed
// one. So the queue of a client that does not read holds only open questions and the last status.
func (c *Stream) retract(name string) bool {
	queued := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(m message) bool { return m.name == name })
	return len(c.queue) < queued
}

// Cancelled returns a notification that cancels a request. The ID is a string, or any ID as JSON.
func Cancelled(requestID any, reason string) []byte {
	data, _ := EncodeRequest("", "notifications/cancelled", map[string]any{"requestId": requestID, "reason": reason}) // an ID always marshals
	return data
}

// EncodeRequest returns a request, or a notification if id is "".
func EncodeRequest(id, method string, params any) ([]byte, error) {
	return json.Marshal(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      string `json:"id,omitempty"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
}
