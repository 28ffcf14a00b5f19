package gosdk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// These constants bound the work that a server can give its client.
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

// inbox takes the server's requests and notifications in one session. It is safe for concurrent use.
type inbox struct {
	*receiver
	transport transport
	// notified gets the notifications that are not about the inbox's replies.
	notified notificationFunc
	// nonce distinguishes the session's requests from those of others.
	nonce string
	ctx   context.Context
	// end ends the session's requests and the answers to the server's. Its tasks go on.
	end context.CancelFunc

	mu      sync.Mutex
	version string                        // the negotiated one, "" before
	busy    int                           // replies under way or being sent
	replies map[string]context.CancelFunc // under way, by request ID
}

// newInbox begins a session.
func (r *receiver) newInbox(notified notificationFunc) *inbox {
	s := &inbox{receiver: r, notified: notified, nonce: rand.Text(), replies: map[string]context.CancelFunc{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// setVersion sets the negotiated protocol version. Before, no request becomes a task.
func (s *inbox) setVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// receive takes a message. A notification of a subscription goes to notified, and any other, with notified nil, to the
// session. receive ignores responses, and returns quickly, because the stream waits for it.
func (s *inbox) receive(m *wire.Message, notified notificationFunc) {
	switch {
	case m.IsRequest():
		s.startAnswer(m)
	case m.Method == "notifications/cancelled":
		s.cancelReply(m.Params)
	case m.Method != "" && notified != nil:
		notified(m.Method, m.Params.Raw())
	case m.Method != "":
		s.notified(m.Method, m.Params.Raw())
	}
}

// startAnswer answers a request in a goroutine, so that the stream can be read on. It ignores a repeat of a request that
// is under way. If there is no room, it sends a refusal before more is read, so the server must take that.
func (s *inbox) startAnswer(m *wire.Message) {
	most, key := maxReplies, wire.IDKey(m.ID)
	if m.Method == "ping" {
		most += maxPings
	}
	s.mu.Lock()
	isRepeat, isFull := s.replies[key] != nil, s.busy >= most
	var ctx context.Context
	if !isRepeat && !isFull {
		s.busy++
		ctx, s.replies[key] = context.WithCancel(s.ctx)
	}
	s.mu.Unlock()
	switch {
	case isRepeat:
	case isFull:
		err := mcptask.Errorf(mcptask.CodeInternalError, "more than %d requests are under way", maxReplies)
		err.Data = fmt.Appendf(nil, `{"limit":"requests","max":%d}`, maxReplies)
		s.sendResponse(m.ID, nil, err)
	case !s.startWork(func() { s.reply(ctx, key, m) }):
		s.endAnswer(key)
		s.releaseSlot()
	}
}

// endAnswer ends the work on a request, so that the server may use its ID again. The reply may
// still have to be sent.
func (s *inbox) endAnswer(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[key]()
	delete(s.replies, key)
}

func (s *inbox) releaseSlot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// reply answers a request and sends the result, unless the request was cancelled.
func (s *inbox) reply(ctx context.Context, key string, m *wire.Message) {
	defer s.releaseSlot()
	result, err := s.answerSafely(ctx, m)
	gone := ctx.Err() != nil
	s.endAnswer(key)
	if !gone {
		s.sendResponse(m.ID, result, err)
	}
}

// answerSafely is answer for a request whose panic fails only this request.
func (s *inbox) answerSafely(ctx context.Context, m *wire.Message) (result json.RawMessage, err error) {
	defer guard.Then(s.logger, "a request of the server's", func() {
		result, err = nil, errors.New("gosdk: the request panicked")
	}, "method", m.Method)
	return s.answer(ctx, m)
}

// answer returns the result of a request. If the client has not declared tasks for a kind of request, it ignores
// params.task (C-05, C-21).
func (s *inbox) answer(ctx context.Context, m *wire.Message) (json.RawMessage, error) {
	kind, isKnown := s.kinds[m.Method]
	s.mu.Lock()
	hasTasks := s.capabilities != nil && s.version == s.protocol.Protocol()
	s.mu.Unlock()
	if method := s.protocol.Method(m.Method); hasTasks && (method != nil || isKnown && s.protocol.Asks(m.Params)) {
		tasks, err := s.openServer()
		switch {
		case err != nil:
			s.logger.Error("the server's requests cannot run as tasks", "error", err)
			return nil, err
		case method != nil:
			return method(ctx, tasks.Backend(), s.caller(), m.Params)
		}
		return s.createTask(ctx, tasks.Backend(), m)
	}
	switch {
	case m.Method == "ping":
		return json.RawMessage("{}"), nil
	case m.Method == spec.Roots && s.roots != nil:
		return s.nameTask(m, encodeRoots(s.roots))
	case !isKnown:
		return nil, mcptask.Errorf(mcptask.CodeMethodNotFound, "the client does not answer %s", m.Method)
	}
	if err := kind.check(ctx, m.Params.Raw()); err != nil {
		return nil, newInvalidParams("the params do not fit the protocol: %v", err)
	}
	result, err := kind.answer(ctx, m.Method, m.Params.Raw())
	if err != nil {
		return nil, err
	}
	return s.nameTask(m, result)
}

// nameTask adds to a result the task that the request names (A-38, C-61).
func (s *inbox) nameTask(m *wire.Message, result json.RawMessage) (json.RawMessage, error) {
	named := decodeMeta(m.Params.Raw())
	key, taskID := protocol.FindRelatedTask(named)
	if taskID == "" {
		return result, nil
	}
	return protocol.WithMeta(result, map[string]any{key: named[key]})
}

func (s *inbox) caller() taskserver.Caller {
	return taskserver.Caller{Principal: s.principal, Revision: s.protocol.Revision()}
}

// createTask makes a task of a request. If the server's stream is resumed, the request may come
// again. It then gets the same task.
func (s *inbox) createTask(ctx context.Context, tasks *taskserver.Backend, m *wire.Message) (json.RawMessage, error) {
	tool, _ := tasks.Tool(toolName(m.Method))
	call, err := s.protocol.Negotiate(tool, false, m.Params)
	if err != nil {
		return nil, err
	}
	if key := call.IdempotencyKey; key != "" {
		call.IdempotencyKey = "key " + key
	} else {
		sum := sha256.Sum256(m.ID)
		call.IdempotencyKey = "request " + s.nonce + hex.EncodeToString(sum[:])
	}
	if call.TTL == nil || *call.TTL == 0 {
		ttl := mcptask.DefaultTTL
		call.TTL = &ttl
	}
	arguments := m.Params.All()
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
	if err != nil {
		return nil, err
	}
	key, parent := protocol.FindRelatedTask(decodeMeta(m.Params.Raw()))
	if parent == "" {
		return created, nil
	}
	// A task of the server has asked (C-61).
	return protocol.WithMeta(created, map[string]any{key: map[string]string{"taskId": parent}})
}

// sendResponse sends the response to a request.
func (s *inbox) sendResponse(id, result json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, replyTimeout)
	defer cancel()
	var wireErr *mcptask.Error
	if errors.As(toWireError(err), &wireErr) {
		result = nil
	}
	err = s.transport.send(ctx, "", wire.EncodeReply(id, result, wireErr))
	if err != nil && s.ctx.Err() == nil {
		s.logger.Warn("a reply to the server was not sent", "error", err)
	}
}

// cancelReply ends the answer to a request that the server no longer waits for, such as a
// tasks/result. A task goes on (C-74).
func (s *inbox) cancelReply(params protocol.Params) {
	id := params.Get("requestId")
	if id == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.replies[wire.IDKey(id)]; cancel != nil {
		cancel()
	}
}
