package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// message is one JSON-RPC message as it came in.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *mcptask.Error  `json:"error"`
}

// question finds the question of ours that the message is the response to.
func (m *message) question() (task, key string, ok bool) {
	var id string
	if m.Method != "" || json.Unmarshal(m.ID, &id) != nil {
		return "", "", false
	}
	return parseRequestID(id)
}

// request says whether the message expects an answer.
func (m *message) request() bool { return m.Method != "" && m.ID != nil }

// meta is what a request says of itself in params._meta (2026-07-28).
type meta struct {
	Version      *string         `json:"io.modelcontextprotocol/protocolVersion"`
	Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
	// taskID is params.taskId, whatever it is.
	taskID json.RawMessage
}

func (m *message) meta() meta {
	var p struct {
		Meta   meta            `json:"_meta"`
		TaskID json.RawMessage `json:"taskId"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return meta{} // what is not of this form has said nothing
	}
	p.Meta.taskID = p.TaskID
	return p.Meta
}

// readBody reads a body within the limit.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body exceeds %d bytes", tooLarge.Limit))
		return nil, false
	case err != nil:
		refuse(w, http.StatusBadRequest, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body could not be read"))
		return nil, false
	}
	return body, true
}

// parse reads one message. A batch is told apart, because a session of
// 2025-03-26 may send one.
func parse(body []byte) (m *message, batch bool, err *mcptask.Error) {
	if !utf8.Valid(body) { // encoding/json would mend it, the SDK would not
		return nil, false, mcptask.Errorf(mcptask.CodeParseError, "the message is not UTF-8")
	}
	body = bytes.TrimLeft(body, " \t\r\n")
	if len(body) > 0 && body[0] == '[' {
		if !json.Valid(body) {
			return nil, false, mcptask.Errorf(mcptask.CodeParseError, "the message is not JSON")
		}
		return nil, true, nil
	}
	m = new(message)
	if jsonErr := json.Unmarshal(body, m); jsonErr != nil {
		if !json.Valid(body) {
			return nil, false, mcptask.Errorf(mcptask.CodeParseError, "the message is not JSON")
		}
		return nil, false, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body is not a JSON-RPC message")
	}
	if m.JSONRPC != "2.0" {
		return m, false, mcptask.Errorf(mcptask.CodeInvalidRequest, `the message lacks "jsonrpc": "2.0"`)
	}
	if m.Method != "" && m.ID != nil && !validID(m.ID) {
		m.ID = nil
		return m, false, mcptask.Errorf(mcptask.CodeInvalidRequest, "the request's id is neither a string nor an integer")
	}
	if err := ambiguous(body); err != nil {
		return m, false, err
	}
	return m, false, nil
}

func validID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	return (id[0] == '-' || id[0] >= '0' && id[0] <= '9') && !bytes.ContainsAny(id, ".eE")
}

// reply is one JSON-RPC response.
type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *mcptask.Error  `json:"error,omitempty"`
}

var null = json.RawMessage("null")

// encodeReply makes the bytes of a response.
func encodeReply(id, result json.RawMessage, err *mcptask.Error) []byte {
	if id == nil {
		id = null
	}
	data, encodeErr := json.Marshal(reply{JSONRPC: "2.0", ID: id, Result: result, Error: err})
	if encodeErr != nil { // a result or data that is no JSON
		data, _ = json.Marshal(reply{JSONRPC: "2.0", ID: id, Error: mcptask.Errorf(mcptask.CodeInternalError, "internal error")})
	}
	return data
}

// respond writes a response as JSON.
func respond(w http.ResponseWriter, status int, id, result json.RawMessage, err *mcptask.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(encodeReply(id, result, err)) // a client that has left
}

// refuse writes an error response.
func refuse(w http.ResponseWriter, status int, id json.RawMessage, err *mcptask.Error) {
	respond(w, status, id, nil, err)
}

// wireError makes the error that leaves the process.
func wireError(err error) *mcptask.Error {
	var wire *mcptask.Error
	if errors.As(err, &wire) {
		return wire
	}
	return mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}

func acceptsStream(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		if strings.Contains(accept, "text/event-stream") {
			return true
		}
	}
	return false
}
