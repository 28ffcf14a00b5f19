package push

import (
	"log/slog"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Status notifications (C-44) go to the sessions that know a task, on their own stream or
// their pipe, when something changes that tasks/get would show. A stream that waits for a
// result gets none: its result says how the task ended. What another process changes is
// noticed while a tasks/result waits here, else the client's next poll tells (C-46, C-47).

// visible is what makes a change of a task worth a notification.
type visible struct {
	phase   mcptask.Phase
	message string
	expires int64 // milliseconds, which every store keeps
}

// unknownState is what a session was told on a stream that may have been lost.
var unknownState = visible{phase: "unknown"}

func visibleOf(r *mcptask.Record) visible {
	v := visible{r.Phase, r.StatusMessage, r.ExpiresAt.UnixMilli()}
	if v.phase == mcptask.PhaseQueued { // working, to a requestor
		v.phase = mcptask.PhaseRunning
	}
	return v
}

// sendStatus sends what is new of a task. A status that the stream has not taken yet is
// replaced, so that a client which does not read leaves one for each task. m.mu is held.
func (m *Mailbox) sendStatus(v *view, r *mcptask.Record) {
	now := visibleOf(r)
	if v.shown == (visible{}) { // the reply to the request that names the task shows this state, or a later one
		v.setShown(now, nil)
		return
	}
	if v.shown == now {
		return
	}
	if v.unsettled && !r.Done() || !v.unsettled && len(m.streams) == 0 {
		return // once the ID has arrived, or when there is a stream
	}
	data := m.statusNotification(v, r)
	switch {
	case data == nil:
	case v.unsettled:
		v.late = data
	default:
		v.setShown(now, m.streams[0])
		m.streams[0].replace(statusName(r.ID), data)
	}
}

// statusName names a task's status in a queue. No question is called so.
func statusName(task string) string { return "status of " + task }

// statusNotification returns nil if the revision has none.
func (m *Mailbox) statusNotification(v *view, r *mcptask.Record) (data []byte) {
	method, params, err := v.revision.Status(*r)
	if err == nil && method != "" {
		data, err = encodeRequest("", method, params)
	}
	if err != nil {
		m.hub.server.Notice(slog.LevelError, "status not encoded", "task", mcptask.LogID(r.Principal, r.ID), "error", err)
	}
	return data
}
