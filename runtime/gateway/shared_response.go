package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// openAfter is how long a call may go unanswered before its response begins. Some hosts wait no more
// than a minute for the first byte.
const openAfter = time.Second / 2

// keepAlive is the interval between signs of life on a waiting stream.
const keepAlive = 15 * time.Second

// longestRefusal bounds the bytes of the SDK's text in an error.
const longestRefusal = 200

// sharedResponse is a response that the gateway and the SDK's handler write together. It forwards the bytes of the
// handler. If the gateway has a message to send first, or if a call is not answered soon, the
// gateway begins the response as a stream, and turns the handler's JSON into an event. Comments keep a waiting stream
// alive, so that neither the client nor a proxy takes it for dead. The SDK writes one event at a time: a lock around every
// write keeps events whole. sharedResponse is safe for concurrent use.
type sharedResponse struct {
	w       http.ResponseWriter
	id      json.RawMessage // of the call that the handler answers; nil if the gateway answers, or nobody
	streams bool            // the client accepts a stream
	// header is that of the SDK's handler, or of writeAnswer. It may change while messages are sent here.
	header http.Header
	// opened is called once, when the stream begins. The lock is held.
	opened func()

	mu          sync.Mutex
	alive       *time.Timer // sends the next comment; nil if there are none
	begunHere   bool        // the gateway has begun the stream
	answerBegun bool        // the SDK's handler or writeAnswer has begun its response
	isSSE       bool        // that response is a stream
	over        bool
	// body is the JSON of that response, if the gateway has begun the stream.
	body bytes.Buffer
}

func newSharedResponse(w http.ResponseWriter) *sharedResponse {
	return &sharedResponse{w: w, streams: true, header: http.Header{}}
}

// respondToCall makes the exchange's response a sharedResponse and returns it. A second call returns the
// same one.
func (x *httpExchange) respondToCall() *sharedResponse {
	if r, ok := x.w.(*sharedResponse); ok {
		return r
	}
	r := newSharedResponse(x.w)
	r.id, r.streams = x.m.ID, acceptsStream(x.r)
	x.w = r
	return r
}

// ownEvents begins the IDs of the events of a session's own stream. The official SDK puts the name of a stream before
// the underscore, and a session's own stream has no name.
const ownEvents = "_"

// startKeepAlive has the response begin soon, and comments follow until the end.
func (r *sharedResponse) startKeepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keepAlive(openAfter)
}

// open begins the stream, unless it has begun, and keeps it alive until the end.
func (r *sharedResponse) open() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.beginStream() {
		r.keepAlive(keepAlive)
	}
}

// keepAlive has the stream begin after a pause, or sends a comment then. Further comments follow. r.mu is held.
func (r *sharedResponse) keepAlive(pause time.Duration) {
	if r.alive != nil || !r.streams {
		return
	}
	r.alive = time.AfterFunc(pause, guard.Func(nil, "a stream that is kept alive", func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		begun := r.begunHere || r.answerBegun
		if !r.beginStream() {
			return
		}
		if begun {
			r.sendComment("waiting")
		}
		r.alive.Reset(keepAlive)
	}))
}

// Header implements http.ResponseWriter.
func (r *sharedResponse) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *sharedResponse) WriteHeader(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(code)
}

// begin sends the header of the handler's response. r.mu is held.
func (r *sharedResponse) begin(code int) {
	if r.answerBegun || r.over {
		return
	}
	if code < http.StatusOK { // an informational response comes before the response itself
		if !r.begunHere {
			r.w.WriteHeader(code)
		}
		return
	}
	r.answerBegun = true
	r.isSSE = code == http.StatusOK && strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream")
	if r.isSSE {
		r.noteOpened()
	}
	if !r.begunHere {
		maps.Copy(r.w.Header(), r.header)
		r.w.WriteHeader(code)
	}
}

// noteOpened calls opened if it was not called. r.mu is held.
func (r *sharedResponse) noteOpened() {
	if opened := r.opened; opened != nil {
		r.opened = nil
		opened()
	}
}

// Write implements http.ResponseWriter.
func (r *sharedResponse) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return len(data), nil // the response is over
	}
	r.begin(http.StatusOK)
	if r.begunHere && !r.isSSE {
		return r.body.Write(data)
	}
	return r.w.Write(data)
}

// Flush implements http.Flusher. The stream of a session begins before it has an event.
func (r *sharedResponse) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	if r.opened != nil {
		r.begin(http.StatusOK)
	}
	if r.answerBegun || r.begunHere {
		r.flush()
	}
}

// beginStream begins the response as a stream if nothing has begun it. It returns false if the response cannot be a stream
// or is over. r.mu is held.
func (r *sharedResponse) beginStream() bool {
	switch {
	case r.over || !r.streams || r.answerBegun && !r.isSSE && !r.begunHere:
		return false
	case !r.answerBegun && !r.begunHere:
		r.begunHere = true
		h := r.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		r.w.WriteHeader(http.StatusOK)
		r.sendComment("open")
		r.noteOpened()
	}
	return true
}

// sendMessage sends one JSON-RPC message. r.mu is held.
func (r *sharedResponse) sendMessage(data []byte) {
	_, _ = r.w.Write(wire.AppendEvent(nil, data))
	r.flush()
}

// sendComment sends a comment. r.mu is held.
func (r *sharedResponse) sendComment(text string) {
	fmt.Fprintf(r.w, ": %s\n\n", text)
	r.flush()
}

func (r *sharedResponse) flush() { _ = http.NewResponseController(r.w).Flush() } // fails if the client has disconnected

// send sends a message. After the end it drops the message. It returns false if the response is not a stream.
func (r *sharedResponse) send(message []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.beginStream() {
		return r.over
	}
	r.sendMessage(message)
	return true
}

func (r *sharedResponse) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

func (r *sharedResponse) sendAll(messages [][]byte) {
	for _, message := range messages {
		r.send(message)
	}
}

// end sends the SDK's JSON as an event and closes the response. Call it once, before the HTTP handler
// returns: the response is invalid after that.
func (r *sharedResponse) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begunHere && !r.isSSE && r.id != nil {
		r.sendMessage(r.compactAnswer())
	}
	r.over = true
	if r.alive != nil {
		r.alive.Stop()
	}
}

// compactAnswer returns the SDK's JSON on one line. The SDK refuses some requests with a text that is not
// JSON, or with none: for these it returns an internal error. r.mu is held.
func (r *sharedResponse) compactAnswer() []byte {
	var line bytes.Buffer
	if json.Compact(&line, r.body.Bytes()) != nil || line.Len() == 0 {
		why := "its session has ended"
		if said := strings.TrimSpace(r.body.String()); said != "" {
			why = said
		}
		return wire.EncodeReply(r.id, nil, mcptask.Errorf(mcptask.CodeInternalError, "the call was not answered: %s", text.Shorten(why, longestRefusal)))
	}
	return line.Bytes()
}
