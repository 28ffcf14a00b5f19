package edgetest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// serveOn starts a server on a store. It returns its URL and a function that closes it.
func serveOn(t *testing.T, store taskstore.Store) (url string, stop func()) {
	t.Helper()
	url, tasks := wiretest.ServeWith(t, wiretest.Setup{
		Bearer: true, Tools: []mcptask.Tools{wiretest.AskTools()}, Options: taskserver.Options{Store: store},
	})
	return url, func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	}
}

// initializeWith sends an initialize with the ID of another session, and returns the response and its session ID.
func initializeWith(p *wiretest.Peer, session string) (r *wiretest.Response, opened string) {
	p.T.Helper()
	peer := wiretest.NewUnopenedPeer(p.T, p.URL, wiretest.LegacyRevision, p.Token, `{}`)
	peer.Session = session
	r = peer.Call("initialize", map[string]any{
		"protocolVersion": wiretest.LegacyRevision, "capabilities": struct{}{}, "clientInfo": map[string]any{"name": "wire", "version": "1"},
	})
	return r, r.Header.Get("Mcp-Session-Id")
}

// TestSessionSurvivesRestart checks that a session goes on after a restart on a store that keeps its key, with no
// option set: its requests, its tasks, its own stream. An initialize opens a new session, whatever session it names.
// The next restart does not bring that one back.
func TestSessionSurvivesRestart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := wiretest.NewSessionStore()
		url, stop := serveOn(t, store)
		p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		done := p.Create("run_pipeline", wiretest.PipelineArgs("main", "build"))
		p.Until(done, "completed")
		stop()

		p.URL, stop = serveOn(t, store)
		p.Call("tools/list", nil).OK()
		p.Task("tasks/get", done).OK()
		p.Task("tasks/result", done).OK()
		get := p.OpenGet()
		id := p.Create("ask", wiretest.AskArguments("one"))
		p.Respond(get.NextQuestion(id).ID, wiretest.AcceptNote("ok"))
		if text := p.TaskText(id); text != "ok" {
			t.Error(text)
		}
		get.Stop()
		for name, session := range map[string]string{"that it has": p.Session, "of another server": "mcp-session-1", "forged": p.Session + "x"} {
			if r, opened := initializeWith(p, session); r.Status != http.StatusOK || opened == "" || opened == session {
				t.Errorf("initialize with a session %s: %d %s, session %q", name, r.Status, r.Body, opened)
			}
		}
		unknown := p.Session
		p.Session = "mcp-session-1"
		p.Task("tasks/get", "x").Want(http.StatusNotFound, wiretest.InvalidRequest)
		p.Session = unknown
		if status := p.Status(http.MethodDelete, ""); status != http.StatusNoContent {
			t.Errorf("DELETE: %d", status)
		}
		checkEnded(p)
		stop()

		p.URL, _ = serveOn(t, store)
		checkEnded(p)
	})
}

// checkEnded checks that a session is over for its client.
func checkEnded(p *wiretest.Peer) {
	p.T.Helper()
	p.Call("tools/list", nil).Want(http.StatusNotFound, wiretest.InvalidRequest)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if status := p.Status(method, ""); status != http.StatusNotFound {
			p.T.Errorf("%s: %d", method, status)
		}
	}
	if r, opened := initializeWith(p, p.Session); r.Status != http.StatusOK || opened == "" || opened == p.Session {
		p.T.Errorf("initialize with an ended session: %d %s", r.Status, r.Body)
	}
}

// TestInitializeWithoutKey checks the same of a server that keeps its sessions in memory.
func TestInitializeWithoutKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		for name, session := range map[string]string{"that it has": p.Session, "of another server": "mcp-session-1"} {
			if r, opened := initializeWith(p, session); r.Status != http.StatusOK || opened == "" || opened == session {
				t.Errorf("initialize with a session %s: %d %s, session %q", name, r.Status, r.Body, opened)
			}
		}
		other := wiretest.NewPeer(t, p.URL, wiretest.LegacyRevision, "b")
		if r, opened := initializeWith(other, p.Session); r.Status != http.StatusOK || opened == p.Session {
			t.Errorf("initialize with the session of another caller: %d %s", r.Status, r.Body)
		}
		if status := p.Status(http.MethodDelete, ""); status != http.StatusNoContent {
			t.Errorf("DELETE: %d", status)
		}
		if r, opened := initializeWith(p, p.Session); r.Status != http.StatusOK || opened == p.Session {
			t.Errorf("initialize with an ended session: %d %s", r.Status, r.Body)
		}
	})
}

// TestDeleteReachesReplicas checks that a session which one replica has ended is over at another that has it open too,
// after a minute at the latest.
func TestDeleteReachesReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := wiretest.NewSessionStore()
		first, _ := serveOn(t, store)
		second, _ := serveOn(t, store)
		p := wiretest.NewPeer(t, first, wiretest.LegacyRevision, "a")
		p.URL = second
		p.Call("tools/list", nil).OK()
		p.URL = first
		if status := p.Status(http.MethodDelete, ""); status != http.StatusNoContent {
			t.Errorf("DELETE: %d", status)
		}
		time.Sleep(time.Minute)
		p.URL = second
		checkEnded(p)
	})
}

// TestDeleteThatIsNotRemembered checks that a client is told so if its session cannot be ended for good: because its
// account has ended too many, or because the store is away.
func TestDeleteThatIsNotRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := wiretest.NewSessionStore()
		first, _ := serveOn(t, store)
		second, _ := serveOn(t, store)
		p := wiretest.NewPeer(t, first, wiretest.LegacyRevision, "a")
		store.Full = true
		for _, url := range []string{first, second} { // where it is open, and where it is not
			p.URL = url
			if status := p.Status(http.MethodDelete, ""); status != http.StatusMethodNotAllowed {
				t.Errorf("DELETE of one session too many: %d", status)
			}
		}
		p.Call("tools/list", nil).OK()
		store.Away = true
		for _, url := range []string{first, second} {
			p.URL = url
			if status := p.Status(http.MethodDelete, ""); status != http.StatusServiceUnavailable {
				t.Errorf("DELETE without the store: %d", status)
			}
		}
		p.Call("tools/list", nil).OK()
	})
}

// TestSessionKeyIsAway checks that a server does not start without the key of its store, and that the error has
// the way out.
func TestSessionKeyIsAway(t *testing.T) {
	store := wiretest.NewSessionStore()
	store.Away = true
	_, err := taskserver.New(taskserver.Options{Store: store}, wiretest.AskTools())
	if err == nil || !strings.Contains(err.Error(), "the store is away") || !strings.Contains(err.Error(), "Options.SessionKey") {
		t.Errorf("%v", err)
	}
	own := taskserver.Options{Store: store, SessionKey: sessionKey}
	tasks, err := taskserver.New(own, wiretest.AskTools())
	if err != nil {
		t.Fatal(fmt.Errorf("with a key of its own: %w", err))
	}
	_ = tasks.Close()
}
