package taskserver

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestSessionKeys checks that New refuses keys that are too short, and says which.
func TestSessionKeys(t *testing.T) {
	good, short := bytes.Repeat([]byte("k"), taskstore.MinSessionKey), []byte("short")
	for want, options := range map[string]Options{
		"":                               {SessionKey: good, OtherSessionKeys: [][]byte{good}},
		"SessionKey has 5 bytes":         {SessionKey: short},
		"OtherSessionKeys[0] has 0":      {SessionKey: good, OtherSessionKeys: [][]byte{{}}},
		"OtherSessionKeys[1] has 5":      {SessionKey: good, OtherSessionKeys: [][]byte{good, short}},
		"OtherSessionKeys needs a Sessi": {OtherSessionKeys: [][]byte{good}},
	} {
		s, err := New(options)
		if err == nil {
			_ = s.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestEmptySessionKey checks that an empty key, as a variable that is not set gives it, counts as none. New warns if the
// store keeps no key either.
func TestEmptySessionKey(t *testing.T) {
	var log bytes.Buffer
	s, err := New(Options{SessionKey: []byte{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Backend().options.SessionKey != nil || !strings.Contains(log.String(), "Options.SessionKey is empty") {
		t.Errorf("the key is %q, the log %s", s.Backend().options.SessionKey, log.String())
	}
}

// TestMarks checks that the mark of a session is in the IDs of the tasks that the session is told of, and
// in no other.
func TestMarks(t *testing.T) {
	with := &Backend{options: Options{SessionKey: bytes.Repeat([]byte("k"), taskstore.MinSessionKey)}}
	caller := Caller{Session: "s"}
	id := with.newTaskID(caller, true)
	if MarkOfTask(id) != MarkOfSession("s") || MarkOfTask(id) == MarkOfSession("t") || strings.Contains(id, "/") {
		t.Errorf("the ID is %q", id)
	}
	for name, id := range map[string]string{
		"not told": with.newTaskID(caller, false), "no session": with.newTaskID(Caller{Principal: "p"}, true), "no key": new(Backend).newTaskID(caller, true),
	} {
		if MarkOfTask(id) != "" || len(id) != unmarkedLength {
			t.Errorf("%s: %q", name, id)
		}
	}
}

// TestFollowSession checks that observers see a task which another server creates in a followed session,
// and that the follower hears when changes may have been missed.
func TestFollowSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		here := newServer(t, Options{Store: store, SessionKey: bytes.Repeat([]byte("k"), taskstore.MinSessionKey)})
		seen, missed := make(chan taskstore.Record, 100), make(chan bool, 100)
		defer here.Observe(func(r taskstore.Record) { seen <- r })()
		unfollow := here.FollowSession("s", func() { missed <- true })
		synctest.Wait() // the feed has begun: earlier changes are only missed
		here.takeChange(taskstore.Change{Missed: true})
		<-missed
		create := func(session string) string {
			id := here.newTaskID(Caller{Session: session}, true)
			r := taskstore.Record{ID: id, Principal: "p", Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "another"}}
			r.ExpiresAt = time.Now().Add(DefaultMaxTTL)
			if _, err := store.Create(context.Background(), r, taskstore.Quota{}); err != nil {
				t.Fatal(err)
			}
			return id
		}
		create("t")
		want := create("s")
		if r := <-seen; r.ID != want {
			t.Errorf("saw %s", r.ID)
		}
		unfollow()
		if len(here.sessions) > 0 || here.isOfFollowedSession(taskstore.Change{ID: want, Version: 1}) {
			t.Error("the session is still followed")
		}
		found, err := here.FindTasksOfSession(t.Context(), Caller{Principal: "p", Session: "s"}, time.Now())
		if err != nil || len(found) != 1 || found[0].ID != want {
			t.Errorf("found %+v, %v", found, err)
		}
	})
}

// TestLocalEndings checks that a process remembers the sessions that its clients have ended, whatever others end, and
// in a bounded number.
func TestLocalEndings(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		endings, until := &localEndings{clock: steady.New(time.Now)}, time.Now().Add(time.Hour)
		end := func(principal, session string, want bool) {
			t.Helper()
			if got, err := endings.EndSession(t.Context(), principal, session, until, maxSessionsEnded); got != want || err != nil {
				t.Fatalf("%q of %q: %v, %v", session, principal, got, err)
			}
		}
		end("p", "mine", true)
		for i := range maxSessionsEnded {
			end("q", fmt.Sprint(i), true)
		}
		end("q", "one more", false)
		for i := 0; ; i++ {
			if ended, _ := endings.EndSession(t.Context(), fmt.Sprint("r", i), "s", until, maxSessionsEnded); !ended {
				break
			}
			if i > maxLocalEndings {
				t.Fatal("the number is not bounded")
			}
		}
		if ended, err := endings.HasEnded(t.Context(), "p", "mine"); !ended || err != nil {
			t.Errorf("what others have ended has pushed it out: %v", err)
		}
		time.Sleep(time.Hour)
		end("q", "one more", true)
	})
}
