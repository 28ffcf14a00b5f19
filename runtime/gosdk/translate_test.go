package gosdk

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// renaming is an invented revision.
func renaming() *dialect.Translation {
	return dialect.NewTranslation(dialect.Renaming{
		Protocol: "2", BaseProtocol: "1", VersionKey: "version",
		Methods: map[string]string{"a/get": "a/read"},
		Request: &dialect.Shape{Names: map[string]string{"old": "new"}},
		Results: map[string]*dialect.Shape{"a/get": {Names: map[string]string{"old": "new"}}},
	})
}

// answering is a server of one answer, which keeps what it was asked.
type answering struct {
	kind, text string
	err        error
	asked      *http.Request
	body       string
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked = r
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.body = string(data)
	}
	if a.err != nil {
		return nil, a.err
	}
	h := http.Header{"Content-Type": {a.kind}, "Content-Length": {"5"}}
	return &http.Response{StatusCode: http.StatusOK, Header: h, ContentLength: 5, Body: io.NopCloser(strings.NewReader(a.text))}, nil
}

// TestTranslator: HTTP has the revision's names, all above it the base's.
func TestTranslator(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const own, base = `{"jsonrpc":"2.0","id":1,"result":{"new":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"old":1}}`
		for _, test := range []struct {
			kind, text, want string
			length           int64
		}{
			{"application/json", own, base, -1},
			{"text/event-stream", "event: message\ndata: {\"id\":1,\ndata: \"result\":{\"new\":1}}\n\ndata: x\n\n", "data: {\"id\":1,\"result\":{\"old\":1}}\nevent: message\n\ndata: x\n\n", -1},
			{"application/json", "no JSON", "no JSON", -1},
			{"text/plain", own, own, 5},
			{"", "", "", 5},
		} {
			server := &answering{kind: test.kind, text: test.text}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"a/get","params":{"old":1,"arguments":{"old":1}}}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("MCP-Protocol-Version", "1")
			r.Header.Set("Mcp-Method", "a/get")
			response, err := translator{server, renaming()}.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			if err != nil || string(got) != test.want || response.ContentLength != test.length || (response.Header.Get("Content-Length") == "") != (test.length < 0) {
				t.Errorf("%s: %s, %d, %v", test.kind, got, response.ContentLength, err)
			}
			again, err := server.asked.GetBody()
			if err != nil {
				t.Fatal(err)
			}
			repeated, _ := io.ReadAll(again)
			const want = `{"jsonrpc":"2.0","id":1,"method":"a/read","params":{"new":1,"arguments":{"old":1}}}`
			if h := server.asked.Header; h.Get("MCP-Protocol-Version") != "2" || h.Get("Mcp-Method") != "a/read" || server.body != want || string(repeated) != want || server.asked.ContentLength != int64(len(want)) {
				t.Errorf("it was asked %v %s", h, server.body)
			}
			if r.Header.Get("Mcp-Method") != "a/get" {
				t.Error("the caller's request has changed")
			}
		}
		broken := errors.New("broken")
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (translator{&answering{err: broken}, renaming()}).RoundTrip(r); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}

// TestLineTranslator: the same on a pipe, where an answer does not say what it
// answers.
func TestLineTranslator(t *testing.T) {
	t.Parallel()
	near, far := mcp.NewInMemoryTransports()
	client, err := lineTranslator{near, renaming()}.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server, err := far.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pass := func(from, to mcp.Connection, text string) string {
		t.Helper()
		m, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- from.Write(t.Context(), m) }()
		got, err := to.Read(t.Context())
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		data, err := jsonrpc.EncodeMessage(got)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, step := range []struct {
		out        bool
		text, want string
	}{
		{true, `{"jsonrpc":"2.0","id":1,"method":"a/get","params":{"old":1}}`, `{"jsonrpc":"2.0","id":1,"method":"a/read","params":{"new":1}}`},
		{true, `{"jsonrpc":"2.0","id":2,"method":"b","params":{"old":1}}`, `{"jsonrpc":"2.0","id":2,"method":"b","params":{"new":1}}`},
		{false, `{"jsonrpc":"2.0","id":2,"result":{"new":1}}`, `{"jsonrpc":"2.0","id":2,"result":{"new":1}}`},
		{false, `{"jsonrpc":"2.0","id":1,"result":{"new":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"old":1}}`},
		{false, `{"jsonrpc":"2.0","id":1,"result":{"new":1}}`, `{"jsonrpc":"2.0","id":1,"result":{"new":1}}`},
		{false, `{"jsonrpc":"2.0","id":5,"method":"a/read","params":{"new":1}}`, `{"jsonrpc":"2.0","id":5,"method":"a/get","params":{"old":1}}`},
		{true, `{"jsonrpc":"2.0","id":5,"result":{"old":1}}`, `{"jsonrpc":"2.0","id":5,"result":{"old":1}}`},
	} {
		from, to := server, client
		if step.out {
			from, to = client, server
		}
		if got := pass(from, to, step.text); got != step.want {
			t.Errorf("%s passes as %s", step.text, got)
		}
	}
}

// TestUnknownRevision: what is not known is refused, whatever is translated.
func TestUnknownRevision(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		if _, err := Connect(t.Context(), "http://127.0.0.1:1", ClientOptions{Revision: "2027-13-01"}); err == nil || !strings.Contains(err.Error(), `"2027-13-01" is not supported`) {
			t.Errorf("%v", err)
		}
	})
}
