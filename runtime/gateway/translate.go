package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// A revision that only renames what its base has is translated at the edge: what
// comes in gets the base's names before anything else looks at it, what goes out
// gets the revision's at last. A request says by its protocol version that it is of
// one.

// translation is that of a message; nil is for one that stays as it is.
func (s *speech) translation(version string, m *message) *dialect.Translation {
	for _, t := range s.translations {
		if version == t.Protocol {
			return t
		}
		if _, own := t.Names(m.Params); own {
			return t
		}
	}
	return nil
}

// takes says whether a request without a session may make tasks.
func (s *speech) takes(m *message) bool { return s.without || m.own != nil }

// revisionOf is the revision of a request without a session.
func (s *speech) revisionOf(m *message) string {
	if m.own != nil {
		return m.own.Revision
	}
	return s.modern.Revision()
}

// unknown refuses a method that the request's revision does not have.
func (s *speech) unknown(m *message) *mcptask.Error {
	method := m.Method
	if m.own != nil {
		method = m.own.OutMethod(method)
	}
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", brief(method), s.revisionOf(m))
}

// discovered is the flow of a server/discover: the versions that are translated are
// supported too, and what is generated for one of them alone is declared in it.
func (g *Gateway) discovered(caller mcptask.Caller, m *message) *Flow {
	method := m.Method
	if !g.takes(m) {
		method = "" // the result is completed, and tasks that nobody answers for are not declared
	}
	flow := g.decorated(g.modern, caller, method)
	if g.translations == nil {
		return flow
	}
	decorate := flow.Decorate
	flow.Decorate = func(result json.RawMessage) (_ json.RawMessage, err error) {
		if result, err = decorate(result); err != nil {
			return nil, err
		}
		return dialect.Discovered(g.server, m.own, g.translations, result)
	}
	return flow
}

// unsupported refuses a request of a protocol version that is not spoken, and says
// which are: an SDK does not know those that are translated.
func (g *Gateway) unsupported(meta meta) *mcptask.Error {
	if g.translations == nil || meta.Version == nil || meta.Capabilities == nil || *meta.Version == g.modern.Protocol() {
		return nil
	}
	return checkMeta(meta, g.modern.Revision(), g.translations...)
}

// postTranslated serves a message of a revision that is translated.
func (g *Gateway) postTranslated(w http.ResponseWriter, r *http.Request, principal string, t *dialect.Translation, m *message, body []byte) {
	out := &translated{ResponseWriter: w, t: t, method: t.InMethod(m.Method)}
	defer out.end()
	header := r.Header.Get(versionHeader)
	if said, _ := t.Names(m.Params); said != nil && m.request() && header != *said {
		refuseModern(out, m.ID, mcptask.Errorf(mcptask.CodeHeaderMismatch, "the %s header is %q, the body says %q", versionHeader, brief(header), brief(*said)))
		return
	}
	r.Header.Set(versionHeader, t.InVersion(header))
	if method := r.Header.Get(methodHeader); method != "" {
		r.Header.Set(methodHeader, t.InMethod(method))
	}
	body = t.In(body, "")
	renamed, _, err := parse(body)
	if err != nil {
		refuseModern(out, m.ID, err)
		return
	}
	renamed.own = t
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	g.serve(out, r, principal, renamed, false, body)
}

// translated is the answer to a request of a revision that is translated: JSON as
// a whole, a stream line by line, as everything here writes one.
type translated struct {
	http.ResponseWriter
	t      *dialect.Translation
	method string
	status int  // 0 before there is one
	whole  bool // the body is JSON, and held
	stream bool
	held   []byte
}

// Unwrap is for http.ResponseController.
func (w *translated) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *translated) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	w.status, w.whole, w.stream = status, media == "application/json", media == "text/event-stream"
	if w.whole || w.stream {
		w.Header().Del("Content-Length")
	}
	if !w.whole {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *translated) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.whole && !w.stream {
		return w.ResponseWriter.Write(data)
	}
	w.held = append(w.held, data...)
	if !w.stream {
		return len(data), nil
	}
	last := bytes.LastIndexByte(w.held, '\n') + 1
	var ready []byte
	for line := range bytes.Lines(w.held[:last]) {
		if message, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(message)) > 0 {
			line = slices.Concat([]byte("data: "), w.t.Out(bytes.TrimSpace(message), w.method), []byte("\n"))
		}
		ready = append(ready, line...)
	}
	w.held = slices.Clone(w.held[last:])
	if len(ready) == 0 {
		return len(data), nil
	}
	_, err := w.ResponseWriter.Write(ready)
	return len(data), err
}

// Flush implements http.Flusher.
func (w *translated) Flush() {
	if !w.whole {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // a client that has left
	}
}

// end writes what is held.
func (w *translated) end() {
	if w.whole {
		w.ResponseWriter.WriteHeader(w.status)
		_, _ = w.ResponseWriter.Write(w.t.Out(w.held, w.method)) // a client that has left
	}
}

// exchanges are the requests on a pipe that are translated, until they are answered.
type exchanges struct {
	mu  sync.Mutex
	all map[string]exchange // by ID
}

type exchange struct {
	t      *dialect.Translation
	method string
	// answers is how many responses are to come: an ID that is still in use is
	// refused.
	answers int
}

// begun notes a request.
func (e *exchanges) begun(m *message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string]exchange{}
	}
	id := sameID(m.ID)
	one, under := e.all[id]
	if !under {
		one = exchange{t: m.own, method: m.Method}
	}
	one.answers++
	e.all[id] = one
}

// answered finds the request that a response answers.
func (e *exchanges) answered(id json.RawMessage) (exchange, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	one, ok := e.all[sameID(id)]
	if one.answers--; one.answers > 0 {
		e.all[sameID(id)] = one
	} else {
		delete(e.all, sameID(id))
	}
	return one, ok
}

// cancelled forgets a request whose answer nobody waits for.
func (e *exchanges) cancelled(id json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, sameID(id))
}

// subscribed finds the request that a notification belongs to.
func (e *exchanges) subscribed(params json.RawMessage) (exchange, bool) {
	id := dialect.SubscriptionID(params)
	if id == nil {
		return exchange{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	one, ok := e.all[sameID(id)]
	return one, ok
}

// out is a line that goes out in the words of whom it is for.
func (e *exchanges) out(line []byte) []byte {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	find := func() (exchange, bool) { return e.subscribed(m.Params) }
	switch {
	case m.Method == "":
		find = func() (exchange, bool) { return e.answered(m.ID) }
	case m.ID != nil:
		return line
	}
	if one, ok := find(); ok {
		return one.t.Out(line, one.method)
	}
	return line
}

// translated is a line from the client in the base's words, where it is of a
// revision that is translated.
func (p *pipe) translated(m *message, line []byte) (*message, []byte, *mcptask.Error) {
	t := p.g.translation("", m)
	if t == nil {
		return m, line, nil
	}
	line = t.In(line, "")
	renamed, _, err := parse(line)
	if err != nil {
		return m, line, err
	}
	renamed.own = t
	if renamed.request() {
		p.exchanges.begun(renamed)
	}
	return renamed, line, nil
}
