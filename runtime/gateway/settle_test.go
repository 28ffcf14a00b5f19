package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Over HTTP a new task's questions keep off the session's stream until its reply is written and
// has had the time to arrive, however long the SDK takes for it.
func TestQuestionFollowsSlowReply(t *testing.T) {
	for name, leaves := range map[string]bool{"a client that waits": false, "a client that leaves": true} {
		inBubble(t, name, func(t *testing.T) {
			server := askingServer(t)
			made := make(chan struct{})
			stateful := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				flow := TakeFlow(server, r.Header.Get(FlowHeader))
				call := func() {
					defer close(made)
					reply, err := flow.Run(t.Context(), server, "ask", nil, Hooks{})
					if err == nil {
						_, err = flow.Encode(reply)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if leaves { // and the SDK goes on
					time.AfterFunc(time.Minute, call)
					return
				}
				call()
				time.Sleep(time.Minute) // a user's middleware
				w.WriteHeader(http.StatusOK)
			})
			g := New(Config{Server: server, Stateful: stateful})
			s := &session{id: "s"}
			s.setNegotiated(g, mcptask.Revision20251125, []byte(`{"elicitation":{}}`))
			g.trackSession(httptest.NewRequest("POST", "/", nil), s, nil)
			defer g.sessions.end("s")
			c := g.mailbox(s).Connect(nil, "")
			for range 3 { // its timers are no more than its tasks
				g.mailbox(s).SettleAfter("NOSUCHTASK", settleDelay)
			}
			r := httptest.NewRequest("POST", "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","task":{}}}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(sessionHeader, "s")
			g.ServeHTTP(httptest.NewRecorder(), r)
			<-made
			time.Sleep(settleDelay - time.Millisecond)
			if early := c.Take(); len(early) > 0 {
				t.Fatalf("it may overtake the reply: %s", early[0])
			}
			time.Sleep(2 * time.Millisecond)
			asked := false
			for _, m := range c.Take() {
				asked = asked || strings.Contains(string(m), "elicitation/create")
			}
			if !asked {
				t.Error("the question has not come")
			}
		})
	}
}
