package gosdk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// receiver runs the server's requests as tasks when the server asks for that. Only revisions with a
// protocol.Receiver have such requests: 2026-07-28 has none. A taskserver.Server of the connection
// keeps the tasks, with one tool for each kind of request. Like any task, they outlive a session.
// Their progress is not sent: the server polls (C-44, C-46).
type receiver struct {
	options      taskserver.Options
	principal    string // the server's name: a connection has one server
	protocol     protocol.Receiver
	kinds        map[string]requestKind
	capabilities json.RawMessage // declared to the server
	logger       *slog.Logger
	work         sync.WaitGroup // counts the replies under way

	mu     sync.Mutex
	tasks  *taskserver.Server // nil until a request needs it
	closed bool
}

// requestKind is a request that may become a task.
type requestKind struct {
	schema string // the schema of the params that the answer needs
	answer func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
}

// These schemas refuse what the SDK refuses of a request without a task.
const (
	sampleParams = `{"type":"object","required":["messages"],"properties":{"messages":{"type":"array"}}}`
	elicitParams = `{"type":"object","required":["message"],"properties":{"message":{"type":"string"},
	"mode":{"enum":["form","url"]},"url":{"type":"string"},"requestedSchema":{"type":"object"}},
	"if":{"required":["mode"],"properties":{"mode":{"const":"url"}}},
	"then":{"required":["url"],"properties":{"url":{"minLength":1},"requestedSchema":false}},"else":{"properties":{"url":{"maxLength":0}}}}`
)

// newReceiver returns a receiver of the requests that the options answer, or nil if there are none.
func newReceiver(c *conn) (*receiver, error) {
	r := &receiver{options: c.options.Tasks, principal: c.peer, protocol: findReceiver(c.chosen), kinds: map[string]requestKind{}, logger: c.options.Logger}
	var methods []string
	if !c.options.Answer.Empty() || c.options.OpenURL != nil {
		r.kinds[methodElicit] = requestKind{elicitParams, c.answerElicitation}
		methods = append(methods, methodElicit)
	}
	if c.options.Sample != nil {
		r.kinds[methodSample] = requestKind{sampleParams, c.answerSampling}
		methods = append(methods, methodSample)
	}
	if c.held != nil {
		return nil, nil // the revision ignores the wish for a task
	}
	var err error
	if r.capabilities, err = r.protocol.Receives(methods...); err != nil || r.capabilities == nil {
		return nil, err
	}
	return r, nil
}

// openServer returns the server that keeps the tasks. It creates the server at the first use,
// because most peers never ask for a task.
func (r *receiver) openServer() (*taskserver.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, mcptask.ErrServerClosed
	case r.tasks != nil:
		return r.tasks, nil
	}
	service := mcptask.Tools{Service: "requests of " + r.principal, Impl: r}
	for method, k := range r.kinds {
		service.Tools = append(service.Tools, mcptask.NewRawTool(mcptask.ToolSpec{
			Name: toolName(method), InputSchema: k.schema,
			Policy: mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Millisecond}, // the least: createTask sets a TTL for every task
		}, k.run))
	}
	tasks, err := taskserver.New(r.options, service)
	if err != nil {
		return nil, err
	}
	r.tasks = tasks
	return tasks, nil
}

// toolName returns the name of the tool that stands for a method. It has no slash.
func toolName(method string) string { return strings.ReplaceAll(method, "/", ".") }

// run answers the request of a task. An error of the request is the task's outcome (C-39). The end
// of the task's context is not.
func (k requestKind) run(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	result, err := k.answer(ctx, params)
	var wire *mcptask.Error
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(fromSDKError(err), &wire):
		return nil, wire
	}
	return nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}

// close ends the tasks. All sessions must have ended.
func (r *receiver) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	tasks := r.tasks
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
	if tasks == nil {
		return nil
	}
	return tasks.Close()
}

// startReply runs a reply in a goroutine. It returns false if the receiver is closed.
func (r *receiver) startReply(reply func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.work.Go(func() { defer guard.Recover(nil, "a reply"); reply() })
	return true
}

// These constants bound what a server can make its client do.
const (
	// maxReplies is how many requests of a session are answered at once. Most of them wait in
	// tasks/result or for a user.
	maxReplies = 256
	// maxPings is how many pings are answered beyond maxReplies: a client that only waits for users
	// must look alive.
	maxPings = 16
	// replyTimeout bounds the sending of a reply.
	replyTimeout = 30 * time.Second
)

// receiving is a receiver in one session. It also counts the requests that the SDK answers there.
type receiving struct {
	*receiver // nil if no request becomes a task
	// nonce distinguishes the session's requests from those of others.
	nonce string
	ctx   context.Context
	// end ends the answers of the session. Its tasks go on.
	end context.CancelFunc

	mu      sync.Mutex
	busy    int                           // replies under way or being sent
	replies map[string]context.CancelFunc // under way, by request ID
	passed  map[string]bool               // under way in the SDK, by request ID
}

// beginSession begins a session. The receiver may be nil.
func (r *receiver) beginSession() *receiving {
	s := &receiving{receiver: r, nonce: rand.Text(), replies: map[string]context.CancelFunc{}, passed: map[string]bool{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// newCallbacks returns the callbacks of the session's transport.
func (s *receiving) newCallbacks() sessionCallbacks {
	b := sessionCallbacks{lifetime: s.ctx, intercept: s.intercept, onReply: s.markReplied}
	if s.receiver != nil {
		b.declare = func(params json.RawMessage) (json.RawMessage, error) {
			return s.protocol.Declare(params, s.capabilities)
		}
	}
	return b
}

// intercept is an interceptor. It takes task methods, requests that ask for a task, and the
// cancellation of both. If the client has not declared a kind of request, the SDK answers it and
// ignores params.task (C-05, C-21). If too many requests are under way, intercept refuses those of
// the SDK too.
func (s *receiving) intercept(message []byte, from messageSource) bool {
	var m map[string]json.RawMessage
	var method string
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m["method"], &method) != nil {
		return false
	}
	id, params := string(m["id"]), wire.NewObject(m["params"])
	ours := s.receiver != nil && from.revision == s.protocol.Protocol()
	switch {
	case id == "":
		return ours && method == "notifications/cancelled" && s.cancelReply(params.Raw())
	case !isValidID(m["id"]):
		return false
	case ours && s.interceptTask(id, method, params, from):
		return true
	}
	return !s.admit(id, method, from)
}

// interceptTask takes a request that concerns tasks.
func (s *receiving) interceptTask(id, method string, params protocol.Params, from messageSource) bool {
	if answer := s.protocol.Method(method); answer != nil {
		s.startAnswer(id, from, func(ctx context.Context, tasks *taskserver.Backend) (json.RawMessage, error) {
			return answer(ctx, tasks, s.caller(), params)
		})
		return true
	}
	if _, declared := s.kinds[method]; !declared || !s.protocol.Asks(params) {
		return false
	}
	s.startAnswer(id, from, func(ctx context.Context, tasks *taskserver.Backend) (json.RawMessage, error) {
		return s.createTask(ctx, tasks, id, method, params)
	})
	return true
}

// admit counts a request that the SDK answers. It returns false if the request is a repeat or if
// there is no room for it.
func (s *receiving) admit(id, method string, from messageSource) bool {
	most, name := maxReplies, wire.IDKey(json.RawMessage(id))
	if method == "ping" {
		most += maxPings
	}
	s.mu.Lock()
	again, full := s.passed[name], s.busy >= most
	if !again && !full {
		s.passed[name] = true
		s.busy++
	}
	s.mu.Unlock()
	if full && !again {
		s.refuse(id, from)
	}
	return !again && !full
}

// markReplied records that the SDK has answered a request.
func (s *receiving) markReplied(id json.RawMessage) {
	name := wire.IDKey(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed[name] {
		delete(s.passed, name)
		s.busy--
	}
}

// refuse answers a request for which there is no room. The answer is sent before more is read, so
// the server must take it.
func (s *receiving) refuse(id string, from messageSource) {
	err := mcptask.Errorf(mcptask.CodeInternalError, "more than %d requests are under way", maxReplies)
	err.Data = fmt.Appendf(nil, `{"limit":"requests","max":%d}`, maxReplies)
	s.sendResponse(id, from, nil, err)
}

// isValidID reports whether an ID is a string or a number. The SDK handles any other.
func isValidID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

func (s *receiving) caller() taskserver.Caller {
	return taskserver.Caller{Principal: s.principal, Revision: s.protocol.Revision()}
}

// createTask makes a task of a request. If the server's stream is resumed, the request may come
// again. It then gets the same task.
func (s *receiving) createTask(ctx context.Context, tasks *taskserver.Backend, id, method string, params protocol.Params) (json.RawMessage, error) {
	tool, _ := tasks.Tool(toolName(method))
	call, err := s.protocol.Negotiate(tool, false, params)
	if err != nil {
		return nil, err
	}
	if key := call.IdempotencyKey; key != "" {
		call.IdempotencyKey = "key " + key
	} else {
		sum := sha256.Sum256([]byte(id))
		call.IdempotencyKey = "request " + s.nonce + hex.EncodeToString(sum[:])
	}
	if call.TTL == nil || *call.TTL == 0 {
		ttl := mcptask.DefaultTTL
		call.TTL = &ttl
	}
	arguments := params.All()
	delete(arguments, "task")
	plain, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	reply, err := tasks.Call(ctx, s.caller(), tool.Name, plain, call)
	if err != nil {
		return nil, err
	}
	created, err := s.protocol.Created(*reply.Task, tool)
	if key, parent := protocol.FindRelatedTask(decodeMeta(params.Raw())); err == nil && parent != "" { // asked by a task of the server (C-61)
		return protocol.WithMeta(created, mcp.Meta{key: map[string]string{"taskId": parent}})
	}
	return created, err
}

// startAnswer answers a request in a goroutine, so that the stream can be read on. It ignores a
// repeat of a request that is under way.
func (s *receiving) startAnswer(id string, from messageSource, work func(context.Context, *taskserver.Backend) (json.RawMessage, error)) {
	ctx, again, full := s.beginAnswer(id)
	switch {
	case again:
	case full:
		s.refuse(id, from)
	case !s.startReply(func() { s.reply(ctx, id, from, work) }):
		s.endAnswer(id)
		s.releaseSlot()
	}
}

// beginAnswer begins to answer a request if there is room for it.
func (s *receiving) beginAnswer(id string) (ctx context.Context, again, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again = s.replies[id]; again || s.busy >= maxReplies {
		return nil, again, true
	}
	s.busy++
	ctx, s.replies[id] = context.WithCancel(s.ctx)
	return ctx, false, false
}

// endAnswer ends the work on a request, so that the server may use its ID again. The reply may
// still have to be sent.
func (s *receiving) endAnswer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[id]()
	delete(s.replies, id)
}

func (s *receiving) releaseSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// reply does the work of a request and sends the result, unless the request was cancelled.
func (s *receiving) reply(ctx context.Context, id string, from messageSource, work func(context.Context, *taskserver.Backend) (json.RawMessage, error)) {
	defer s.releaseSlot()
	result, err := s.runWork(ctx, work)
	gone := ctx.Err() != nil
	s.endAnswer(id)
	if !gone {
		s.sendResponse(id, from, result, err)
	}
}

// runWork does the work of a request. A panic fails only this request.
func (s *receiving) runWork(ctx context.Context, work func(context.Context, *taskserver.Backend) (json.RawMessage, error)) (result json.RawMessage, err error) {
	defer guard.Then(s.logger, "a request of the server's", func() { err = errors.New("gosdk: the request panicked") })
	tasks, err := s.openServer()
	if err != nil {
		s.logger.Error("the server's requests cannot run as tasks", "error", err)
		return nil, err
	}
	return work(ctx, tasks.Backend())
}

// sendResponse sends the response to a request.
func (s *receiving) sendResponse(id string, from messageSource, result json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, replyTimeout)
	defer cancel()
	response := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result}
	if err != nil {
		var wire *mcptask.Error
		if !errors.As(err, &wire) {
			wire = mcptask.Errorf(mcptask.CodeInternalError, "internal error")
		}
		delete(response, "result")
		response["error"] = wire
	}
	message, err := json.Marshal(response)
	if err == nil {
		err = from.send(ctx, message)
	}
	if err != nil && s.ctx.Err() == nil && s.receiver != nil {
		s.logger.Warn("a reply to the server was not sent", "error", err)
	}
}

// cancelReply ends the answer to a request that the server no longer waits for, such as a
// tasks/result. A task goes on (C-74).
func (s *receiving) cancelReply(params json.RawMessage) bool {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel, ours := s.replies[string(p.RequestID)]
	if ours {
		cancel()
	}
	return ours
}
