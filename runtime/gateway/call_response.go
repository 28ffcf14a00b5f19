package gateway

import (
	"bytes"
	"encoding/json"
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

// longestRefusal bounds the bytes of the SDK's text in an error.
const longestRefusal = 200

// callResponse is the response to the POST of a call. If the call is not answered soon, or if there is a
// message to send before the answer, the gateway begins the response as a stream. From then on it writes
// comments to it, so that neither the client nor a proxy takes the call for dead. It forwards the events of
// the SDK's handler and of writeAnswer, and turns their JSON into an event. It is safe for concurrent use.
type callResponse struct {
	w       http.ResponseWriter
	id      json.RawMessage // the request's; nil if the client resumes the stream
	streams bool            // the client accepts a stream
	gone    <-chan struct{}
	// header is that of the SDK's handler, or of writeAnswer. It may change while messages are sent here.
	header http.Header

	mu          sync.Mutex
	alive       *time.Timer // sends the next comment; nil if there are none
	begunHere   bool        // the gateway has begun the stream
	answerBegun bool        // the SDK's handler or writeAnswer has begun its response
	isSSE       bool        // that response is a stream
	over        bool
	body        bytes.Buffer // JSON of that response, if the gateway has begun the stream
}

// respondToCall makes the exchange's response a callResponse and returns it. A second call returns the
// same one.
func (x *httpExchange) respondToCall() *callResponse {
	if r, ok := x.w.(*callResponse); ok {
		return r
	}
	r := &callResponse{w: x.w, id: x.m.ID, streams: acceptsStream(x.r), header: http.Header{}, gone: x.r.Context().Done()}
	x.w = r
	return r
}

// ownEvents begins the IDs of the events of a session's own stream. The official SDK puts the name of a stream before
// the underscore, and a session's own stream has no name.
const ownEvents = "_"

// resumeCall serves a GET that resumes the stream of a call, from the events that the SDK has stored. It begins the
// response soon, because the SDK would wait for the next event.
func (g *Gateway) resumeCall(w http.ResponseWriter, r *http.Request) {
	response := &callResponse{w: w, streams: true, header: http.Header{}, gone: r.Context().Done()}
	defer response.end()
	response.startKeepAlive()
	g.forwardStream(g.config.Stateful, response, r)
	response.WriteHeader(http.StatusOK) // unless the SDK has begun it: there may be no event left
}

// startKeepAlive has the response begin soon, and comments follow until the end.
func (r *callResponse) startKeepAlive() {
	if !r.streams {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = time.AfterFunc(openAfter, func() {
		defer guard.Recover(nil, "a call that is kept alive")
		r.mu.Lock()
		defer r.mu.Unlock()
		begun := r.begunHere || r.answerBegun
		s := r.stream()
		if s == nil {
			return
		}
		if begun {
			s.sendComment("waiting")
		}
		r.alive.Reset(keepAlive)
	})
}

// Header implements http.ResponseWriter.
func (r *callResponse) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *callResponse) WriteHeader(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begin(code)
}

// begin sends the header of the SDK's response. r.mu is held.
func (r *callResponse) begin(code int) {
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
	r.isSSE = strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream")
	if r.begunHere {
		return
	}
	for name, values := range r.header {
		r.w.Header()[name] = values
	}
	r.w.WriteHeader(code)
}

// Write implements http.ResponseWriter. The SDK writes one event at a time.
func (r *callResponse) Write(data []byte) (int, error) {
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

// Flush implements http.Flusher.
func (r *callResponse) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || !r.answerBegun && !r.begunHere {
		return
	}
	_ = http.NewResponseController(r.w).Flush() // fails if the client has disconnected
}

func (r *callResponse) carriesQuestions() bool        { return r.streams }
func (r *callResponse) disconnected() <-chan struct{} { return r.gone }

// stream returns the response as a stream, and begins it if nothing has. It returns nil if the response
// cannot be a stream or is over. r.mu is held.
func (r *callResponse) stream() *stream {
	switch {
	case r.over || !r.streams || r.answerBegun && !r.isSSE && !r.begunHere:
		return nil
	case !r.answerBegun && !r.begunHere:
		r.begunHere = true
		return newStream(r.w)
	}
	return &stream{w: r.w, flush: http.NewResponseController(r.w).Flush}
}

// send sends a message. After the end it drops the message. It returns false if the response is not a stream.
func (r *callResponse) send(message []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stream()
	if s == nil {
		return r.over
	}
	s.sendMessage(message)
	return true
}

func (r *callResponse) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

func (r *callResponse) sendAll(messages [][]byte) {
	for _, message := range messages {
		r.send(message)
	}
}

// end sends the SDK's JSON as an event and closes the response. Call it once, before the HTTP handler
// returns: the response is invalid after that.
func (r *callResponse) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begunHere && !r.isSSE && r.id != nil {
		answer := r.encodeAnswer()
		r.stream().sendMessage(answer)
	}
	r.over = true
	if r.alive != nil {
		r.alive.Stop()
	}
}

// encodeAnswer returns the SDK's JSON on one line. The SDK refuses some requests with a text that is not
// JSON, or with none: for these it returns an internal error. r.mu is held.
func (r *callResponse) encodeAnswer() []byte {
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
