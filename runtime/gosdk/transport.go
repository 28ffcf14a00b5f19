package gosdk

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
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
)

// carriedMethod is a method whose params and results the SDK's types would truncate. The SDK sends
// it under an alias, as a custom method of raw JSON. The transport restores the name on the way
// out.
type carriedMethod string

const aliasPrefix = "io.github.mcptaskgen/"

const tasksGet = "tasks/get"

var carried = [...]carriedMethod{
	"tools/call", "tools/list", tasksGet, "tasks/result", "tasks/list", "tasks/cancel", "tasks/update", "tasks/delete", protocol.Listen,
}

func (m carriedMethod) alias() string { return aliasPrefix + string(m) }

// httpTransport is the http.RoundTripper under the SDK's client. It restores the carried methods,
// adds headers that the SDK does not know (E-69), reads the capabilities that the SDK's types drop,
// and intercepts what the SDK must not see.
type httpTransport struct {
	client *http.Client // the caller's
	sessionCallbacks

	mu       sync.Mutex
	declared json.RawMessage // by the server, in its answer to initialize
	streamed bool            // the server has been asked for a stream
}

// RoundTrip implements http.RoundTripper. Requests under way end with the session, except the one
// that ends it.
func (t *httpTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete {
		return t.roundTrip(r, func() {})
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.lifetime, cancel)
	held := t.startStreamTimer(r, cancel)
	response, err := t.roundTrip(r.WithContext(ctx), cancel)
	inTime := held == nil || held.Stop()
	if err != nil {
		stop()
		cancel()
		if !inTime && r.Context().Err() == nil && t.lifetime.Err() == nil {
			return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
		return nil, err
	}
	stripLostSession(r, response)
	response.Body = &releasingBody{response.Body, func() { stop(); cancel() }}
	return response, nil
}

// startStreamTimer bounds the wait for the first stream of the server's own, because the SDK waits
// for it while it connects. If the time is over, the server counts as one without such a stream.
// startStreamTimer returns nil for any other request.
func (t *httpTransport) startStreamTimer(r *http.Request, cancel func()) *time.Timer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Method != http.MethodGet || t.streamed {
		return nil
	}
	t.streamed = true
	return time.AfterFunc(acknowledgeWithin, func() { defer guard.Recover(nil, "the end of patience"); cancel() })
}

// releasingBody is a body that calls free when it is closed.
type releasingBody struct {
	io.ReadCloser
	free func()
}

// Close implements io.Closer.
func (b *releasingBody) Close() error {
	defer b.free()
	return b.ReadCloser.Close()
}

// roundTrip is RoundTrip with a function that ends the request.
func (t *httpTransport) roundTrip(r *http.Request, hangUp func()) (*http.Response, error) {
	if r.Method != http.MethodPost || r.Body == nil {
		response, err := t.client.Transport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		return response, t.filterBody(r, response, nil, hangUp)
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
	// A body that is not a request goes out as it is.
	_ = json.Unmarshal(body, &m)
	held := heldCallFrom(r.Context())
	if held != nil && m.ID == nil && held.silent.Load() { // the SDK's cancellation: ours was sent
		return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if held != nil && m.ID != nil {
		held.requestID.Store(&m.ID)
	}
	out := r.Clone(r.Context())
	if method, ok := strings.CutPrefix(m.Method, aliasPrefix); ok {
		quoted, err := json.Marshal(method)
		if err != nil {
			return nil, err
		}
		if body, err = replaceMember(body, "method", quoted); err != nil {
			return nil, err
		}
		setNameHeaders(out.Header, method, m.Params)
	}
	if m.Method == "initialize" && t.declare != nil {
		params, err := t.declare(m.Params)
		if err != nil {
			return nil, err
		}
		if body, err = replaceMember(body, "params", params); err != nil {
			return nil, err
		}
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	response, err := t.forward(out, m.ID)
	if m.Method == "" && m.ID != nil {
		t.onReply(m.ID)
	}
	if err != nil {
		return nil, err
	}
	if held != nil && response.StatusCode < http.StatusMultipleChoices {
		held.taken.Store(true)
	}
	if err := t.filterBody(r, response, m.ID, hangUp); err != nil {
		return nil, err
	}
	switch {
	case m.Method == "initialize":
		return response, rewriteBody(response, t.keepCapabilities)
	case m.Method == discover:
		return response, rewriteBody(response, rejectWrongKind)
	case strings.HasPrefix(m.Method, aliasPrefix):
		if response, err = readRefusal(r, response); err != nil {
			return nil, err
		}
		return response, rewriteBody(response, hideCode)
	}
	return response, nil
}

// forward sends a request, unless the poller has sent it already.
func (t *httpTransport) forward(r *http.Request, id json.RawMessage) (*http.Response, error) {
	note := refusalFrom(r.Context())
	if id == nil || note.polled == nil || note.id != nil {
		return t.client.Transport.RoundTrip(r)
	}
	note.id = id
	response, err := note.polled.response, note.polled.err
	if err == nil && !isStream(response) { // filterBody does so on a stream
		response.Body, err = changeBody(response.Body, func(message []byte) []byte { return note.polled.renumber(message, id) })
		clearLength(response)
	}
	if err != nil {
		note.tooLong.Store(errors.As(err, new(tooLongError)))
		return nil, err
	}
	return response, nil
}

func isStream(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// rewriteBody rewrites the messages of a stream. Any other body is one message, which it reads.
func rewriteBody(response *http.Response, rewrite rewriteFunc) (err error) {
	if stream, ok := response.Body.(*eventReader); ok {
		edit := stream.edit
		stream.edit = func(message []byte) []byte {
			if message = edit(message); message != nil {
				message = rewriteMessage(message, rewrite)
			}
			return message
		}
	} else {
		response.Body, err = changeBody(response.Body, func(message []byte) []byte { return rewriteMessage(message, rewrite) })
	}
	clearLength(response)
	return err
}

// clearLength removes the length of a body that has changed.
func clearLength(response *http.Response) {
	response.ContentLength = -1
	response.Header.Del("Content-Length")
}

// filterBody intercepts the messages of an event stream. A JSON body stays, because it answers a
// request of the SDK. An answer that is too long becomes an error: on a stream it is replaced by an
// error response, so that the session goes on, and in a JSON body it fails the request. id is the
// ID of the request, or nil.
func (t *httpTransport) filterBody(r *http.Request, response *http.Response, id json.RawMessage, hangUp func()) error {
	note := refusalFrom(r.Context())
	if id != nil {
		note.id = id
	}
	if !isStream(response) {
		if id == nil {
			return nil
		}
		body, err := readBody(response.Body)
		if err != nil {
			note.tooLong.Store(errors.As(err, new(tooLongError)))
			return err
		}
		response.Body = body
		return nil
	}
	from := messageSource{revision: r.Header.Get("MCP-Protocol-Version"), send: t.newSender(r)}
	stream := newEventReader(response.Body, func(message []byte) []byte {
		if t.intercept(message, from) {
			return nil
		}
		message = note.polled.renumber(message, note.id)
		if note.id != nil && isAnswer(message, note.id) {
			time.AfterFunc(endTimeout, func() { defer guard.Recover(nil, "the end of a stream"); hangUp() })
		}
		return message
	})
	stream.instead = func(long tooLongError) []byte {
		if note.id == nil {
			return nil
		}
		note.tooLong.Store(true)
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, note.id, mcptask.CodeInternalError, long)
	}
	response.Body = stream
	clearLength(response)
	return nil
}

// isAnswer reports whether a message is the response to a request. After the response the SDK reads
// to the end of the stream, so that the connection can be reused. A server that does not end the
// stream would keep the connection busy.
func isAnswer(message []byte, id json.RawMessage) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	return json.Unmarshal(message, &m) == nil && m.Method == nil && string(m.ID) == string(id)
}

// newSender returns a function that posts messages with the headers of the request whose stream
// they answer: its session, its revision and its authorization.
func (t *httpTransport) newSender(r *http.Request) func(ctx context.Context, message []byte) error {
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
		// The body has nothing to read. Draining it lets the connection be reused.
		_, _ = io.CopyN(io.Discard, response.Body, captureLimit)
		_ = response.Body.Close()
		if response.StatusCode >= http.StatusMultipleChoices {
			return fmt.Errorf("the server answered with HTTP status %s", response.Status)
		}
		return nil
	}
}

// captureLimit bounds what is read of a body that has no message of the session.
const captureLimit = 1 << 20

// replaceMember sets a member of a message.
func replaceMember(body []byte, name string, value json.RawMessage) ([]byte, error) {
	var message map[string]json.RawMessage
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, err
	}
	message[name] = value
	return json.Marshal(message)
}

// setNameHeaders sets Mcp-Method and Mcp-Name if the revision has them (E-69 to E-71).
func setNameHeaders(h http.Header, method string, params json.RawMessage) {
	if h.Get("MCP-Protocol-Version") < mcptask.Revision20260728 {
		h.Del("Mcp-Method")
		return
	}
	h.Set("Mcp-Method", method)
	var p struct {
		Name   string `json:"name"`
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(params, &p) // params without a name get no header
	if name := p.Name + p.TaskID; name != "" {
		h.Set("Mcp-Name", encodeHeader(name))
	}
}

// encodeHeader encodes a value that a header cannot carry as it is.
func encodeHeader(value string) string {
	plain := value == strings.TrimSpace(value) && !strings.HasPrefix(value, "=?base64?")
	for i := range len(value) {
		plain = plain && value[i] >= ' ' && value[i] <= '~'
	}
	if plain {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}

// keepCapabilities keeps those in the server's answer to initialize. It changes nothing.
func (t *httpTransport) keepCapabilities(a *answer) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.declared == nil {
		t.declared = decodeResultCapabilities(a.result)
	}
	return false
}

// capabilities returns those that the server declared, or nil.
func (t *httpTransport) capabilities() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.declared
}

// decodeResultCapabilities returns the capabilities in the result of an initialize.
func decodeResultCapabilities(result json.RawMessage) json.RawMessage {
	var r struct {
		Capabilities json.RawMessage `json:"capabilities"`
	}
	_ = json.Unmarshal(result, &r) // malformed results declare nothing
	return r.Capabilities
}
