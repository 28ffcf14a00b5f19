package console

import (
	"context"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// lookFor is how long a viewer's look at the same thing is one look. A page that stays open, or is opened again, does not
// fill the audit trail.
const lookFor = 15 * time.Minute

// maxLooks bounds the looks that are remembered.
const maxLooks = 10_000

// look is what a viewer has seen: the hidden parts of a task, or an owner in a list.
type look struct{ viewer, task, owner string }

// looks remembers what viewers have seen lately.
type looks struct {
	mu   sync.Mutex
	last map[look]time.Time
}

// add notes a look, and reports whether the audit trail does not have it yet.
func (l *looks) add(seen look) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.last[seen]) < lookFor {
		return false
	}
	if l.last == nil || len(l.last) >= maxLooks { // the trail has some looks once more
		l.last = map[look]time.Time{}
	}
	l.last[seen] = time.Now()
	return true
}

// auditTask writes to the audit trail that a viewer who may reveal sees the owner and the arguments of a task.
func (c *Console) auditTask(ctx context.Context, viewer Viewer, r taskstore.Record) {
	if c.looks.add(look{viewer: viewer.Name, task: r.ID}) {
		c.server.Operator(viewer.Name).Reveal(ctx, r, "arguments and principal")
	}
}

// auditOwners writes to the audit trail which owners a viewer who may reveal sees in a list, those of tasks and that of a
// filter: one line for all that the viewer has not seen lately.
func (c *Console) auditOwners(ctx context.Context, viewer Viewer, tasks []taskstore.Record, filter string) {
	if !viewer.Reveal {
		return
	}
	var owners []string
	add := func(owner string) {
		if owner != "" && c.looks.add(look{viewer: viewer.Name, owner: owner}) {
			owners = append(owners, owner)
		}
	}
	add(filter)
	for _, r := range tasks {
		add(r.Principal)
	}
	if len(owners) > 0 {
		c.server.Operator(viewer.Name).RevealOwners(ctx, owners)
	}
}
