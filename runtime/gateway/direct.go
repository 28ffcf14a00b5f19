package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// direct serves a request for an SDK whose types cannot carry tasks. It answers calls of the
// server's tools in the gateway. For other requests it asks the SDK and completes the result.
func (x *httpExchange) direct(flow *Flow) {
	w := x.w
	if flow.Tool != "" {
		result, err := x.g.callDirectly(x.r.Context(), x, flow, x.progressHook())
		if err != nil {
			x.refuse(refusedRequest, wireError(err))
			return
		}
		write(w, http.StatusOK, wire.EncodeReply(x.m.ID, result, nil))
		return
	}
	buffered := newBufferedResponse()
	x.next().ServeHTTP(buffered, x.r)
	result, ok := buffered.result()
	if !ok {
		buffered.copyTo(w)
		return
	}
	if flow.Connected != nil {
		buffered.connect(flow, result)
	}
	decorated, err := flow.Decorate(result)
	if err != nil {
		refuse(w, http.StatusOK, x.m.ID, wireError(err))
		return
	}
	buffered.replaceResult(result, decorated)
	buffered.copyTo(w)
}

// progressHook returns a function that sends the progress of a plain call on the call's stream, or nil
// if the client has not asked for progress.
func (x *httpExchange) progressHook() taskserver.ProgressFunc {
	token := x.m.progressToken()
	if token == nil {
		return nil
	}
	response := x.respondToCall()
	return func(taskID string, done, total float64, message string) {
		if taskID != "" {
			return // a task may outlast the stream of its call
		}
		if data := encodeProgress(token, done, total, message, nil); data != nil {
			response.send(data)
		}
	}
}

// encodeProgress returns a report of progress, or nil if its numbers are not finite. meta may be nil.
func encodeProgress(token json.RawMessage, done, total float64, message string, meta map[string]any) []byte {
	params := map[string]any{"progressToken": token, "progress": done, "message": message}
	if total > 0 {
		params["total"] = total
	}
	if meta != nil {
		params["_meta"] = meta
	}
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
	if err != nil {
		return nil
	}
	return data
}

// callDirectly runs a tool without the SDK.
func (g *Gateway) callDirectly(ctx context.Context, x exchange, flow *Flow, progress taskserver.ProgressFunc) (json.RawMessage, error) {
	reply, err := flow.Run(ctx, g.server, flow.Tool, x.message().Params.Get("arguments"), progress)
	if err != nil {
		return nil, err
	}
	result, err := encodeReply(flow, reply)
	if err != nil || !flow.Stateless {
		return result, err
	}
	return g.nameServer(ctx, x, result), nil
}

// encodeReply returns the result of a call that ran without the SDK.
func encodeReply(flow *Flow, reply taskserver.CallReply) (json.RawMessage, error) {
	switch {
	case reply.Outcome == nil:
		return flow.Encode(reply)
	case reply.Outcome.Kind == taskstore.OutcomeError:
		return nil, reply.Outcome.Error
	case reply.Outcome.Kind == taskstore.OutcomeCancelled:
		return nil, mcptask.Errorf(mcptask.CodeInternalError, "the call was cancelled")
	}
	return flow.Decorate(reply.Outcome.Result)
}

// connect tells the flow of an initialize of its session, which has the ID session, or "". result is that of the response.
func (f *Flow) connect(session string, result json.RawMessage) {
	var negotiated struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &negotiated) == nil {
		f.Connected(session, negotiated.ProtocolVersion, nil)
	}
}

// bufferedResponse buffers a response until its result is complete. It is for methods that answer
// at once.
type bufferedResponse struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func newBufferedResponse() *bufferedResponse {
	return &bufferedResponse{header: http.Header{}, code: http.StatusOK}
}

// Header implements http.ResponseWriter.
func (h *bufferedResponse) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *bufferedResponse) WriteHeader(code int) { h.code = code }

// Write implements http.ResponseWriter.
func (h *bufferedResponse) Write(data []byte) (int, error) { return h.body.Write(data) }

// Flush implements http.Flusher.
func (h *bufferedResponse) Flush() {}

// connect tells the flow of an initialize of its session. result is that of the response.
func (h *bufferedResponse) connect(flow *Flow, result json.RawMessage) {
	flow.connect(h.header.Get(sessionHeader), result)
}

// replaceResult puts another result in the place of that of the response.
func (h *bufferedResponse) replaceResult(result, other json.RawMessage) {
	text := h.body.Bytes()
	at := bytes.LastIndex(text, result)
	if at < 0 || bytes.Equal(result, other) {
		return
	}
	h.body = *bytes.NewBuffer(slices.Concat(text[:at], other, text[at+len(result):]))
	h.header.Del("Content-Length")
}

// copyTo sends the response.
func (h *bufferedResponse) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), h.header)
	if h.code != http.StatusOK { // a write implies OK, or replaces it if there is too little memory
		w.WriteHeader(h.code)
	}
	_, _ = w.Write(h.body.Bytes()) // fails if the client has disconnected
}

// result returns the result of the response.
func (h *bufferedResponse) result() (json.RawMessage, bool) {
	var message struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(h.message(), &message) != nil || message.Result == nil {
		return nil, false
	}
	return message.Result, true
}

// message returns a JSON body, or the data of the last event of a stream.
func (h *bufferedResponse) message() []byte {
	text := h.body.Bytes()
	if strings.HasPrefix(h.header.Get("Content-Type"), "text/event-stream") {
		var last []byte
		for event, rest, ok := wire.CutEvent(text); ok; event, rest, ok = wire.CutEvent(rest) {
			last = event.Data()
		}
		text = last
	}
	return text
}
