package push

import (
	"strings"
	"testing"
)

// The queue of a client that does not read holds only open questions.
func TestQueue(t *testing.T) {
	h := &Hub{}
	c := &Stream{mailbox: &Mailbox{hub: h}, wake: make(chan struct{}, 1)}
	for range 1000 {
		c.put("a", []byte("question a"))
		(&sentRequest{on: c, id: "a"}).cancel()
	}
	c.put("b", []byte("question b"))
	if queue := c.Take(); len(queue) != 1 || string(queue[0]) != "question b" {
		t.Fatalf("%s", queue)
	}
	(&sentRequest{on: c, id: "b"}).cancel() // the client may have read the question
	if queue := c.Take(); len(queue) != 1 || !strings.Contains(string(queue[0]), `"requestId":"b"`) {
		t.Fatalf("%s", queue)
	}
}
