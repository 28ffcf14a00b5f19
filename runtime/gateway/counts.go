package gateway

import "maps"

// Counts is how much a gateway holds at a moment, for an operator's gauges
// (C-101). All of it goes back to zero when its clients are gone.
type Counts struct {
	// Sessions are open, of the revisions that have them.
	Sessions int
	// Waiting are requests that wait for a task's end.
	Waiting int
	// Streams are open streams that questions may go out on.
	Streams int
	// Watched are tasks, not done, that some session has shown the ID of.
	Watched int
	// Followed are tasks at clients, of questions that wait for their answers, and
	// those that are to be cancelled there.
	Followed int
	// Flows are calls on their way through the SDK. Those of the server are
	// counted, where it has several gateways.
	Flows int
}

// Counts counts. It may be called at any time.
func (g *Gateway) Counts() Counts {
	var c Counts
	g.sessions.mu.Lock()
	c.Sessions = len(g.sessions.open)
	for _, s := range g.sessions.open {
		c.Waiting += len(s.waiting)
	}
	g.sessions.mu.Unlock()
	g.questions.count(&c)
	flowsOf(g.server).Range(func(any, any) bool {
		c.Flows++
		return true
	})
	return c
}

// count counts streams and tasks, each task once however it is held.
func (q *questions) count(c *Counts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	tasks := map[string]bool{}
	owing := map[*session]bool{}
	for id, t := range q.known {
		tasks[id] = true
		c.Streams += len(t.blocked)
		c.Followed += len(t.remotes)
		for s := range t.sessions {
			owing[s] = true
		}
	}
	for s := range q.standalone {
		owing[s] = true
	}
	for s := range owing {
		c.Followed += len(s.owed)
	}
	for _, streams := range q.standalone {
		c.Streams += len(streams)
	}
	for _, shown := range q.shown {
		maps.Copy(tasks, shown)
	}
	for _, fresh := range q.fresh {
		for id := range fresh {
			tasks[id] = true
		}
	}
	c.Watched = len(tasks)
}
