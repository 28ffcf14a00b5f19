package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// direct serves what would go through an SDK whose types cannot carry tasks:
// calls of our tools are answered here, and results that need additions get
// them on the way out.
func (g *Gateway) direct(w http.ResponseWriter, r *http.Request, next http.Handler, flow *Flow) {
	body, err := io.ReadAll(r.Body) // in memory already
	m, _, refusal := parse(body)
	if err != nil || refusal != nil {
		refuse(w, http.StatusBadRequest, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body could not be read"))
		return
	}
	if flow.Tool != "" {
		result, err := g.directCall(r, flow, m)
		switch {
		case err == nil:
			respond(w, http.StatusOK, m.ID, result, nil)
		case flow.Stateless:
			refuseModern(w, m.ID, wireError(err))
		default:
			refuse(w, http.StatusOK, m.ID, wireError(err))
		}
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	held := &held{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(held, r)
	for name, values := range held.header {
		w.Header()[name] = values
	}
	result, ok := held.result()
	if !ok {
		w.WriteHeader(held.code)
		_, _ = w.Write(held.body.Bytes()) // a client that has left
		return
	}
	if flow.Connected != nil {
		var negotiated struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(result, &negotiated) == nil {
			flow.Connected(held.header.Get(sessionHeader), negotiated.ProtocolVersion, nil)
		}
	}
	decorated, err := flow.Decorate(result)
	if err != nil {
		refuse(w, http.StatusOK, m.ID, wireError(err))
		return
	}
	w.Header().Del("Content-Length")
	respond(w, held.code, m.ID, decorated, nil)
}

// directCall runs a tool without the SDK.
func (g *Gateway) directCall(r *http.Request, flow *Flow, m *message) (json.RawMessage, error) {
	var params struct {
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return nil, mcptask.Errorf(mcptask.CodeInvalidParams, "the params do not fit")
	}
	reply, err := flow.Run(r.Context(), g.server, flow.Tool, params.Arguments, Hooks{})
	switch {
	case err != nil:
		return nil, err
	case reply.Outcome == nil:
		return flow.Encode(reply)
	case reply.Outcome.Kind == mcptask.OutcomeError:
		return nil, reply.Outcome.Error
	case reply.Outcome.Kind == mcptask.OutcomeCancelled:
		return nil, mcptask.Errorf(mcptask.CodeInternalError, "the call was cancelled")
	}
	return flow.Decorate(reply.Outcome.Result)
}

// held is a response that is kept until its result has its additions. It is
// for methods that answer at once.
type held struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (h *held) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *held) WriteHeader(code int) { h.code = code }

// Write implements http.ResponseWriter.
func (h *held) Write(data []byte) (int, error) { return h.body.Write(data) }

// Flush implements http.Flusher.
func (h *held) Flush() {}

// result finds the result in a JSON body or in the last event of a stream.
func (h *held) result() (json.RawMessage, bool) {
	text := h.body.Bytes()
	if strings.HasPrefix(h.header.Get("Content-Type"), "text/event-stream") {
		var data []byte
		for line := range bytes.Lines(text) {
			if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				data = rest
			}
		}
		text = data
	}
	var message struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(text, &message) != nil || message.Result == nil {
		return nil, false
	}
	return message.Result, true
}
