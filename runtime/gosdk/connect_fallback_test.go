package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// methods is a transport that notes the methods of the requests.
type methods struct {
	mu   sync.Mutex
	sent []string
}

// RoundTrip implements http.RoundTripper.
func (m *methods) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	var message struct{ Method string }
	_ = json.Unmarshal(body, &message) // a GET has no body
	m.mu.Lock()
	m.sent = append(m.sent, message.Method)
	m.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// TestConnectFindsTasks: a client that names no revision speaks the one in which the server has tasks. If that is the
// first, it sends nothing more.
func TestConnectFindsTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		speaks      []string
		want        string
		initializes bool
	}{
		"both":            {nil, mcptask.Revision20260728, false},
		"2026-07-28 only": {[]string{mcptask.Revision20260728}, mcptask.Revision20260728, false},
		"2025-11-25 only": {[]string{mcptask.Revision20251125}, mcptask.Revision20251125, true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			url, _ := wiretest.Serve(t, taskserver.Options{Revisions: tc.speaks})
			sent := &methods{}
			conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{HTTPClient: &http.Client{Transport: sent}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if conn.Revision() != tc.want || slices.Contains(sent.sent, "initialize") != tc.initializes {
				t.Errorf("%s after %q", conn.Revision(), sent.sent)
			}
			checkPipeline(t, pipeline.NewCIClient(conn), false)
		})
	}
	bubble.Run(t, "no tasks at all", func(t *testing.T) {
		sdk := mcp.NewServer(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
		mcp.AddTool(sdk, &mcp.Tool{Name: "tool"}, func(context.Context, *mcp.CallToolRequest, number) (*mcp.CallToolResult, number, error) {
			return nil, number{N: 1}, nil
		})
		server := memnet.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true}), nil)
		defer server.Close()
		conn, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if conn.Revision() != mcptask.Revision20260728 {
			t.Errorf("it speaks %s", conn.Revision())
		}
		wantNumber(t, start(t, conn), 1)
	})
}
