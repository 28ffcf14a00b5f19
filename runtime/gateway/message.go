package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// message is one JSON-RPC message as it came in.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *mcptask.Error  `json:"error"`

	said *meta // what meta has read
}

// answers finds the request of ours that the message is the response to.
func (m *message) answers() (ref requestRef, ok bool) {
	var id string
	if m.Method != "" || json.Unmarshal(m.ID, &id) != nil {
		return ref, false
	}
	return parseRequestID(id)
}

// response says whether the message answers a request.
func (m *message) response() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// reserved says whether the message is a notification about tasks, which no
// client sends as a request, and of which nothing is for the user's handlers
// (E-89). A client of 2025-11-25 may tell of its own tasks; nothing relies on it
// (C-46).
func (m *message) reserved() bool {
	return m.Method == "notifications/tasks" || strings.HasPrefix(m.Method, "notifications/tasks/")
}

// noMethod refuses a request of a reserved method.
func noMethod(m *message) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s is not one of requests", brief(m.Method))
}

// unknownMethod refuses a request of a method that its revision does not have.
func unknownMethod(m *message, revision string) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", brief(m.Method), revision)
}

// notYet refuses a request of a newer method.
func notYet(m *message) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s is of a later revision, which a request names in its _meta", brief(m.Method))
}

// newer says whether a request that does not name its revision is of a method
// of 2026-07-28 alone: an SDK may serve it in a session of a revision that knows
// neither the method nor what it answers.
func (m *message) newer() bool { return m.Method == dialect.Listen }

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
	if m.said == nil {
		m.said = new(meta)
		var p struct {
			Meta   meta            `json:"_meta"`
			TaskID json.RawMessage `json:"taskId"`
		}
		if json.Unmarshal(m.Params, &p) == nil { // what is not of this form has said nothing
			*m.said = p.Meta
			m.said.taskID = p.TaskID
		}
	}
	return *m.said
}

// task is params.taskId, "" where there is none that could name a task.
func (m *message) task() string {
	id, ok := unescaped(m.meta().taskID)
	if !ok && json.Unmarshal(m.meta().taskID, &id) != nil {
		return ""
	}
	return id
}

// otherTask is the ID in params.id, by which the guide's dialect names a task, or "".
func (m *message) otherTask() string {
	var params struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(m.Params, &params) // what is malformed names none
	return params.ID
}

// readBody reads a body within the limit.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body exceeds %d bytes: send less, such as a reference to what is big", tooLarge.Limit))
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
	if m := plain(body); m != nil {
		return m, false, nil
	}
	m, err = careful(body)
	return m, false, err
}

// careful reads any message, or says what is wrong with it.
func careful(body []byte) (m *message, err *mcptask.Error) {
	m = new(message)
	if jsonErr := json.Unmarshal(body, m); jsonErr != nil {
		if !json.Valid(body) {
			return nil, mcptask.Errorf(mcptask.CodeParseError, "the message is not JSON")
		}
		return nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the body is not a JSON-RPC message")
	}
	badID := m.ID != nil && !validID(m.ID)
	switch {
	case m.JSONRPC != "2.0":
		err = mcptask.Errorf(mcptask.CodeInvalidRequest, `the message lacks "jsonrpc": "2.0"`)
	case badID && m.Method != "":
		err = mcptask.Errorf(mcptask.CodeInvalidRequest, "the request's id is neither a string nor an integer of at most 53 bits")
	default:
		err = ambiguous(body)
	}
	if err != nil && (badID || m.response()) {
		m.ID = nil // an answer cannot have it
	}
	return m, err
}

// validID says whether an ID comes back as it is: an SDK that reads numbers as
// floats answers a larger one under another.
func validID(id json.RawMessage) bool {
	const largest = 1 << 53
	if id[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n >= -largest && n <= largest
}

// reply is one JSON-RPC response.
type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *mcptask.Error  `json:"error,omitempty"`
}

// encodeResult is encodeReply for a result that encoding/json has made, so that
// nobody has to read it again.
func encodeResult(id, result json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, []byte(`}`))
}

// encodeReply makes the bytes of a response. An error without an ID answers
// what has none that could be read: the schemas of both revisions admit no null
// there, as JSON-RPC would have it, and let the member be absent.
func encodeReply(id, result json.RawMessage, err *mcptask.Error) []byte {
	data, encodeErr := json.Marshal(reply{JSONRPC: "2.0", ID: id, Result: result, Error: err})
	if encodeErr != nil { // a result or data that is no JSON
		data, _ = json.Marshal(reply{JSONRPC: "2.0", ID: id, Error: mcptask.Errorf(mcptask.CodeInternalError, "internal error")})
	}
	return data
}

// respond writes a response as JSON.
func respond(w http.ResponseWriter, status int, id, result json.RawMessage, err *mcptask.Error) {
	write(w, status, encodeReply(id, result, err))
}

func write(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that has left
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
