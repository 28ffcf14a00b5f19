package console_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestStreamsEndWithTheServer checks that pages that follow changes do not hold up the shutdown of their HTTP server
// once the task server is closed.
func TestStreamsEndWithTheServer(t *testing.T) {
	tasks, err := taskserver.New(taskserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	operators, err := serveConsole(t.Context(), tasks, "127.0.0.1:0", make(chan error, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operators.Close() })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+operators.Addr+"/console/events?view=overview", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatal(stream.Status)
	}
	if err := tasks.Close(); err != nil {
		t.Fatal(err)
	}
	if err := operators.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Error(err)
	}
}
