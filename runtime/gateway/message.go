package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// message is a JSON-RPC message with the metadata that the gateway needs.
type message struct {
	*wire.Message
	meta meta
}

// meta has the declarations of a request in params._meta (2026-07-28).
type meta struct {
	Version      *string
	Capabilities *wire.Object
	Client       json.RawMessage
}

// JSON readers disagree about a duplicate member, and about "Name" if they know "name". The gateway
// must see the same request as the SDK behind it, so it refuses a request that can be read in two
// ways.
var (
	paramsMembers = []string{"_meta", "name", "arguments", "task", "taskId", "cursor", "inputResponses", "protocolVersion", "capabilities"}
	metaMembers   = []string{spec.MetaProtocolVersion, spec.MetaClientCapabilities, spec.MetaIdempotencyKey, "progressToken"}
)

// readsParams reports whether the gateway acts on the params of a method.
func readsParams(method string) bool {
	switch method {
	case "initialize", spec.Discover, "tools/list", "tools/call", protocol.Listen:
		return true
	}
	return strings.HasPrefix(method, "tasks/")
}

// parseMessage reads one message. For text that has no message, it returns an empty message.
func parseMessage(body []byte) (m *message, refusal *mcptask.Error) {
	if refusal := checkMembers(wire.NewObject(body), "message"); refusal != nil {
		return &message{Message: &wire.Message{}}, refusal
	}
	read, refusal := wire.Read(body)
	if read == nil {
		return &message{Message: &wire.Message{}}, refusal
	}
	m = &message{Message: read}
	if refusal == nil {
		refusal = checkMembers(m.Params, "params")
	}
	if refusal == nil {
		refusal = checkMembers(m.Params.Object("_meta"), "metadata of the params")
	}
	if refusal != nil {
		return m, refusal
	}
	if readsParams(m.Method) {
		fault := m.Params.Fault(paramsMembers)
		if fault == "" {
			fault = m.Params.Object("_meta").Fault(metaMembers)
		}
		if fault != "" {
			return m, mcptask.Errorf(mcptask.CodeInvalidParams, "the params are ambiguous: %s", fault)
		}
	}
	m.meta = readMeta(m.Params)
	return m, nil
}

// renameCall returns a call under a former name of a tool as one under its name. So the SDK, its middleware and hooks know
// one name. It renames the header as well, which is nil on a pipe. It returns any other message as it is.
func (g *Gateway) renameCall(m *message, header http.Header) *message {
	if m.Method != "tools/call" {
		return m
	}
	name, _ := m.Params.Text("name")
	tool, ok := g.server.Tool(name)
	if !ok || tool.Name == name {
		return m
	}
	said := header.Get(nameHeader)
	if decoded, _ := decodeHeader(said); said != "" && decoded != name { // the SDK refuses headers that do not match the body (E-72)
		return m
	}
	body, err := m.Edited(wire.Set(json.RawMessage(`"`+tool.Name+`"`), "params", "name")) // no character of a name needs an escape
	renamed, refusal := parseMessage(body)
	if err != nil || refusal != nil { // the message has been read before
		return m
	}
	if said != "" {
		header.Set(nameHeader, tool.Name)
	}
	return renamed
}

// readMeta reads the metadata of a request. It ignores malformed metadata.
func readMeta(params *wire.Object) (said meta) {
	if raw := params.Get("_meta", spec.MetaProtocolVersion); raw != nil && string(raw) != "null" {
		version, ok := wire.Text(raw)
		if !ok {
			return meta{}
		}
		said.Version = &version
	}
	said.Capabilities = params.Object("_meta", spec.MetaClientCapabilities)
	said.Client = params.Get("_meta", spec.MetaClientInfo)
	return said
}

// longestClient bounds the kept part of a client's name and of its version, in bytes.
const longestClient = 100

// readClient reads a clientInfo. It ignores malformed members.
func readClient(info json.RawMessage) taskserver.ClientInfo {
	said := wire.NewObject(info)
	read := func(member string) string {
		said, _ := said.Text(member)
		return strings.Clone(text.Shorten(said, longestClient))
	}
	return taskserver.ClientInfo{Name: read("name"), Version: read("version")}
}

// progressToken returns the token of a request that asks for progress, or nil.
func (m *message) progressToken() json.RawMessage { return m.Params.Get("_meta", "progressToken") }

// isUnattended reports whether a call says that nobody answers its questions by the fallback tools.
func (m *message) isUnattended() bool {
	return string(m.Params.Get("_meta", spec.MetaUnattended)) == "true"
}

// answeredRequest returns the request of the server's that the message answers.
func (m *message) answeredRequest() (request push.RequestID, ok bool) {
	if m.Method != "" {
		return request, false
	}
	id, _ := wire.Text(m.ID)
	return push.ParseRequestID(id)
}

// isTaskNotification reports whether the method is a notification about tasks. No client sends it
// as a request, and it is not for the user's handlers (E-89). A client of 2025-11-25 may report on
// its own tasks, but nothing relies on that (C-46).
func (m *message) isTaskNotification() bool {
	return m.Method == "notifications/tasks" || strings.HasPrefix(m.Method, "notifications/tasks/")
}

// notificationError refuses a request whose method is reserved for notifications.
func notificationError(m *message) *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s is a notification, not a request", wire.ShortenName(m.Method))
}

// unknownMethodError refuses a request whose method does not exist in its revision.
func unknownMethodError(m *message, revision string) *mcptask.Error {
	if revision == "" { // the session is not initialized
		revision = "this revision"
	}
	return mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", wire.ShortenName(m.Method), revision)
}

// isNewerMethod reports whether a request without a revision uses a method of 2026-07-28. An SDK
// might serve it in a session whose revision has neither the method nor its answer.
func (m *message) isNewerMethod() bool { return m.Method == protocol.Listen }

// wireError returns the error that is sent to the client. It hides the text of internal errors.
func wireError(err error) *mcptask.Error {
	var wire *mcptask.Error
	if errors.As(err, &wire) {
		return wire
	}
	return mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}
