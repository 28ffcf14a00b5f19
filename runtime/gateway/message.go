package gateway

import (
	"encoding/json"
	"errors"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// message is a JSON-RPC message with what the gateway reads of each request.
type message struct {
	*wire.Message
	meta meta
}

// meta is what a request says of itself in params._meta (2026-07-28).
type meta struct {
	Version      *string
	Capabilities json.RawMessage
}

// Readers of JSON differ in what they make of a member that stands twice, or
// of "Name" if they know "name". The gateway must not see another request
// than the SDK behind it, so it refuses what could be read in two ways.
var (
	paramsMembers = []string{"_meta", "name", "arguments", "task", "taskId", "cursor", "inputResponses", "protocolVersion", "capabilities"}
	metaMembers   = []string{mcptask.MetaProtocolVersion, mcptask.MetaClientCapabilities, mcptask.MetaIdempotencyKey, "progressToken"}
)

// interpreted says whether the gateway acts on the params of a method.
func interpreted(method string) bool {
	switch method {
	case "initialize", "server/discover", "tools/list", "tools/call", dialect.Listen:
		return true
	}
	return strings.HasPrefix(method, "tasks/")
}

// parse reads one message; of a batch there is none.
func parse(body []byte) (m *message, batch bool, refusal *mcptask.Error) {
	read, batch, refusal := wire.Read(body)
	if read == nil {
		return nil, batch, refusal
	}
	m = &message{Message: read}
	if refusal != nil {
		return m, false, refusal
	}
	if interpreted(m.Method) {
		fault := m.Params.Fault(paramsMembers)
		if fault == "" {
			fault = m.Params.Object("_meta").Fault(metaMembers)
		}
		if fault != "" {
			return m, false, mcptask.Errorf(mcptask.CodeInvalidParams, "the params are ambiguous: %s", fault)
		}
	}
	m.meta = readMeta(m.Params)
	return m, false, nil
}

// readMeta reads what params say of their request. What is malformed says nothing.
func readMeta(params *wire.Object) (said meta) {
	if raw := params.Get("_meta", mcptask.MetaProtocolVersion); raw != nil && string(raw) != "null" {
		version, ok := wire.Text(raw)
		if !ok {
			return meta{}
		}
		said.Version = &version
	}
	said.Capabilities = params.Get("_meta", mcptask.MetaClientCapabilities)
	return said
}

// answers finds the request of ours that the message is the response to.
func (m *message) answers() (request push.RequestID, ok bool) {
	if m.Method != "" {
		return request, false
	}
	id, _ := wire.Text(m.ID)
	return push.ParseRequestID(id)
}

// reserved says whether the message is a notification about tasks, which no
// client sends as a request, and of which nothing is for the user's handlers
// (E-89). A client of 2025-11-25 may tell of its own tasks; nothing relies on it
// (C-46).
func (m *message) reserved() bool {
	return m.Method == "notifications/tasks" || strings.HasPrefix(m.Method, "notifications/tasks/")
}

// noMethod refuses a request of a reserved method.
func noMethod(m *message) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s is not one of requests", wire.Brief(m.Method))
}

// unknownMethod refuses a request of a method that its revision does not have.
func unknownMethod(m *message, revision string) *mcptask.Error {
	if revision == "" { // of a session that is not initialized
		revision = "this revision"
	}
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", wire.Brief(m.Method), revision)
}

// notYet refuses a request of a newer method.
func notYet(m *message) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s is of a later revision, which a request names in its _meta", wire.Brief(m.Method))
}

// newer says whether a request that does not name its revision is of a method
// of 2026-07-28 alone: an SDK may serve it in a session of a revision that knows
// neither the method nor what it answers.
func (m *message) newer() bool { return m.Method == dialect.Listen }

// wireError makes the error that leaves the process.
func wireError(err error) *mcptask.Error {
	var wire *mcptask.Error
	if errors.As(err, &wire) {
		return wire
	}
	return mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}
