package gosdk

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// HandlerOption changes a handler of [NewHandler] or [NewRevisionHandler].
type HandlerOption func(*handlerOptions)

type handlerOptions struct{ direct bool }

// DirectTaskCalls lets the handler answer calls that make a task without the SDK, which spends most
// of the time that such a call takes. Clients see no difference. The SDK does not see these calls:
//
//   - Receiving middleware of the server does not run for them. Do not use this option if such
//     middleware decides who may call a tool, or counts, logs or changes calls. Middleware around
//     the handler, Options.Principal, the limits and the audit trail work as they do without it.
//   - A tool that a server got from AddTools or AddTaskTool stays callable after RemoveTools, and
//     after AddTool gave its name to another tool. A tool that the server did not get there is not
//     callable: getServer may return servers with different tools.
//   - A handler's error -32601 keeps its message and data, which the SDK replaces in 2026-07-28.
//
// The SDK still answers calls without a task, and those for which it is needed: calls with a
// progress token; in sessions, calls of tools that ask before they start, and all calls if the
// handler has an EventStore; calls of tools whose schema has x-mcp-header; the first requests of a
// server in 2026-07-28, until it has named itself; and requests that it may refuse. So middleware
// sees some calls that make a task, and cannot rely on that.
func DirectTaskCalls() HandlerOption {
	return func(o *handlerOptions) { o.direct = true }
}

// served is what is known of an SDK server that has tools of tasks. It is safe for concurrent use.
type served struct {
	tools sync.Map // the names of those that may be called without the SDK
	// info is how the SDK names the server in results of 2026-07-28. It is nil until the SDK
	// has made such a result, which also shows that the server speaks the revision.
	info atomic.Pointer[json.RawMessage]
}

// has notes that the server has a tool. The SDK checks x-mcp-header against the headers.
func (s *served) has(spec mcptask.ToolSpec) {
	if !strings.Contains(spec.InputSchema, "x-mcp-header") {
		s.tools.Store(spec.Name, nil)
	}
}

// named notes how the SDK names the server.
func (s *served) named(info *mcp.Implementation) {
	if s.info.Load() != nil {
		return
	}
	if data, err := json.Marshal(info); err == nil {
		s.info.Store((*json.RawMessage)(&data))
	}
}

// result makes the SDK's type of a result of the server.
func (s *served) result(data json.RawMessage, err error) (mcp.Result, error) {
	if err != nil {
		return nil, toSDKError(err)
	}
	return &rawResult{body: data, of: s}, nil
}

// connected tells the flow of an initialize of its session.
func (s *served) connected(flow *gateway.Flow, req mcp.Request, result mcp.Result) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	init, isInit := result.(*mcp.InitializeResult)
	if !ok || !isInit {
		return
	}
	behind := servedSession{served: s}
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		behind.user = extra.TokenInfo.UserID
	}
	flow.Behind = behind
	flow.Connected(session.ID(), init.ProtocolVersion, session.Wait)
}

// servedSession is what is known of the SDK's session.
type servedSession struct {
	*served
	user string // the only one whose tokens the SDK takes; "" if it takes any
}

// bypass is the way of calls past the SDK, for one handler.
type bypass struct {
	tasks     *mcptask.Server
	getServer func(*http.Request) *mcp.Server
	json      bool // the SDK answers with JSON
	stored    bool // the SDK stores the answers of sessions
}

// find implements gateway.Config.Bypass.
func (b *bypass) find(call gateway.BypassCall) gateway.AnswerWriter {
	r := call.Request
	if !acceptsAnswers(r.Header.Values("Accept")) || r.Header["Last-Event-Id"] != nil {
		return nil
	}
	if !call.Stateless {
		session, ok := call.Behind.(servedSession)
		if !ok || b.stored || !session.admits(r) {
			return nil
		}
		if _, ok := session.tools.Load(call.Tool); !ok {
			return nil
		}
		return b.writeInSession
	}
	if r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("Mcp-Name") != call.Tool || !decodable(call.Meta) {
		return nil
	}
	server := b.getServer(r)
	if server == nil {
		return nil
	}
	of := servedBy(b.tasks, server)
	if _, ok := of.tools.Load(call.Tool); !ok {
		return nil
	}
	info := of.info.Load()
	if info == nil {
		return nil
	}
	return func(w http.ResponseWriter, id, result json.RawMessage, err *mcptask.Error) {
		if err == nil {
			named, failed := wire.NewObject(result).Edited(wire.Set(*info, "_meta", mcp.MetaKeyServerInfo))
			if failed != nil { // the SDK could not write it either
				err = mcptask.Errorf(mcptask.CodeInternalError, "internal error")
			}
			result = named
		}
		b.write(w, errorStatus(err), id, result, err)
	}
}

// admits reports whether the SDK takes a request of the session.
func (s servedSession) admits(r *http.Request) bool {
	if s.user == "" {
		return true
	}
	token := auth.TokenInfoFromContext(r.Context())
	return token != nil && token.UserID == s.user
}

// acceptsAnswers reports whether a request accepts JSON and streams, as the SDK demands. A request
// that says so in an unusual way is the SDK's.
func acceptsAnswers(values []string) bool {
	var asJSON, asStream bool
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.TrimSpace(media) {
			case "application/json":
				asJSON = true
			case "text/event-stream":
				asStream = true
			}
		}
	}
	return asJSON && asStream
}

// decodable reports whether the SDK can read what a call's _meta says of its client.
func decodable(raw json.RawMessage) bool {
	meta := wire.NewObject(raw)
	var capabilities *mcp.ClientCapabilities
	if json.Unmarshal(meta.Get(mcp.MetaKeyClientCapabilities), &capabilities) != nil || capabilities == nil {
		return false
	}
	if !meta.Has(mcp.MetaKeyClientInfo) {
		return true
	}
	var info *mcp.Implementation
	return json.Unmarshal(meta.Get(mcp.MetaKeyClientInfo), &info) == nil && info != nil
}

// errorStatus is the HTTP status that the SDK gives an error of 2026-07-28, 0 if it gives none.
func errorStatus(err *mcptask.Error) int {
	if err == nil {
		return 0
	}
	switch err.Code {
	case mcptask.CodeMethodNotFound:
		return http.StatusNotFound
	case mcptask.CodeInvalidParams, mcptask.CodeUnsupportedProtocolVersion, mcptask.CodeMissingClientCapability:
		return http.StatusBadRequest
	}
	return 0
}

// writeInSession writes an answer of a session.
func (b *bypass) writeInSession(w http.ResponseWriter, id, result json.RawMessage, err *mcptask.Error) {
	b.write(w, 0, id, result, err)
}

// write writes an answer as the SDK does: an error with a status of its own is never in a stream.
func (b *bypass) write(w http.ResponseWriter, status int, id, result json.RawMessage, err *mcptask.Error) {
	answer := encodeAnswer(id, result, err)
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "application/json")
	if !b.json {
		h.Set("Connection", "keep-alive")
	}
	if status != 0 {
		w.WriteHeader(status)
	} else if !b.json {
		h.Set("Content-Type", "text/event-stream")
		answer = wire.AppendEvent(nil, answer)
	}
	_, _ = w.Write(answer) // a client that has left
}

func encodeAnswer(id, result json.RawMessage, err *mcptask.Error) []byte {
	if err == nil {
		return wire.EncodeResult(id, result)
	}
	if !json.Valid(err.Data) {
		err = &mcptask.Error{Code: err.Code, Message: err.Message}
	}
	return wire.EncodeReply(id, nil, err)
}

// servedBy returns what is known of an SDK server, which is empty if it has no tools of tasks.
func servedBy(tasks *mcptask.Server, server *mcp.Server) *served {
	if of, ok := attachedTo(tasks).Load(weak.Make(server)); ok {
		return of.(*served)
	}
	return new(served)
}
