package gosdk

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// carriedMethod is a method whose params and results the SDK's types would
// cut. The SDK sends it under an alias, as a custom method of raw JSON, and
// the transport puts the name back on the way out.
type carriedMethod string

const aliasPrefix = "io.github.mcptaskgen/"

var carried = [...]carriedMethod{
	"tools/call", "tools/list", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "tasks/delete", protocol.Listen,
}

func (m carriedMethod) alias() string { return aliasPrefix + string(m) }

// transport is the http.RoundTripper under the SDK's client: it restores the
// carried methods, adds the headers that the SDK does not know (E-69), reads the
// capabilities that its types drop and takes out what the SDK is not to see.
type transport struct {
	client *http.Client // the caller's own
	beside

	mu         sync.Mutex
	initialize *capture
	streamed   bool // the server was asked for a stream
}

// RoundTrip implements http.RoundTripper. What is under way ends with the
// session, but the request that ends it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		return t.roundTrip(r, func() {})
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.lasts, cancel)
	held := t.holdsUp(r, cancel)
	response, err := t.roundTrip(r.WithContext(ctx), cancel)
	inTime := held == nil || held.Stop()
	if err != nil {
		stop()
		cancel()
		if !inTime && r.Context().Err() == nil && t.lasts.Err() == nil {
			return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
		return nil, err
	}
	sessionLost(r, response)
	response.Body = &bounded{response.Body, func() { stop(); cancel() }}
	return response, nil
}

// holdsUp bounds how long the server may take to answer the first request for a
// stream of its own, for which the SDK holds up the connecting. After that it has
// none. nil is for any other request.
func (t *transport) holdsUp(r *http.Request, cancel func()) *time.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Method != http.MethodGet || t.streamed {
		return nil
	}
	t.streamed = true
	return time.AfterFunc(acknowledgeWithin, func() { defer guard.Recover(nil, "the end of patience"); cancel() })
}

// bounded is a body that frees something when it is closed.
type bounded struct {
	io.ReadCloser
	free func()
}

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}

// roundTrip is RoundTrip for a request that hangUp ends.
func (t *transport) roundTrip(r *http.Request, hangUp func()) (*http.Response, error) {
	base := t.client.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	if r.Method != http.MethodPost || r.Body == nil {
		response, err := base.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return response, t.filter(r, response, nil, hangUp)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // it is read to its end
	if err != nil {
		return nil, err
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	// What is no request goes out as it is.
	_ = json.Unmarshal(body, &m)
	open := callOf(r.Context())
	if open != nil && m.ID == nil && open.isSilent() { // the SDK's cancellation: ours was sent
		return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if open != nil && m.ID != nil {
		open.sent(m.ID)
	}
	out := r.Clone(r.Context())
	if method, ok := strings.CutPrefix(m.Method, aliasPrefix); ok {
		quoted, err := json.Marshal(method)
		if err != nil {
			return nil, err
		}
		if body, err = replace(body, "method", quoted); err != nil {
			return nil, err
		}
		nameHeaders(out.Header, method, m.Params)
	}
	if m.Method == "initialize" && t.declare != nil {
		params, err := t.declare(m.Params)
		if err != nil {
			return nil, err
		}
		if body, err = replace(body, "params", params); err != nil {
			return nil, err
		}
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	response, err := base.RoundTrip(out)
	if m.Method == "" && m.ID != nil && t.replied != nil {
		t.replied(m.ID)
	}
	if err != nil {
		return nil, err
	}
	if open != nil && response.StatusCode < http.StatusMultipleChoices {
		open.begun()
	}
	if err := t.filter(r, response, m.ID, hangUp); err != nil {
		return nil, err
	}
	switch {
	case m.Method == "initialize":
		response.Body = t.captured(response.Body)
	case m.Method == discover:
		return response, rewriteBody(response, checkKind)
	case strings.HasPrefix(m.Method, aliasPrefix):
		if response, err = refused(r, response); err != nil {
			return nil, err
		}
		return response, rewriteBody(response, hideCode)
	}
	return response, nil
}

func isStream(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// rewriteBody rewrites the messages of a stream, or the message that any other body is.
// It fails only if the body is too long.
func rewriteBody(response *http.Response, rewrite rewriting) (err error) {
	if stream, ok := response.Body.(*events); ok {
		edit := stream.edit
		stream.edit = func(message []byte) []byte {
			if message = edit(message); message != nil {
				message = rewriteMessage(message, rewrite)
			}
			return message
		}
	} else {
		response.Body, err = changed(response.Body, func(message []byte) []byte { return rewriteMessage(message, rewrite) })
	}
	resized(response)
	return err
}

// resized takes away the length of a body that is another now.
func resized(response *http.Response) {
	response.ContentLength = -1
	response.Header.Del("Content-Length")
}

// filter takes messages out of an event stream. A body that is JSON is the
// response to its request, which is always the SDK's. An answer that is too long
// becomes an error: of the answer where it is one of a stream, so that the session
// goes on, else of the request. id is that of the request, nil for none.
func (t *transport) filter(r *http.Request, response *http.Response, id json.RawMessage, hangUp func()) error {
	note := refusalOf(r.Context())
	if id != nil {
		note.id = id
	}
	if !isStream(response) {
		if id == nil {
			return nil
		}
		body, err := readBody(response.Body)
		if err != nil {
			note.tooLong.Store(true)
			return err
		}
		response.Body = body
		return nil
	}
	from := way{revision: r.Header.Get("MCP-Protocol-Version"), send: t.sender(r)}
	stream := newEvents(response.Body, func(message []byte) []byte {
		if t.take != nil && t.take(message, from) {
			return nil
		}
		if note.id != nil && answers(message, note.id) {
			time.AfterFunc(endWithin, func() { defer guard.Recover(nil, "the end of a stream"); hangUp() })
		}
		return message
	})
	stream.instead = func(long tooLong) []byte {
		if note.id == nil {
			return nil
		}
		note.tooLong.Store(true)
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, note.id, mcptask.CodeInternalError, long)
	}
	response.Body = stream
	resized(response)
	return nil
}

// answers says whether a message is the response to a request. The SDK reads on to the
// end of the stream then, so that the connection can be used again; a server that
// does not end it would keep it busy.
func answers(message []byte, id json.RawMessage) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	return json.Unmarshal(message, &m) == nil && m.Method == nil && string(m.ID) == string(id)
}

// sender posts messages with the headers of the request whose stream brought
// what they answer: its session, its revision and its authorization.
func (t *transport) sender(r *http.Request) func(ctx context.Context, message []byte) error {
	header, url := r.Header.Clone(), r.URL.String()
	for _, name := range []string{"Last-Event-Id", "Mcp-Method", "Mcp-Name", "Cookie"} {
		header.Del(name) // the client's jar adds the cookies again
	}
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	return func(ctx context.Context, message []byte) error {
		post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(message))
		if err != nil {
			return err
		}
		post.Header = header.Clone()
		response, err := t.client.Do(post)
		if err != nil {
			return err
		}
		// So that the connection can be used again; there is nothing to read.
		_, _ = io.CopyN(io.Discard, response.Body, captureLimit)
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusMultipleChoices {
			return fmt.Errorf("HTTP %s", response.Status)
		}
		return nil
	}
}

// replace sets a member of a message.
func replace(body []byte, name string, value json.RawMessage) ([]byte, error) {
	var message map[string]json.RawMessage
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, err
	}
	message[name] = value
	return json.Marshal(message)
}

// nameHeaders sets Mcp-Method and Mcp-Name where the revision has them (E-69
// to E-71).
func nameHeaders(h http.Header, method string, params json.RawMessage) {
	if h.Get("MCP-Protocol-Version") < mcptask.Revision20260728 {
		h.Del("Mcp-Method")
		return
	}
	h.Set("Mcp-Method", method)
	var p struct {
		Name   string `json:"name"`
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(params, &p) // params without a name have no header
	if name := p.Name + p.TaskID; name != "" {
		h.Set("Mcp-Name", headerValue(name))
	}
}

// headerValue encodes what a header cannot carry as it is.
func headerValue(value string) string {
	plain := value == strings.TrimSpace(value) && !strings.HasPrefix(value, "=?base64?")
	for i := range len(value) {
		plain = plain && value[i] >= ' ' && value[i] <= '~'
	}
	if plain {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}

// capture keeps what is read of a body, up to a limit.
type capture struct {
	io.ReadCloser
	mu   sync.Mutex
	kept bytes.Buffer
}

const captureLimit = 1 << 20

func (t *transport) captured(body io.ReadCloser) io.ReadCloser {
	c := &capture{ReadCloser: body}
	t.mu.Lock()
	t.initialize = c
	t.mu.Unlock()
	return c
}

// Read implements io.Reader.
func (c *capture) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept.Len()+n <= captureLimit {
		c.kept.Write(p[:n])
	}
	return n, err
}

// capabilities are those of the server's answer to initialize, which may be JSON
// or an event stream; nil where there is none.
func (t *transport) capabilities() json.RawMessage {
	t.mu.Lock()
	c := t.initialize
	t.mu.Unlock()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.kept.String()
	if declared := declaredIn([]byte(text)); declared != nil {
		return declared
	}
	for line := range strings.Lines(text) {
		if name, data, _ := wire.Field([]byte(line)); name == "data" {
			if declared := declaredIn(data); declared != nil {
				return declared
			}
		}
	}
	return nil
}

func declaredIn(message []byte) json.RawMessage {
	var m struct {
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal(message, &m) // what is no answer declares nothing
	return declaredBy(m.Result)
}

// declaredBy reads the capabilities in the result of an initialize.
func declaredBy(result json.RawMessage) json.RawMessage {
	var r struct {
		Capabilities json.RawMessage `json:"capabilities"`
	}
	_ = json.Unmarshal(result, &r) // as above
	return r.Capabilities
}
