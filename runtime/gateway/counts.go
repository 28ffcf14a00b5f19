package gateway

// Counts reports how much a gateway holds at a moment, for an operator's gauges. All counts
// return to zero when the clients have disconnected.
type Counts struct {
	// Sessions counts open sessions, in the revisions that have them.
	Sessions int
	// Waiting counts requests that wait for a task to end.
	Waiting int
	// Streams counts open streams that can carry questions.
	Streams int
	// Watched counts unfinished tasks whose ID some session knows.
	Watched int
	// Followed counts tasks at clients that hold a question of the server's.
	Followed int
	// Flows counts calls that are inside the SDK. It includes all gateways of the server.
	Flows int
}

// Counts returns the current counts. It may be called at any time.
func (g *Gateway) Counts() Counts {
	var c Counts // C-101
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
