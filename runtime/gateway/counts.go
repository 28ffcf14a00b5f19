package gateway

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
	pushed := g.hub.Count()
	c.Streams, c.Watched, c.Followed = pushed.Streams, pushed.Watched, pushed.Followed
	flowsOf(g.server).Range(func(any, any) bool {
		c.Flows++
		return true
	})
	return c
}
