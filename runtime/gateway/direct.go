package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// direct serves what would go through an SDK whose types cannot carry tasks:
// calls of our tools are answered here, and results that need additions get
// them on the way out.
func (x *httpExchange) direct(w http.ResponseWriter, flow *Flow) {
	if flow.Tool != "" {
		result, err := x.directCall(flow)
		switch {
		case err == nil:
			write(w, http.StatusOK, wire.EncodeReply(x.m.ID, result, nil))
		case flow.Stateless:
			refuse(w, modernStatus(wireError(err)), x.m.ID, wireError(err))
		default:
			refuse(w, http.StatusOK, x.m.ID, wireError(err))
		}
		return
	}
	held := &held{header: http.Header{}, code: http.StatusOK}
	x.next().ServeHTTP(held, x.r)
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
		refuse(w, http.StatusOK, x.m.ID, wireError(err))
		return
	}
	w.Header().Del("Content-Length")
	write(w, held.code, wire.EncodeReply(x.m.ID, decorated, nil))
}

// directCall runs a tool without the SDK.
func (x *httpExchange) directCall(flow *Flow) (json.RawMessage, error) {
	reply, err := flow.Run(x.r.Context(), x.g.server, flow.Tool, x.m.Params.Get("arguments"), Hooks{})
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
		var last []byte
		for event, rest, ok := wire.CutEvent(text); ok; event, rest, ok = wire.CutEvent(rest) {
			last = event.Data()
		}
		text = last
	}
	var message struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(text, &message) != nil || message.Result == nil {
		return nil, false
	}
	return message.Result, true
}
