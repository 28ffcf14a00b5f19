package push

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Response is a client's response to a request of the server.
type Response struct {
	Result json.RawMessage `json:"result"`
	Error  *mcptask.Error  `json:"error"`
}

// Take takes the client's response to a request of the server. The server checks whether the caller
// owns the task. If the store fails, Take returns false, and the question is asked again later.
func (m *Mailbox) Take(ctx context.Context, caller taskserver.Caller, ref RequestID, said Response) bool {
	answer, answers := said, true
	switch ref.kind {
	case kindResult:
		answer, answers = m.takeResult(ref, said)
	case kindGet:
		answer.Result = nil
		answer.Error, answers = m.takeState(ref, said)
	case kindCancel: // an error says that the task has ended
		return true
	}
	if answers {
		m.noteReply(ref, false)
		if err := m.storeAnswer(ctx, caller, ref, said, answer); err != nil {
			m.noteLost(ref, err)
			if !protocol.IsGone(err) {
				return false
			}
		}
	}
	m.hub.Refresh(ref.task)
	return true
}

// storeAnswer gives an answer to the task, or follows the client's task that said tells of.
func (m *Mailbox) storeAnswer(ctx context.Context, caller taskserver.Caller, ref RequestID, said, answer Response) error {
	if ref.kind == kindQuestion && said.Error == nil {
		if isTask, err := m.takeTask(ctx, caller, ref, said.Result); isTask || err != nil {
			return err
		}
	}
	err := m.hub.server.Respond(ctx, caller, ref.task, ref.key, answer.Result, answer.Error)
	isAnew := spec.IsAskedAnew(ref.key)
	if err != nil || answer.Error == nil && !isAnew || !m.isOpen(ref) {
		return err
	}
	m.noteReply(ref, true)
	if isAnew && (answer.Error == nil || answer.Error.Code == mcptask.CodeInvalidParams) {
		m.logQuestion(slog.LevelWarn, "an answer does not fit the new form of its question, which stays open", ref.task, ref.key)
	}
	return nil
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

// noteLost logs an answer that is lost. If the store has failed, the question is asked again, or the task at the client
// that gave the answer is.
func (m *Mailbox) noteLost(ref RequestID, err error) {
	m.logQuestion(slog.LevelInfo, "response to a question not taken", ref.task, ref.key, "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.liveView(ref.task)
	q := v.question(ref.key)
	if q.task != nil {
		q.task.answered, q.task.result = false, sentRequest{}
	}
	if v != nil && !protocol.IsGone(err) {
		q.request = sentRequest{}
		m.hub.release(m, v.topic, ref.key)
		m.hub.retryLater(v.topic)
	}
}
