package push

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Response is a client's response to a request of the server.
type Response struct {
	Result json.RawMessage `json:"result"`
	Error  *mcptask.Error  `json:"error"`
}

// heldAnswer is a client's answer that the store has not accepted yet. A question has at most one,
// because the first answer counts.
type heldAnswer struct {
	mailbox *Mailbox
	ref     RequestID
	size    int
	deliver func(context.Context) error
}

// maxHeldBytes limits the bytes of all held answers. If an answer exceeds it, its question is
// asked again.
const maxHeldBytes = 16 << 20

// Take takes the client's response to a request of the server. The server checks whether the caller
// owns the task. Take returns false if the response was neither stored nor kept to be stored later.
func (m *Mailbox) Take(ctx context.Context, caller taskserver.Caller, ref RequestID, said Response) bool {
	answer, answers := said, true
	switch ref.kind {
	case kindResult:
		answer, answers = m.takeResult(ref, said)
	case kindGet:
		answer.Result = nil
		answer.Error, answers = m.takeState(ref, said)
	case kindCancel:
		m.confirmCancel(ref)
		return true
	}
	if !answers {
		m.hub.Refresh(ref.task)
		return true
	}
	size := len(answer.Result)
	if answer.Error != nil {
		size += len(answer.Error.Message) + len(answer.Error.Data)
	}
	m.noteReply(ref, false)
	return m.storeAnswer(ctx, &heldAnswer{m, ref, size, func(ctx context.Context) error {
		if ref.kind == kindQuestion && said.Error == nil {
			if isTask, err := m.takeTask(ctx, caller, ref, said.Result); isTask || err != nil {
				return err
			}
		}
		err := m.hub.server.Respond(ctx, caller, ref.task, ref.key, answer.Result, answer.Error)
		if err == nil && answer.Error != nil && m.isOpen(ref) {
			m.noteReply(ref, true)
		}
		return err
	}})
}

// isOpen reports whether a question waits for its answer, by the store.
func (m *Mailbox) isOpen(ref RequestID) bool {
	r, err := m.hub.server.Peek(ref.task)
	return err == nil && slices.ContainsFunc(r.Outstanding(), func(in taskstore.Input) bool { return in.Key == ref.key })
}

// takeTask handles a response in which the client tells of a task. It returns false for any other
// response; the caller then treats it as the question's answer. An error is the server's.
func (m *Mailbox) takeTask(ctx context.Context, caller taskserver.Caller, ref RequestID, result json.RawMessage) (bool, error) {
	requestor := m.requestorOf(ref)
	started, ok, err := requestor.Started(result)
	if !ok {
		return false, nil
	}
	r, unread := m.hub.server.Get(ctx, caller, ref.task)
	if unread != nil {
		return false, unread
	}
	for _, in := range r.Inputs {
		if in.Key != ref.key || !requestor.Augments(in.Method) {
			continue
		}
		if err == nil && len(started.TaskID) > longestTaskID {
			err = errors.New("its ID is too long")
		}
		if err == nil {
			err = m.startFollowing(r, in, requestor, started)
		}
		if err != nil {
			m.logQuestion(slog.LevelWarn, "a client's task for a question is not followed", ref.task, ref.key, "error", err)
		}
		return err == nil, nil
	}
	return false, nil
}

// storeAnswer stores an answer, or keeps it until the store accepts it. It returns false if the
// answer is lost. The question is then asked again.
func (m *Mailbox) storeAnswer(ctx context.Context, a *heldAnswer) bool {
	err := a.deliver(ctx)
	stored := err == nil || protocol.IsGone(err)
	if !stored && m.keepAnswer(a) {
		return true
	}
	if err != nil {
		m.noteLost(a.ref, err)
	}
	if stored {
		m.hub.Refresh(a.ref.task)
	}
	return stored
}

// keepAnswer keeps an answer until the store accepts it, if the session has been asked the
// question. If there is no room, the question is asked again.
func (m *Mailbox) keepAnswer(a *heldAnswer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.liveView(a.ref.task)
	if v == nil { // the task may belong to another process or another caller
		return false
	}
	q := v.question(a.ref.key)
	if m.hub.holdAnswer(a, q.isAsked()) {
		return true
	}
	q.request = sentRequest{}
	m.hub.release(m, v.topic, a.ref.key)
	return false
}

// noteLost logs an answer that is lost. If a task at the client gave the answer, the server keeps
// following that task.
func (m *Mailbox) noteLost(ref RequestID, err error) {
	m.logQuestion(slog.LevelInfo, "response to a question not taken", ref.task, ref.key, "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.clientTaskOf(ref); t != nil {
		t.answered, t.result = false, sentRequest{}
	}
}

// holdAnswer keeps an answer until the store accepts it, and schedules another attempt. It returns
// false if there is no room, or if the answer is not worth keeping.
func (h *Hub) holdAnswer(a *heldAnswer, worth bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[a.ref.task]
	if t == nil {
		return false
	}
	h.retryLater(a.ref.task)
	switch {
	case t.held[a.ref.key] != nil: // the first answer counts
		return true
	case !worth || h.heldBytes+a.size > maxHeldBytes || h.server.Closing().Err() != nil:
		return false
	}
	t.held[a.ref.key] = a
	h.heldBytes += a.size
	return true
}

// storeHeld tries to store the held answers of a task. It returns false if the store fails again;
// another attempt is then scheduled.
func (h *Hub) storeHeld(task string) bool {
	h.mu.Lock()
	var answers []*heldAnswer
	if t := h.topics[task]; t != nil {
		answers = slices.Collect(maps.Values(t.held))
	}
	h.mu.Unlock()
	for _, a := range answers {
		err := a.deliver(h.server.Closing())
		if !h.dropHeld(a, err) {
			return false
		}
		if err != nil {
			a.mailbox.noteLost(a.ref, err)
		}
	}
	return true
}

// dropHeld removes an answer that the store has accepted, or that nothing waits for. If the store
// has failed, it returns false and schedules another attempt.
func (h *Hub) dropHeld(a *heldAnswer, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[a.ref.task]
	switch {
	case t == nil || t.held[a.ref.key] != a:
	case err != nil && !protocol.IsGone(err):
		h.retryLater(a.ref.task)
		return false
	default:
		delete(t.held, a.ref.key)
		h.heldBytes -= a.size
		h.removeUnused(t)
	}
	return true
}
