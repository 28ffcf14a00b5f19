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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// openAfter is how long a call may go unanswered before its response begins. Hosts wait for the first byte,
// some for no more than a minute.
const openAfter = time.Second / 2

// callResponse is the response to the POST of a call. If the call is not answered soon, or if there is a message to send
// before the answer, the gateway begins the response as a stream. From then on it writes comments to it, so that
// neither the client nor a proxy takes the call for dead. It forwards the SDK's events, and turns the
// SDK's JSON into an event.
type callResponse struct {
	w       http.ResponseWriter
	id      json.RawMessage // the request's
	streams bool            // the client accepts a stream
	gone    <-chan struct{}
	// header is the SDK's header. The SDK may change it while messages are sent here.
	header http.Header

	mu         sync.Mutex
	alive      *time.Timer // sends the next comment; nil if there are none
	begunHere  bool        // the gateway has begun the stream
	begunBySDK bool        // the SDK has begun its response
	isSSE      bool        // the SDK's response is a stream
	over       bool
	body       bytes.Buffer // the SDK's JSON, if the gateway has begun the stream
}

// respondToCall makes the exchange's response that of a call, and returns it. It may be called again.
func (x *httpExchange) respondToCall() *callResponse {
	if r, ok := x.w.(*callResponse); ok {
		return r
	}
	r := &callResponse{w: x.w, id: x.m.ID, streams: acceptsStream(x.r), header: http.Header{}, gone: x.r.Context().Done()}
	x.w = r
	return r
}

// keepAlive begins the response if it has not begun soon, and sends comments until the end.
func (p *callResponse) keepAlive() {
	if !p.streams {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive = time.AfterFunc(openAfter, func() {
		defer guard.Recover(nil, "a call that is kept alive")
		p.mu.Lock()
		defer p.mu.Unlock()
		begun := p.begunHere || p.begunBySDK
		s := p.stream()
		if s == nil {
			return
		}
		if begun {
			s.sendComment("waiting")
		}
		p.alive.Reset(keepAlive)
	})
}

// Header implements http.ResponseWriter.
func (p *callResponse) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *callResponse) WriteHeader(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(code)
}

// begin sends the header of the SDK's response. p.mu is held.
func (p *callResponse) begin(code int) {
	if p.begunBySDK || p.over {
		return
	}
	if code < http.StatusOK { // an informational response comes before the response itself
		if !p.begunHere {
			p.w.WriteHeader(code)
		}
		return
	}
	p.begunBySDK = true
	p.isSSE = strings.HasPrefix(p.header.Get("Content-Type"), "text/event-stream")
	if p.begunHere {
		return
	}
	for name, values := range p.header {
		p.w.Header()[name] = values
	}
	p.w.WriteHeader(code)
}

// Write implements http.ResponseWriter. The SDK writes one event at a time.
func (p *callResponse) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return len(data), nil // the response is over
	}
	p.begin(http.StatusOK)
	if p.begunHere && !p.isSSE {
		return p.body.Write(data)
	}
	return p.w.Write(data)
}

// Flush implements http.Flusher.
func (p *callResponse) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || !p.begunBySDK && !p.begunHere {
		return
	}
	_ = http.NewResponseController(p.w).Flush() // fails if the client has disconnected
}

func (p *callResponse) carriesQuestions() bool        { return p.streams }
func (p *callResponse) disconnected() <-chan struct{} { return p.gone }

// stream returns the response as a stream, or nil if it is not a stream. p.mu is held.
func (p *callResponse) stream() *stream {
	switch {
	case p.over || !p.streams || p.begunBySDK && !p.isSSE && !p.begunHere:
		return nil
	case !p.begunBySDK && !p.begunHere:
		p.begunHere = true
		return newStream(p.w)
	}
	return &stream{w: p.w, flush: http.NewResponseController(p.w).Flush}
}

func (p *callResponse) send(message []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stream()
	if s == nil {
		return p.over // after the end, messages are dropped
	}
	s.sendMessage(message)
	return true
}

func (p *callResponse) sendAll(messages [][]byte) {
	for _, message := range messages {
		p.send(message)
	}
}

// end sends the SDK's JSON as an event and closes the response, which is invalid once its handler has
// returned.
func (p *callResponse) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begunHere && !p.isSSE {
		p.stream().sendMessage(p.answer())
	}
	p.over = true
	if p.alive != nil {
		p.alive.Stop()
	}
}

// answer returns the SDK's JSON on one line. The SDK refuses some requests with a text that is not JSON,
// or with none. p.mu is held.
func (p *callResponse) answer() []byte {
	var line bytes.Buffer
	if json.Compact(&line, p.body.Bytes()) != nil || line.Len() == 0 {
		return wire.EncodeReply(p.id, nil, mcptask.Errorf(mcptask.CodeInternalError, "the call was not answered"))
	}
	return line.Bytes()
}
