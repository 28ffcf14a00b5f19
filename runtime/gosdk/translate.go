package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// translationOf is how a revision is spoken that only renames what its base has;
// nil is for any other.
func translationOf(revision string) *dialect.Translation {
	for _, t := range dialect.Translations([]string{revision}) {
		return t
	}
	return nil
}

// translator is the http.RoundTripper closest to the wire: all above it speaks the
// base of the revision that the server is spoken to in.
type translator struct {
	base http.RoundTripper // nil is http.DefaultTransport
	t    *dialect.Translation
}

// RoundTrip implements http.RoundTripper.
func (t translator) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	if version := out.Header.Get("MCP-Protocol-Version"); version != "" {
		out.Header.Set("MCP-Protocol-Version", t.t.OutVersion(version))
	}
	if method := out.Header.Get("Mcp-Method"); method != "" {
		out.Header.Set("Mcp-Method", t.t.OutMethod(method))
	}
	var m struct {
		Method string `json:"method"`
	}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close() // it is read to its end
		if err != nil {
			return nil, err
		}
		_ = json.Unmarshal(body, &m) // what is no message has no method
		body = t.t.Out(body, "")
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	in := func(message []byte) []byte { return t.t.In(message, m.Method) }
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		if response.Body, err = changed(response.Body, in); err != nil {
			return nil, err
		}
	case "text/event-stream":
		response.Body = newEvents(response.Body, in)
	default:
		return response, nil
	}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// lineTranslator is the mcp.Transport closest to a pipe, as translator is to HTTP.
type lineTranslator struct {
	mcp.Transport
	t *dialect.Translation
}

// Connect implements mcp.Transport.
func (t lineTranslator) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &translatedConn{Connection: inner, t: t.t, asked: map[jsonrpc.ID]string{}}, nil
}

// translatedConn is one connection of a lineTranslator.
type translatedConn struct {
	mcp.Connection
	t *dialect.Translation

	mu sync.Mutex
	// asked are the methods of requests that are not answered yet. One that was
	// given up, and is never answered, stays: the SDK gives no ID twice.
	asked map[jsonrpc.ID]string
}

// Write implements mcp.Connection.
func (c *translatedConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if request, ok := m.(*jsonrpc.Request); ok && request.IsCall() {
		c.mu.Lock()
		c.asked[request.ID] = request.Method
		c.mu.Unlock()
	}
	renamed, err := recoded(m, func(message []byte) []byte { return c.t.Out(message, "") })
	if err != nil {
		return err
	}
	return c.Connection.Write(ctx, renamed)
}

// Read implements mcp.Connection.
func (c *translatedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil {
		return m, err
	}
	method := ""
	if response, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		method = c.asked[response.ID]
		delete(c.asked, response.ID)
		c.mu.Unlock()
	}
	if renamed, err := recoded(m, func(message []byte) []byte { return c.t.In(message, method) }); err == nil {
		m = renamed
	} // else it is none that the SDK would take from us: as it came, it may say why
	return m, nil
}

// recoded is a message after its JSON was changed.
func recoded(m jsonrpc.Message, change func([]byte) []byte) (jsonrpc.Message, error) {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(change(data))
}
