package push

import (
	"log/slog"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Status notifications (C-44) go to the sessions that know a task, on their own stream or pipe,
// when a change is visible in tasks/get. The stream of a tasks/result gets none, because the result
// reports the end. The hub follows the tasks that sessions know, so a change by another process is
// noticed too. A change may be missed; then the client's next poll reports it (C-46, C-47).

// visible is the part of a task whose change causes a notification.
type visible struct {
	phase   taskstore.Phase
	message string
	expires int64 // in milliseconds, which every store preserves
}

// unknownState stands for a state on a stream that may have been lost.
var unknownState = visible{phase: "unknown"}

// visibleOf returns the part of a task that the session sees.
func (m *Mailbox) visibleOf(r *taskstore.Record) visible {
	shown := m.show(r)
	v := visible{shown.Phase, shown.StatusMessage, shown.ExpiresAt.UnixMilli()}
	if v.phase == taskstore.PhaseQueued { // both are "working" on the wire
		v.phase = taskstore.PhaseRunning
	}
	return v
}

// show returns a task as the session sees it.
func (m *Mailbox) show(r *taskstore.Record) taskstore.Record {
	return protocol.ShowTask(m.hub.server, taskserver.Caller{CanAsk: m.client.CanAsk()}, *r)
}

// sendStatus sends a changed status. It replaces a status that is still in the stream's queue, so a
// client that does not read has at most one for each task. m.mu is held.
func (m *Mailbox) sendStatus(v *view, r *taskstore.Record) {
	if v.hidden {
		return
	}
	now := m.visibleOf(r)
	if v.shown == (visible{}) { // the reply that names the task shows this state or a later one
		v.setShown(now, nil)
		return
	}
	if v.shown == now {
		return
	}
	if v.unsettled && !r.Done() || !v.unsettled && len(m.streams) == 0 {
		return // later: when the ID has arrived, or a stream opens
	}
	data := m.statusNotification(v, r)
	switch {
	case data == nil:
	case v.unsettled:
		v.late = data
	default:
		v.setShown(now, m.streams[0])
		m.streams[0].retract(statusName(r.ID))
		m.streams[0].put(statusName(r.ID), data)
	}
}

// statusName returns the name of a task's status in a queue. It differs from the name of every
// question.
func statusName(task string) string { return "status of " + task }

// statusNotification returns the status notification, or nil if the revision has none.
func (m *Mailbox) statusNotification(v *view, r *taskstore.Record) (data []byte) {
	method, params, err := v.revision.Status(m.show(r))
	if err == nil && method != "" {
		data, err = EncodeRequest("", method, params)
	}
	if err != nil {
		m.hub.server.Notice(slog.LevelError, "status not encoded", "task", taskstore.LogID(r.Principal, r.ID), "error", err)
	}
	return data
}
