package gateway

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// A session does not keep the request that has opened it, whose body may be as big
// as any.
func TestSessionKeepsNoRequest(t *testing.T) {
	server, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := New(Config{Server: server})
	r := httptest.NewRequest("POST", "/", nil)
	kept := weak.Make(r)
	g.trackSession(r, &session{id: "s"}, nil)
	if runtime.GC(); kept.Value() != nil {
		t.Error("the request is still there")
	}
	g.sessions.end("s")
}

// A request is found by its ID however the JSON of that is written.
func TestWaitingIDs(t *testing.T) {
	table, s := sessions{open: map[string]*session{}}, &session{id: "s"}
	cancelled := 0
	forget := table.addWaiting(s, json.RawMessage(`"a\u0062"`), func() { cancelled++ })
	table.cancelWaiting(s, json.RawMessage(`"b"`))
	table.cancelWaiting(s, json.RawMessage(`"ab"`))
	if forget(); cancelled != 1 || len(s.waiting) != 0 {
		t.Errorf("cancelled %d times, %d left", cancelled, len(s.waiting))
	}
	forget = table.addWaiting(s, json.RawMessage(`5`), func() { cancelled++ })
	table.cancelWaiting(s, json.RawMessage(`"5"`))
	if forget(); cancelled != 1 {
		t.Error("a number is not a string")
	}
}

// A session that is used again as its time is over stays.
func TestUsedAtTheLastMoment(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		table := sessions{timeout: time.Minute, open: map[string]*session{}}
		var expired []string
		for _, id := range []string{"used", "left"} {
			table.add(&session{id: id}, func() { expired = append(expired, id) })
		}
		table.mu.Lock()
		time.Sleep(table.timeout) // the timers are about to look
		table.open["used"].active++
		table.mu.Unlock()
		synctest.Wait()
		if !slices.Equal(expired, []string{"left"}) || table.get("used") == nil || table.get("left") != nil {
			t.Errorf("%v expired, %d are open", expired, len(table.open))
		}
	})
}

// Whatever a session's client sends keeps the session from being idle: batches and
// notifications too, which pass unread, and the answers to questions.
func TestWhatKeepsASession(t *testing.T) {
	for name, body := range map[string]string{
		"a request":      `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		"a batch":        `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		"a notification": `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		"an answer":      `{"jsonrpc":"2.0","id":"mcptask/TASK/step","result":{"action":"cancel"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				server, err := mcptask.NewServer(mcptask.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer server.Close()
				g := New(Config{Server: server, Stateful: http.NotFoundHandler(), SessionTimeout: time.Minute})
				s := &session{id: "s"}
				s.setNegotiated(g, "2025-03-26", nil) // the last with batches
				g.trackSession(httptest.NewRequest("POST", "/", nil), s, nil)
				for range 3 {
					time.Sleep(40 * time.Second)
					r := httptest.NewRequest("POST", "/", strings.NewReader(body))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set(sessionHeader, "s")
					g.ServeHTTP(httptest.NewRecorder(), r)
				}
				if g.sessions.get("s") == nil {
					t.Error("the session has ended")
				}
				g.sessions.end("s")
			})
		})
	}
}

// TestRoomForSessions checks that a principal at its limit loses the session that has been idle for
// longest, and no session of another principal. The table keeps nothing of ended sessions.
func TestRoomForSessions(t *testing.T) {
	const most = 3
	table := sessions{open: map[string]*session{}}
	open := func(id, principal string) (ended string) {
		t.Helper()
		done, idle, _ := table.makeRoom(principal, most, math.MaxInt)
		if done == nil {
			return "refused"
		}
		defer done()
		table.add(&session{id: id, principal: principal}, func() {})
		if idle != nil {
			return idle.id
		}
		return ""
	}
	for _, step := range []struct{ id, ended string }{{"1", ""}, {"2", ""}, {"3", ""}, {"4", "1"}} {
		if got := open(step.id, "a"); got != step.ended {
			t.Errorf("%s ends %q, not %q", step.id, got, step.ended)
		}
	}
	open("other", "b")
	table.beginUse("2")() // 3 has been idle for longer now
	used := []func(){table.beginUse("4"), table.beginUse("4")}
	used[0]()
	for _, step := range []struct{ id, ended string }{{"5", "3"}, {"6", "2"}, {"7", "5"}} {
		if got := open(step.id, "a"); got != step.ended {
			t.Errorf("%s ends %q, not %q", step.id, got, step.ended)
		}
	}
	for _, id := range []string{"6", "7"} {
		used = append(used, table.beginUse(id))
	}
	if got := open("8", "a"); got != "refused" {
		t.Errorf("%q, though all are in use", got)
	}
	if done, _, _ := table.makeRoom("b", most, math.MaxInt); done == nil {
		t.Error("another principal is refused")
	} else {
		done()
	}
	table.end("7")
	for _, done := range used[1:] {
		done()
	}
	if got := open("6", "a"); got != "" || len(table.open) != 3 { // an ID twice is one session
		t.Errorf("%q, %d are open", got, len(table.open))
	}
	for _, id := range []string{"4", "6", "other", "other"} {
		table.end(id)
	}
	if len(table.open) != 0 || len(table.owners) != 0 {
		t.Errorf("left: %v %v", table.open, table.owners)
	}
}

// A session that was only opened goes before one that has asked for something, however
// long each is idle, and one whose tasks run does not go at all.
func TestSpareSessions(t *testing.T) {
	const most, inAll = 4, 6
	busy := map[string]bool{}
	table := sessions{open: map[string]*session{}, busy: func(s *session) bool { return busy[s.id] }}
	open := func(id, principal string) (ended string) {
		t.Helper()
		done, spared, full := table.makeRoom(principal, most, inAll)
		if done == nil {
			return "no room of the " + string(full)
		}
		defer done()
		table.add(&session{id: id, principal: principal}, func() {})
		if spared != nil {
			return spared.id
		}
		return ""
	}
	for _, id := range []string{"victim", "worked", "opened 1", "opened 2"} {
		if got := open(id, ""); got != "" {
			t.Fatalf("%s ends %q", id, got)
		}
	}
	table.markUsed(table.get("victim"))
	table.markUsed(table.get("worked"))
	busy["victim"] = true
	for _, step := range []struct{ id, ended string }{{"3", "opened 1"}, {"4", "opened 2"}, {"5", "3"}} {
		if got := open(step.id, ""); got != step.ended {
			t.Errorf("%s ends %q, not %q", step.id, got, step.ended)
		}
	}
	table.markUsed(table.get("4"))
	table.markUsed(table.get("5"))
	for _, step := range []struct{ id, ended string }{{"6", "worked"}, {"7", "6"}} {
		if got := open(step.id, ""); got != step.ended {
			t.Errorf("%s ends %q, not %q", step.id, got, step.ended)
		}
	}
	for _, id := range []string{"4", "5", "7"} {
		busy[id] = true
	}
	if got := open("8", ""); got != "no room of the account" {
		t.Errorf("all have tasks that run: %q", got)
	}
	// The whole server is full: who has the most of what can be spared gives one.
	for _, step := range []struct{ id, principal, ended string }{
		{"a1", "a", ""}, {"a2", "a", ""}, {"b1", "b", "a1"}, {"a3", "a", "a2"},
	} {
		busy["b1"] = step.id == "a3" // else it has as many as a
		if got := open(step.id, step.principal); got != step.ended {
			t.Errorf("%s ends %q, not %q", step.id, got, step.ended)
		}
	}
	busy["a3"] = true
	if got := open("c", "c"); got != "no room of the server" {
		t.Errorf("the server is full of tasks that run: %q", got)
	}
	delete(busy, "5")
	if got := open("c", "c"); got != "5" {
		t.Errorf("the one that is idle is spared, and not %q", got)
	}
	for id := range table.open {
		table.end(id)
	}
	if len(table.owners) != 0 || table.opening != 0 {
		t.Errorf("left: %v, %d", table.owners, table.opening)
	}
}

// Many sessions are opened at once: there are never more than there may be in all.
func TestRoomInAll(t *testing.T) {
	const inAll = 5
	table := sessions{open: map[string]*session{}, busy: func(*session) bool { return true }}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			id := strconv.Itoa(i)
			if done, _, _ := table.makeRoom(id, 1000, inAll); done != nil {
				table.add(&session{id: id, principal: id}, func() {})
				done()
			}
		})
	}
	all.Wait()
	if len(table.open) != inAll {
		t.Errorf("%d of %d are open", len(table.open), inAll)
	}
}

// TestNegotiated: earlier revisions have no tasks, whatever a client declares.
func TestNegotiated(t *testing.T) {
	rules.Covers(t, "C-03")
	var s session
	for revision, want := range map[string]bool{mcptask.Revision20251125: true, "2025-06-18": false, "": false} {
		s.setNegotiated(&Gateway{speech: newSpeech([]string{mcptask.Revision20251125}, "")}, revision, json.RawMessage(takesTasks))
		if s.requestor.Augments("elicitation/create") != want || s.requestor.Cancels() != want || len(s.canAsk) != 3 {
			t.Errorf("%s: %+v", revision, s.requestor)
		}
	}
}

const takesTasks = `{"elicitation":{},"sampling":{},"roots":{},"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}}`
