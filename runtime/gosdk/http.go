package gosdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

const (
	// maxHeader bounds the header of a response, for the client that Connect makes.
	maxHeader = 256 << 10
	// maxIdentifier bounds the ID of a session or an event, because requests repeat it.
	maxIdentifier = 4 << 10
	// captureLimit bounds the part that is read of a body without a message of the session.
	captureLimit = 1 << 20
	// maxResumptions is how often in a row a stream is resumed without any progress.
	maxResumptions = 5
)

// These constants bound the pause that a server may ask for before it is asked again.
const (
	shortestRetry = 100 * time.Millisecond
	longestRetry  = 5 * time.Minute
)

// httpTransport is a session over streamable HTTP. It resumes streams that break.
type httpTransport struct {
	client *http.Client
	// lasting is the client without its time limit, for streams that last.
	lasting *http.Client
	url     string
	max     int // bytes of a message
	inbox   *inbox

	mu                 sync.Mutex
	sessionID, version string
	isLost             bool // the server does not know the session
}

// endCause implements transport: a server over HTTP may always come back.
func (t *httpTransport) endCause() error { return nil }

// setVersion implements transport.
func (t *httpTransport) setVersion(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version = version
}

// newRequest returns an HTTP request of the session.
func (t *httpTransport) newRequest(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, t.url, body)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Header.Set("Accept", "text/event-stream"); body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	if t.version != "" {
		r.Header.Set("MCP-Protocol-Version", t.version)
	}
	if t.sessionID != "" {
		r.Header.Set("Mcp-Session-Id", t.sessionID)
	}
	return r, nil
}

// post sends a message. method and params are those of a request, for the headers that name it.
func (t *httpTransport) post(ctx context.Context, client *http.Client, message []byte, method string, params json.RawMessage) (*http.Response, error) {
	r, err := t.newRequest(ctx, http.MethodPost, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	if method != "" {
		setNameHeaders(r.Header, method, params)
	}
	response, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	id := response.Header.Get("Mcp-Session-Id")
	if len(id) > maxIdentifier {
		_ = response.Body.Close() // the body is not read
		return nil, fmt.Errorf("gosdk: the server's session ID has %d bytes: at most %d are allowed", len(id), maxIdentifier)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if method == "initialize" {
		t.sessionID = id
	}
	return response, nil
}

// send implements transport.
func (t *httpTransport) send(ctx context.Context, method string, message []byte) error {
	response, err := t.post(ctx, t.client, message, method, nil)
	if err != nil {
		return err
	}
	// The body has no message. Reading it lets the connection be reused.
	_, _ = io.CopyN(io.Discard, response.Body, captureLimit)
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return statusError(response.StatusCode)
	}
	return nil
}

// roundTrip implements transport. Requests under way end with the session.
func (t *httpTransport) roundTrip(ctx context.Context, r *request) (*wire.Message, error) {
	client := t.client
	if r.method == protocol.Listen {
		client = t.lasting
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(t.inbox.ctx, cancel)
	end := func() { stop(); cancel() }
	r.isSent.Store(true)
	response, err := t.post(ctx, client, r.encode(), r.method, r.params)
	var answer *wire.Message
	if err == nil {
		if answer, err = t.readAnswer(ctx, r, response, end); err == nil {
			return answer, nil
		}
	}
	end()
	if t.inbox.ctx.Err() != nil {
		return nil, r.newLostError()
	}
	return nil, err
}

// readAnswer reads the response to a request. If there is no error, it calls end when the body is read.
func (t *httpTransport) readAnswer(ctx context.Context, r *request, response *http.Response, end func()) (*wire.Message, error) {
	isOK := response.StatusCode < http.StatusMultipleChoices
	if r.isTaken.Store(isOK); isOK && isStream(response) {
		return t.readStream(ctx, r, response, end)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(t.max)+1))
	_ = response.Body.Close() // it is read
	switch {
	case len(body) > t.max:
		return nil, tooLongError{t.max}
	case err != nil:
		return nil, err
	}
	m, err := readMessage(body)
	switch isAnswer := m != nil && m.IsResponse(); {
	case isOK && isAnswer && string(m.ID) == string(r.id):
		end()
		return m, nil
	case isOK && err != nil:
		return nil, fmt.Errorf("%w: %s", err, describeBody(response, body))
	case isOK:
		return nil, fmt.Errorf("gosdk: the server's answer to %s is not the response to it", r.method)
	case response.StatusCode == http.StatusNotFound && t.loseSession(m):
		return nil, r.newLostError()
	case !isAnswer || m.Error == nil || isTransient(response.StatusCode):
		err = statusError(response.StatusCode)
	default:
		err = protocol.NormalizeCode(m.Error)
	}
	if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
		err = newDenial(response, body, err)
	}
	if after := parseRetryAfter(response.Header.Get("Retry-After")); after > 0 {
		err = retryLaterError{err, after}
	}
	return nil, err
}

// hasSession reports whether the server has a session to end.
func (t *httpTransport) hasSession() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessionID != "" && !t.isLost
}

// loseSession reports whether a response with the status 404 means that the session is lost. The session goes on if m is
// the error of an unknown method.
func (t *httpTransport) loseSession(m *wire.Message) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sessionID == "" || m != nil && m.Error != nil && m.Error.Code == mcptask.CodeMethodNotFound {
		return false
	}
	t.isLost = true
	return true
}

// readStream reads the stream that answers a request until the response. It resumes the stream if that breaks.
func (t *httpTransport) readStream(ctx context.Context, r *request, response *http.Response, end func()) (*wire.Message, error) {
	var at position
	for failures := 0; ; failures++ {
		var answer *wire.Message
		progress, err := at.readEvents(response.Body, t.max, func(m *wire.Message) bool {
			if m.IsResponse() && string(m.ID) == string(r.id) {
				answer = m
				return true
			}
			t.inbox.receive(m, r.notified)
			return false
		})
		if answer != nil {
			t.drain(response.Body, end)
			return answer, nil
		}
		_ = response.Body.Close() // the stream has ended
		if progress {
			failures = 0
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case at.id == "" || failures > maxResumptions || errors.As(err, new(tooLongError)):
			return nil, fmt.Errorf("the stream ended before the response: %w", err)
		}
		if response, err = t.resume(ctx, at, &failures); err != nil {
			return nil, err
		}
		if response.StatusCode == http.StatusNotFound && t.loseSession(nil) {
			_ = response.Body.Close() // it is not read
			return nil, r.newLostError()
		}
	}
}

// resume opens a stream at a position. It tries again if that fails, and counts the failures.
func (t *httpTransport) resume(ctx context.Context, at position, failures *int) (*http.Response, error) {
	for {
		if !at.pause(ctx, *failures) {
			return nil, ctx.Err()
		}
		response, err := t.openStream(ctx, at)
		if err == nil && (isStream(response) || response.StatusCode == http.StatusNotFound) {
			return response, nil
		}
		if err == nil {
			_ = response.Body.Close() // it is not read
			err = statusError(response.StatusCode)
		}
		if *failures++; *failures > maxResumptions {
			return nil, fmt.Errorf("resume the stream before the response: %w", err)
		}
	}
}

// openStream asks for a stream of the server's, at a position if that is set.
func (t *httpTransport) openStream(ctx context.Context, at position) (*http.Response, error) {
	r, err := t.newRequest(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	if at.id != "" {
		r.Header.Set("Last-Event-Id", at.id)
	}
	return t.lasting.Do(r)
}

// drain reads the rest of a stream after the response, so that the connection can be reused. A server that does not end
// the stream would keep the connection busy, so the time is limited.
func (t *httpTransport) drain(body io.ReadCloser, end func()) {
	drain := func() {
		defer end()
		defer time.AfterFunc(endTimeout, guard.Func(nil, "the end of a stream", end)).Stop()
		_, _ = io.CopyN(io.Discard, body, captureLimit)
		_ = body.Close()
	}
	if !t.inbox.startWork(drain) { // the connection is closed, and the body ends at once
		drain()
	}
}

// startListening opens the stream on which a server of 2025-11-25 sends messages of its own. It returns when the server
// has answered, because the messages could be lost before. A server that does not answer has no such stream.
func (t *httpTransport) startListening(ctx context.Context) {
	answered := make(chan struct{})
	t.inbox.startWork(func() { t.listen(sync.OnceFunc(func() { close(answered) })) })
	select {
	case <-answered:
	case <-ctx.Done():
	case <-t.inbox.ctx.Done():
	case <-time.After(acknowledgeWithin):
	}
}

// listen reads the server's own stream until the session ends, or the server has no such stream.
func (t *httpTransport) listen(answered func()) {
	defer answered()
	var at position
	for failures := 0; ; failures++ {
		response, err := t.openStream(t.inbox.ctx, at)
		answered()
		if err == nil {
			if !isStream(response) && !isTransient(response.StatusCode) {
				_ = response.Body.Close() // it is not read
				return
			}
			progress, err := at.readEvents(response.Body, t.max, func(m *wire.Message) bool { t.inbox.receive(m, nil); return false })
			_ = response.Body.Close() // the stream has ended
			if errors.As(err, new(tooLongError)) {
				return
			}
			if progress {
				failures = 0
			}
		}
		if !at.pause(t.inbox.ctx, failures) {
			return
		}
	}
}

// close implements transport. It ends the server's session.
func (t *httpTransport) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	r, err := t.newRequest(ctx, http.MethodDelete, nil)
	if err != nil || !t.hasSession() {
		return err
	}
	response, err := t.client.Do(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func isStream(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream" && response.StatusCode < http.StatusMultipleChoices
}

// position is the place from which a stream can be resumed.
type position struct {
	id    string        // of the last event, or ""
	retry time.Duration // the pause that the server asks for, or 0
}

// pause waits before a stream is opened again. It returns false if ctx has ended. The pause grows with the failures.
func (p position) pause(ctx context.Context, failures int) bool {
	pause := p.retry
	if pause == 0 || failures > 1 {
		backoff := min(time.Second<<min(failures, 8), longestRetry)
		pause = max(pause, backoff+rand.N(backoff)/2)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// readEvents reads a stream, and calls take with each message until take returns true. It notes the position, and reports
// whether there was an event with an ID or a message. It does not take an event that is cut off: the server sends it again.
func (p *position) readEvents(body io.Reader, most int, take func(*wire.Message) (end bool)) (progress bool, err error) {
	lines := bufio.NewReader(body)
	var event []byte
	begin := 0 // of the last line
	for {
		part, err := lines.ReadSlice('\n')
		event = append(event, part...)
		switch {
		case len(event) > most:
			return progress, tooLongError{most}
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		isBlank := len(event) > begin && len(bytes.TrimRight(event[begin:], "\r\n")) == 0
		if begin = len(event); isBlank || errors.Is(err, io.EOF) { // an event may end with its stream
			data, isNew := p.readFields(event)
			event, begin, progress = event[:0], 0, progress || isNew || len(data) > 0
			if len(data) > 0 {
				m, fault := readMessage(data)
				if fault != nil {
					return progress, fault
				}
				if m != nil && take(m) {
					return true, nil
				}
			}
		}
		if err != nil {
			return progress, err
		}
	}
}

// readFields reads the fields of an event. It returns the message of the event, and whether the event has a new ID.
func (p *position) readFields(event []byte) (data []byte, isNew bool) {
	isMessage := true
	for line := range bytes.Lines(event) {
		switch field, value, _ := wire.Field(line); field {
		case "id":
			if len(value) > 0 && len(value) <= maxIdentifier {
				isNew = isNew || p.id != string(value)
				p.id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && ms > 0 {
				p.retry = time.Duration(min(max(ms, shortestRetry.Milliseconds()), longestRetry.Milliseconds())) * time.Millisecond
			}
		case "event":
			isMessage = len(value) == 0 || string(value) == "message"
		}
	}
	if !isMessage {
		return nil, isNew
	}
	return wire.Event(event).Data(), isNew
}

// setNameHeaders sets Mcp-Method and Mcp-Name if the revision has them (E-69 to E-71).
func setNameHeaders(h http.Header, method string, params json.RawMessage) {
	if h.Get("MCP-Protocol-Version") < mcptask.Revision20260728 {
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

// encodeHeader encodes a value that a header cannot hold as it is.
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
