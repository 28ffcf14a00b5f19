package gosdk_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// cutter is a transport on which a plain call stays open until the answer of a tasks/cancel is given up in its middle.
type cutter struct {
	called, released chan struct{}
	giveUp           func()
}

// RoundTrip implements http.RoundTripper.
func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(`"lint_file"`)) {
		close(c.called)
		<-c.released
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && bytes.Contains(body, []byte(`"tasks/cancel"`)) && c.giveUp != nil {
		response.Body = &cutBody{response.Body, c.giveUp, r.Context()}
	}
	return response, err
}

// cutBody is a body whose request is given up at the first reading.
type cutBody struct {
	io.Closer
	giveUp func()
	ctx    context.Context
}

// Read implements io.Reader.
func (b *cutBody) Read([]byte) (int, error) {
	b.giveUp()
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// TestCutBody: a request that is given up in the middle of its answer ends no other.
func TestCutBody(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		tasks, sdk := newServer(t, taskserver.Options{}, wiretest.AllRevisionsCITools())
		c := &cutter{called: make(chan struct{}), released: make(chan struct{})}
		conn := dial(t, serveHTTP(t, revision, tasks, sdk), gosdk.ClientOptions{Revision: revision, HTTPClient: &http.Client{Transport: c}})
		client := pipeline.NewCIClient(conn)
		call, err := client.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: repository})
		if err != nil {
			t.Fatal(err)
		}
		linted := make(chan error, 1)
		go func() {
			_, err := client.LintFile(t.Context(), pipeline.LintInput{Path: "main.go"})
			linted <- err
		}()
		<-c.called
		ctx, cancel := context.WithCancel(t.Context())
		c.giveUp = cancel
		if err := call.Cancel(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the request that was given up: %v", err)
		}
		c.giveUp = nil
		close(c.released)
		if err := <-linted; err != nil {
			t.Errorf("another request: %v", err)
		}
	})
}
