package gateway

import (
	"strings"
	"testing"
)

// A client that does not read has no more in its outbox than is open.
func TestOutbox(t *testing.T) {
	o := outbox{wake: make(chan struct{}, 1)}
	for range 1000 {
		o.put("a", []byte("question a"))
		o.takeBack("a")
	}
	o.put("b", []byte("question b"))
	if queue := o.take(); len(queue) != 1 || queue[0].id != "b" {
		t.Fatalf("%v", queue)
	}
	o.takeBack("b") // the client may have read it
	if queue := o.take(); len(queue) != 1 || !strings.Contains(string(queue[0].data), `"requestId":"b"`) {
		t.Fatalf("%v", queue)
	}
}
