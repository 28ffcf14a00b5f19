package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// end ends the session with an ID, if there is one.
func (t *sessions) end(id string) {
	if s := t.get(id); s != nil {
		t.endSession(s)
	}
}

// TestSessionKeepsNoRequest checks that a session does not keep the request that has opened it,
// because the body may be as big as any.
func TestSessionKeepsNoRequest(t *testing.T) {
	g, _ := countPassed(t)
	r := newRequest(t.Context(), http.MethodPost, "")
	kept := weak.Make(r)
	g.trackSession(r, &session{id: "s"}, nil)
	if runtime.GC(); kept.Value() != nil {
		t.Error("the request is still there")
	}
	g.sessions.end("s")
}

// TestWaitingIDs checks that a waiting request is found by its ID, in whatever form its JSON is written.
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

// TestUsedAtTheLastMoment checks that a session stays open if it is used again just as its time ends.
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

// TestWhatKeepsASession checks that every kind of message keeps a session from being idle: also
// notifications, which the gateway does not read, and the answers to questions.
func TestWhatKeepsASession(t *testing.T) {
	for name, body := range map[string]string{
		"a request":      ping,
		"a notification": `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`,
		"an answer":      `{"jsonrpc":"2.0","id":"mcptask/TASK/step","result":{"action":"cancel"}}`,
	} {
		bubble.Run(t, name, func(t *testing.T) {
			g := New(Config{Server: newServer(t, taskserver.Options{}).Backend(), Stateful: http.NotFoundHandler(), SessionTimeout: time.Minute})
			openSession(t, g, "2025-03-26", "")
			for range 3 {
				time.Sleep(40 * time.Second)
				serve(g, newRequest(t.Context(), http.MethodPost, body, sessionHeader, "s"))
			}
			if g.sessions.get("s") == nil {
				t.Error("the session has ended")
			}
		})
	}
}

// roomTest opens sessions in a table with limits.
type roomTest struct {
	*sessions

	t           *testing.T
	most, inAll int
}

// wantOpen opens a session and checks which session makes room for it, or which limit refuses it.
func (r *roomTest) wantOpen(id, principal, want string) {
	r.t.Helper()
	got := ""
	switch done, spared, full := r.makeRoom(principal, "", r.most, r.inAll); {
	case done == nil:
		got = "no room of the " + string(full)
	default:
		defer done()
		r.add(&session{id: id, principal: principal}, func() {})
		if spared != nil {
			got = fmt.Sprintf("%s, for the %s", spared.id, full)
		}
	}
	if got != want {
		r.t.Errorf("session %s of %q ends %q, not %q", id, principal, got, want)
	}
}

// TestRoomForSessions checks that a principal at its limit loses the session that has been idle for
// longest, and no session of another principal. The table keeps nothing of ended sessions.
func TestRoomForSessions(t *testing.T) {
	r := roomTest{&sessions{open: map[string]*session{}}, t, 3, math.MaxInt}
	r.wantOpen("1", "a", "")
	r.wantOpen("2", "a", "")
	r.wantOpen("3", "a", "")
	r.wantOpen("4", "a", "1, for the account")
	r.wantOpen("other", "b", "")
	r.beginUse("2")() // 3 has been idle for longer now
	used := []func(){r.beginUse("4"), r.beginUse("4")}
	used[0]()
	r.wantOpen("5", "a", "3, for the account")
	r.wantOpen("6", "a", "2, for the account")
	r.wantOpen("7", "a", "5, for the account")
	for _, id := range []string{"6", "7"} {
		used = append(used, r.beginUse(id))
	}
	r.wantOpen("8", "a", "no room of the account") // all are in use
	r.wantOpen("other", "b", "")
	r.end("7")
	for _, done := range used[1:] {
		done()
	}
	if r.wantOpen("6", "a", ""); len(r.open) != 3 { // an ID twice is one session
		t.Errorf("%d are open", len(r.open))
	}
	for _, id := range []string{"4", "6", "other", "other"} {
		r.end(id)
	}
	if len(r.open) != 0 || len(r.owners) != 0 {
		t.Errorf("left: %v %v", r.open, r.owners)
	}
}

// TestSpareSessions checks that a session which was only opened goes before one that has sent a
// request, however long each is idle. A session in use does not go at all.
func TestSpareSessions(t *testing.T) {
	r := roomTest{&sessions{open: map[string]*session{}}, t, 4, 6}
	ends := map[string]func(){}
	use := func(id string) { ends[id] = r.beginUse(id) }
	for _, id := range []string{"victim", "worked", "opened 1", "opened 2"} {
		r.wantOpen(id, "", "")
	}
	r.get("worked").used.Store(true)
	use("victim")
	r.wantOpen("3", "", "opened 1, for the account")
	r.wantOpen("4", "", "opened 2, for the account")
	r.wantOpen("5", "", "3, for the account")
	r.get("4").used.Store(true)
	r.get("5").used.Store(true)
	r.wantOpen("6", "", "worked, for the account")
	r.wantOpen("7", "", "6, for the account")
	use("4")
	use("5")
	use("7")
	r.wantOpen("8", "", "no room of the account")
	// If the whole server is full, the principal with the most sessions loses one of those that can
	// be spared.
	r.wantOpen("a1", "a", "")
	r.wantOpen("a2", "a", "")
	r.wantOpen("b1", "b", "a1, for the server")
	use("b1") // else b has as many as a
	r.wantOpen("a3", "a", "a2, for the server")
	use("a3")
	r.wantOpen("c", "c", "no room of the server")
	ends["5"]()
	r.wantOpen("c", "c", "5, for the server")
	for id := range r.open {
		r.end(id)
	}
	if len(r.owners) != 0 || r.opening != 0 {
		t.Errorf("left: %v, %d", r.owners, r.opening)
	}
}

// TestRoomInAll opens many sessions at once. There are never more than the server may have.
func TestRoomInAll(t *testing.T) {
	const inAll = 5
	table := sessions{open: map[string]*session{}}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			id := strconv.Itoa(i)
			if done, _, _ := table.makeRoom(id, "", 1000, inAll); done != nil {
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

// TestNegotiated checks that earlier revisions have no tasks, whatever a client declares.
func TestNegotiated(t *testing.T) {
	rules.Covers(t, "C-03")
	var s session
	for revision, want := range map[string]bool{mcptask.Revision20251125: true, "2025-06-18": false, "": false} {
		s.setNegotiated(&Gateway{speech: newSpeech([]string{mcptask.Revision20251125}, "")}, revision, json.RawMessage(takesTasks), nil)
		if s.requestor.Augments("elicitation/create") != want || s.requestor.Cancels() != want || len(s.canAsk) != 3 {
			t.Errorf("%s: %+v", revision, s.requestor)
		}
	}
}

const takesTasks = `{"elicitation":{},"sampling":{},"roots":{},"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}}`
