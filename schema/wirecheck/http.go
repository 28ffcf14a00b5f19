package wirecheck

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "MCP-Protocol-Version"
)

// Handler wraps a server and checks every message it sends, each response with its request. Faults
// fail the test at its end. Handler neither changes nor delays any byte. In a benchmark, it returns
// next itself.
func Handler(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	return RevisionHandler(t, Legacy, next)
}

// RevisionHandler is like Handler for a path whose sessions use a revision.
func RevisionHandler(t testing.TB, revision string, next http.Handler) http.Handler {
	t.Helper()
	if _, measured := t.(*testing.B); measured {
		return next
	}
	c, err := sharedChecker()
	if err != nil {
		t.Fatal(err)
	}
	tap := &httpTap{checker: c, legacy: legacyRevision(revision), next: next, sessions: map[string]map[string]*pendingRequest{}}
	tap.reportAtEnd(t)
	return tap
}

// legacyRevision returns the revision of sessions on a server that a test runs for a revision.
func legacyRevision(revision string) string {
	if revision == Modern {
		return Legacy
	}
	return revision
}

type httpTap struct {
	faults

	checker *Checker
	legacy  string // the revision of sessions
	next    http.Handler

	requests sync.Mutex
	sessions map[string]map[string]*pendingRequest // requests of resumable streams by session and ID
}

// ServeHTTP implements http.Handler.
func (t *httpTap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := &readBody{ReadCloser: r.Body}
	if r.Body != nil {
		r = r.Clone(r.Context())
		r.Body = body
	}
	x := &reply{ResponseWriter: w, tap: t, request: r, body: body,
		version: r.Header.Get(versionHeader), session: r.Header.Get(sessionHeader)}
	defer func() {
		if p := recover(); p != nil {
			panic(p) // the connection breaks, so the data sent is not a response
		}
		x.requests() // a GET may get the response to one
		x.checkEnd()
	}()
	t.next.ServeHTTP(x, r)
}

// readBody records the part of a request's body that the server reads.
type readBody struct {
	io.ReadCloser

	read bytes.Buffer
}

// Read implements io.Reader.
func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	const enough = 16 << 20
	if b.read.Len() < enough {
		b.read.Write(p[:n])
	}
	return n, err
}

// reply is a response that the server is sending.
type reply struct {
	http.ResponseWriter

	tap              *httpTap
	request          *http.Request
	body             *readBody
	version, session string

	code         int
	asked        []*pendingRequest
	requestsRead bool // asked was read
	buffered     bytes.Buffer
	events       events
	disconnected bool // the client no longer reads it
}

// Unwrap implements the interface of http.ResponseController.
func (x *reply) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (x *reply) WriteHeader(code int) {
	if x.code == 0 && code >= http.StatusOK {
		x.code = code
	}
	x.ResponseWriter.WriteHeader(code)
}

// Flush implements http.Flusher.
func (x *reply) Flush() {
	if x.code == 0 {
		x.code = http.StatusOK
	}
	_ = http.NewResponseController(x.ResponseWriter).Flush() // the client may have left
}

// Hijack implements http.Hijacker. Nothing after it is HTTP.
func (x *reply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	x.disconnected = true
	return http.NewResponseController(x.ResponseWriter).Hijack()
}

// Write implements http.ResponseWriter.
func (x *reply) Write(data []byte) (int, error) {
	if x.code == 0 {
		x.code = http.StatusOK
	}
	switch {
	case x.disconnected: // neither the part sent nor later writes are a message
	case x.isStream():
		for _, message := range x.events.feed(data) {
			x.checkMessage(message)
		}
	default:
		x.buffered.Write(data)
	}
	n, err := x.ResponseWriter.Write(data)
	x.disconnected = x.disconnected || err != nil
	return n, err
}

func (x *reply) mediaType() string {
	media, _, _ := strings.Cut(x.Header().Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

func (x *reply) isStream() bool { return x.mediaType() == "text/event-stream" }

// requests returns the requests of the body. The server must have read it.
func (x *reply) requests() []*pendingRequest {
	if x.requestsRead {
		return x.asked
	}
	x.requestsRead = true
	if x.request.Method == http.MethodPost {
		x.asked = readRequests(x.body.read.Bytes(), x.version, x.tap.legacy)
	}
	session := x.session
	if session == "" {
		session = x.Header().Get(sessionHeader) // the response to an initialize
	}
	if session != "" {
		x.tap.requests.Lock()
		defer x.tap.requests.Unlock()
		if x.tap.sessions[session] == nil {
			x.tap.sessions[session] = map[string]*pendingRequest{}
		}
		for _, a := range x.asked {
			x.tap.sessions[session][a.id] = a
		}
	}
	return x.asked
}

// find returns the request that a response on this exchange answers.
func (x *reply) find(id string) *pendingRequest {
	requests := x.requests()
	if i := slices.IndexFunc(requests, func(a *pendingRequest) bool { return a.id == id }); i >= 0 {
		return requests[i]
	}
	if x.request.Method != http.MethodGet { // a GET may resume the stream of another request
		return nil
	}
	x.tap.requests.Lock()
	defer x.tap.requests.Unlock()
	return x.tap.sessions[x.session][id]
}

// checkMessage checks one message.
func (x *reply) checkMessage(message []byte) {
	revision := x.tap.legacy
	if x.version >= Modern {
		revision = Modern
	}
	for _, a := range x.requests() {
		revision = a.revision
		x.addFault(a.checkPushed(message))
	}
	x.addFault(x.tap.checker.checkSent(message, revision, x.find))
}

func (x *reply) addFault(err error) {
	if err != nil {
		x.tap.add(fmt.Errorf("%s, HTTP %d: %w", x.request.Method, x.code, err))
	}
}

// checkEnd checks a complete response.
func (x *reply) checkEnd() {
	left := x.disconnected || x.request.Context().Err() != nil
	if x.code == 0 { // net/http sends this if a handler writes nothing
		x.code = http.StatusOK
	}
	body := bytes.TrimSpace(x.buffered.Bytes())
	switch {
	case x.isStream():
		if x.code != http.StatusOK {
			x.addFault(fmt.Errorf("a stream must not have this status"))
		}
		if rest := x.events.rest; len(bytes.TrimSpace(rest)) > 0 && !left {
			x.addFault(fmt.Errorf("an incomplete event: %q", rest))
		}
	case len(body) == 0:
		x.addFault(x.checkEmpty(left))
	case x.mediaType() == "application/json" && body[0] == '[': // 2025-03-26
		for _, message := range splitArray(body) {
			x.checkMessage(message)
		}
	case x.mediaType() == "application/json":
		x.checkMessage(body)
		x.addFault(x.checkStatus(body))
	case x.mediaType() == "text/plain":
		x.addFault(checkForeignText(x.code, string(body)))
	default:
		x.addFault(fmt.Errorf("a body of the type %q: %.500s", x.Header().Get("Content-Type"), body))
	}
}
