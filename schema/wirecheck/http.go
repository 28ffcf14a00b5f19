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

// Handler stands in front of a server and checks every message that leaves it,
// each response by the request that it answers. What is wrong fails the test
// when it ends. It changes no byte and holds none back. A benchmark has the
// server alone.
func Handler(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	return RevisionHandler(t, Legacy, next)
}

// RevisionHandler is Handler for a path whose sessions are spoken in a revision.
func RevisionHandler(t testing.TB, revision string, next http.Handler) http.Handler {
	t.Helper()
	if _, measured := t.(*testing.B); measured {
		return next
	}
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	tap := &httpTap{checker: c, legacy: legacyOf(revision), next: next, sessions: map[string]map[string]*asked{}}
	tap.report(t)
	return tap
}

// legacyOf is what the sessions of a server are spoken in that a test serves for
// a revision.
func legacyOf(revision string) string {
	if revision == Modern {
		return Legacy
	}
	return revision
}

type httpTap struct {
	faults

	checker *Checker
	legacy  string // what sessions are spoken in
	next    http.Handler

	requests sync.Mutex
	sessions map[string]map[string]*asked // of streams that can be resumed: by session and ID
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
			panic(p) // the connection ends: what was sent is no answer
		}
		x.end()
	}()
	t.next.ServeHTTP(x, r)
}

// readBody keeps what the server reads of a request.
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

// reply is one response on its way out.
type reply struct {
	http.ResponseWriter

	tap              *httpTap
	request          *http.Request
	body             *readBody
	version, session string

	code   int
	asked  []*asked
	known  bool // asked is read
	plain  bytes.Buffer
	events events
	lost   bool // the client does not take it
}

// Unwrap serves http.ResponseController.
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
	_ = http.NewResponseController(x.ResponseWriter).Flush() // a client that has left
}

// Hijack implements http.Hijacker. What follows is no HTTP.
func (x *reply) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	x.lost = true
	return http.NewResponseController(x.ResponseWriter).Hijack()
}

// Write implements http.ResponseWriter.
func (x *reply) Write(data []byte) (int, error) {
	if x.code == 0 {
		x.code = http.StatusOK
	}
	if x.stream() {
		for _, message := range x.events.feed(data) {
			x.message(message)
		}
	} else {
		x.plain.Write(data)
	}
	n, err := x.ResponseWriter.Write(data)
	x.lost = x.lost || err != nil
	return n, err
}

func (x *reply) media() string {
	media, _, _ := strings.Cut(x.Header().Get("Content-Type"), ";")
	return strings.TrimSpace(media)
}

func (x *reply) stream() bool { return x.media() == "text/event-stream" }

// requests are those of the body, once the server has read it.
func (x *reply) requests() []*asked {
	if x.known {
		return x.asked
	}
	x.known = true
	if x.request.Method == http.MethodPost {
		x.asked = readRequests(x.body.read.Bytes(), x.version, x.tap.legacy)
	}
	session := x.session
	if session == "" {
		session = x.Header().Get(sessionHeader) // of an initialize
	}
	if session != "" {
		x.tap.requests.Lock()
		defer x.tap.requests.Unlock()
		if x.tap.sessions[session] == nil {
			x.tap.sessions[session] = map[string]*asked{}
		}
		for _, a := range x.asked {
			x.tap.sessions[session][a.id] = a
		}
	}
	return x.asked
}

// find knows the request that a response on this exchange answers.
func (x *reply) find(id string) *asked {
	requests := x.requests()
	if i := slices.IndexFunc(requests, func(a *asked) bool { return a.id == id }); i >= 0 {
		return requests[i]
	}
	if x.request.Method != http.MethodGet { // a GET may resume the stream of another request
		return nil
	}
	x.tap.requests.Lock()
	defer x.tap.requests.Unlock()
	return x.tap.sessions[x.session][id]
}

// message checks one message.
func (x *reply) message(message []byte) {
	revision := x.tap.legacy
	if x.version >= Modern {
		revision = Modern
	}
	for _, a := range x.requests() {
		revision = a.revision
		x.fault(a.pushed(message))
	}
	x.fault(x.tap.checker.sent(message, revision, x.find))
}

func (x *reply) fault(err error) {
	if err != nil {
		x.tap.add(fmt.Errorf("%s, HTTP %d: %w", x.request.Method, x.code, err))
	}
}

// end checks a response that is complete.
func (x *reply) end() {
	left := x.lost || x.request.Context().Err() != nil
	if x.code == 0 { // net/http says so for a handler that writes nothing
		x.code = http.StatusOK
	}
	body := bytes.TrimSpace(x.plain.Bytes())
	switch {
	case x.stream():
		if x.code != http.StatusOK {
			x.fault(fmt.Errorf("a stream with this status"))
		}
		if rest := x.events.rest; len(bytes.TrimSpace(rest)) > 0 && !left {
			x.fault(fmt.Errorf("an event that is cut: %q", rest))
		}
	case len(body) == 0:
		x.fault(x.empty(left))
	case x.media() == "application/json" && body[0] == '[': // 2025-03-26
		for _, message := range elements(body) {
			x.message(message)
		}
	case x.media() == "application/json":
		x.message(body)
		x.fault(x.status(body))
	case x.media() == "text/plain":
		x.fault(foreignText(x.code, string(body)))
	default:
		x.fault(fmt.Errorf("a body of the type %q: %.500s", x.Header().Get("Content-Type"), body))
	}
}
