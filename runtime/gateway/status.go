package gateway

import (
	"encoding/json"
	"log/slog"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// Status notifications of 2025-11-25 (C-44) go to the sessions that know a task,
// on their own stream or their pipe, when something changes that tasks/get would
// show. A stream that waits for a result gets none: its result says how the task
// ended. What another process changes is noticed while a tasks/result waits here,
// else the client's next poll tells (C-46, C-47).

// statuses is what sessions have been told of their tasks. It is guarded by
// questions.mu.
type statuses struct {
	told map[*session]map[string]told
	// late are the ends of tasks whose ID was still on its way to the session.
	late map[*session]map[string][]byte
}

// told is what a session knows of a task, and the stream that it was told on; nil
// is a reply.
type told struct {
	visible
	via *channel
}

// visible is what makes a change of a task worth a notification.
type visible struct {
	phase   mcptask.Phase
	message string
	expires int64 // milliseconds, which every store keeps
}

func visibleOf(r mcptask.Record) visible {
	v := visible{r.Phase, r.StatusMessage, r.ExpiresAt.UnixMilli()}
	if v.phase == mcptask.PhaseQueued { // working, to a requestor
		v.phase = mcptask.PhaseRunning
	}
	return v
}

// note sets what a session knows of a task, as of now.
func (n *statuses) note(s *session, task string, now visible) {
	if n.told == nil {
		n.told, n.late = map[*session]map[string]told{}, map[*session]map[string][]byte{}
	}
	if n.told[s] == nil {
		n.told[s] = map[string]told{}
	}
	n.told[s][task] = told{visible: now}
}

// forget drops a task that is done or gone, or what was told of one.
func (n *statuses) forget(s *session, task string) {
	if delete(n.told[s], task); len(n.told[s]) == 0 {
		delete(n.told, s)
	}
}

// lost notes that a stream is gone, and perhaps what was last written to it: the
// next stream, which may be open already, gets the tasks as they are then.
func (n *statuses) lost(c *channel) (tasks []string) {
	for task, last := range n.told[c.session] {
		if last.via == c {
			n.told[c.session][task] = told{}
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// end drops a session that is over.
func (n *statuses) end(s *session) {
	delete(n.told, s)
	delete(n.late, s)
}

// tell sends what is new of a task to the sessions that know it. A status that
// a stream has not taken yet is replaced, so that a client which does not read
// leaves one for each task. q.mu is held.
func (q *questions) tell(t *knownTask, r mcptask.Record) {
	now := visibleOf(r)
	for s, d := range t.sessions {
		last, ok := q.status.told[s][r.ID]
		if !ok { // the reply to the request that names the task shows this state, or a later one
			q.status.note(s, r.ID, now)
			continue
		}
		if last.visible == now || s.principal != r.Principal {
			continue
		}
		fresh := q.held(s, r.ID)
		if fresh && !r.Done() || !fresh && len(q.standalone[s]) == 0 {
			continue // once the ID has arrived, or when there is a stream
		}
		data := q.statusNotification(d, r)
		if data == nil {
			continue
		}
		if fresh {
			if q.status.late[s] == nil {
				q.status.late[s] = map[string][]byte{}
			}
			q.status.late[s][r.ID] = data
			continue
		}
		via := q.standalone[s][0]
		q.status.told[s][r.ID] = told{now, via}
		via.replace(statusKey(r.ID), data)
	}
}

// takeLate takes the end of a task that came before its ID; nil is none.
func (n *statuses) takeLate(s *session, task string) []byte {
	data := n.late[s][task]
	if delete(n.late[s], task); len(n.late[s]) == 0 {
		delete(n.late, s)
	}
	return data
}

// statusKey names a task's status in an outbox. No question is called so.
func statusKey(task string) string { return "status of " + task }

// replace puts a message in the place of one with the same name.
func (o *outbox) replace(id string, data []byte) {
	o.retract(id)
	o.put(id, data)
}

// statusNotification is nil where a revision has none.
func (q *questions) statusNotification(d dialect.Teller, r mcptask.Record) []byte {
	method, params, err := d.Status(r)
	if method == "" && err == nil {
		return nil
	}
	if err == nil {
		var data []byte
		if data, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params}); err == nil {
			return data
		}
	}
	q.server.Notice(slog.LevelError, "status not encoded", "task", mcptask.LogID(r.Principal, r.ID), "error", err)
	return nil
}
