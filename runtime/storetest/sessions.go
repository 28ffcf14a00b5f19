package storetest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// sessionStore returns a handle as a SessionStore. It skips the test if it is none.
func (k *kit) sessionStore(s taskstore.Store) taskstore.SessionStore {
	k.Helper()
	sessions, ok := s.(taskstore.SessionStore)
	if !ok {
		k.Skip("the store is not a taskstore.SessionStore")
	}
	return sessions
}

// getSessionKey returns a store's session key.
func (k *kit) getSessionKey(s taskstore.SessionStore) []byte {
	k.Helper()
	key, err := s.SessionKey(k.ctx)
	if err != nil || len(key) < taskstore.MinSessionKey {
		k.Errorf("the session key has %d bytes, want at least %d: %v", len(key), taskstore.MinSessionKey, err)
	}
	return key
}

func testSessionKey(k *kit) {
	const callers = 16
	handles := [2]taskstore.SessionStore{k.sessionStore(k.s), k.sessionStore(k.other)}
	keys := make([][]byte, callers)
	runConcurrently(callers, func(i int) { keys[i] = k.getSessionKey(handles[i%2]) })
	for _, key := range keys {
		if !bytes.Equal(key, keys[0]) {
			k.Fatalf("two session keys: %x and %x", keys[0], key)
		}
	}
	if bytes.Equal(keys[0], make([]byte, len(keys[0]))) {
		k.Error("the session key has only zeros")
	}
	another := k.closeAtEnd(k.stores.Open(k.TB))
	if bytes.Equal(k.getSessionKey(k.sessionStore(another)), keys[0]) {
		k.Error("another store has the same session key")
	}
}

// wantEnded checks whether both handles remember a session.
func (k *kit) wantEnded(principal, session string, want bool) {
	k.Helper()
	for _, s := range []taskstore.Store{k.s, k.other} {
		if got, err := k.sessionStore(s).HasEnded(k.ctx, principal, session); got != want || err != nil {
			k.Errorf("session %q of %q has ended: %v, %v, want %v", session, principal, got, err, want)
		}
	}
}

func testEndedSessions(k *kit) {
	s, until := k.sessionStore(k.s), k.readClock().Add(time.Hour)
	end := func(principal, session string, most int, want bool) {
		k.Helper()
		if got, err := s.EndSession(k.ctx, principal, session, until, most); got != want || err != nil {
			k.Errorf("end session %q of %q: %v, %v, want %v", session, principal, got, err, want)
		}
	}
	k.wantEnded("p", "a", false)
	end("p", "a", 2, true)
	k.wantEnded("p", "a", true)
	k.wantEnded("q", "a", false)
	k.wantEnded("p", "b", false)
	end("p", "b", 2, true)
	end("p", "c", 2, false) // those that are there stay
	for session, want := range map[string]bool{"a": true, "b": true, "c": false} {
		k.wantEnded("p", session, want)
	}
	for i := range 5 { // the ends of other principals' sessions do not count
		end("q", fmt.Sprint("q", i), 10, true)
	}
	end("", "a", 1, true)
	end("", "b", 1, false)
	end("p\x00\xff", "a\x00\xff", 1, true)
	k.wantEnded("p\x00\xff", "a\x00\xff", true)
	k.wantEnded("p", "a", true)
	k.wantEnded("", "a", true)
	if k.stores.Advance != nil { // there is room again
		for _, later := range []time.Duration{3 * time.Hour, 0} { // an earlier time does not shorten a later one
			if got, err := s.EndSession(k.ctx, "r", "a", until.Add(later), 2); !got || err != nil {
				k.Errorf("end a session again: %v, %v", got, err)
			}
		}
		k.advanceClock(2 * time.Hour)
		end("p", "c", 2, true)
		k.wantEnded("r", "a", true)
	}
}

func testReopenedSessions(k *kit) {
	if k.stores.Reopen == nil {
		k.Skip("the store is not durable: Stores.Reopen is nil")
	}
	key := k.getSessionKey(k.sessionStore(k.s))
	if _, err := k.sessionStore(k.s).EndSession(k.ctx, "p", "ended", k.readClock().Add(time.Hour), 1); err != nil {
		k.Fatal(err)
	}
	for _, s := range []taskstore.Store{k.s, k.other} {
		if err := s.Close(); err != nil {
			k.Fatalf("close: %v", err)
		}
	}
	k.s = k.closeAtEnd(k.stores.Reopen(k, k.s))
	k.other = k.s
	if again := k.getSessionKey(k.sessionStore(k.s)); !bytes.Equal(again, key) {
		k.Errorf("the session key has changed from %x to %x", key, again)
	}
	k.wantEnded("p", "ended", true)
}
