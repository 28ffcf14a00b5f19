package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func newTestKeys(letters ...string) sessionKeys {
	options := taskserver.Options{SessionKey: bytes.Repeat([]byte(letters[0]), taskstore.MinSessionKey)}
	for _, letter := range letters[1:] {
		options.OtherSessionKeys = append(options.OtherSessionKeys, bytes.Repeat([]byte(letter), taskstore.MinSessionKey))
	}
	return newSessionKeys(options)
}

// TestToken checks that a session ID is good for its principal, with a key that the server has, until
// SessionLife is over. It says nothing of the principal.
func TestToken(t *testing.T) {
	keys, now := newTestKeys("k", "old"), time.Now()
	said := sessionToken{Began: now.Unix(), Revision: mcptask.Revision20251125, Capabilities: json.RawMessage(`{"roots":{}}`), Client: json.RawMessage(`{"name":"<n>"}`)}
	id, signed := keys.sign("alice", said)
	other, _ := keys.sign("alice", said)
	if got, owns := keys.verify(id, "alice", now); got == nil || !owns || got.Name != signed.Name || got.Revision != said.Revision ||
		string(got.Capabilities) != string(said.Capabilities) || !strings.Contains(string(got.Client), "n") {
		t.Errorf("%+v %v", got, owns)
	}
	if other == id {
		t.Error("two sessions have the same ID")
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			t.Errorf("the ID is not visible ASCII: %q", id)
		}
	}
	for _, principal := range []string{"", "Alice", "mallory"} {
		if got, owns := keys.verify(id, principal, now); got == nil || owns {
			t.Errorf("%q: %+v %v", principal, got, owns)
		}
	}
	if _, owns := newTestKeys("new", "k").verify(id, "alice", now); !owns {
		t.Error("a further key does not verify")
	}
	if got, _ := newTestKeys("new").verify(id, "alice", now); got != nil {
		t.Error("another key verifies")
	}
	for i := range id {
		changed := []byte(id)
		changed[i] ^= 1
		if got, _ := keys.verify(string(changed), "alice", now); got != nil {
			t.Errorf("changed at %d: %+v", i, got)
		}
	}
	for age, lives := range map[time.Duration]bool{taskserver.SessionLife - time.Minute: true, taskserver.SessionLife + time.Minute: false, -time.Minute: true} {
		old := *signed
		old.Began = now.Add(-age).Unix()
		if got, _ := keys.verify(keys.encode(&old), "alice", now); (got != nil) != lives {
			t.Errorf("after %v: %+v", age, got)
		}
	}
}

// FuzzToken checks that only what was signed is a session ID.
func FuzzToken(f *testing.F) {
	keys, now := newTestKeys("k"), time.Now()
	id := keys.encode(&sessionToken{Name: "n", Began: now.Unix(), Revision: mcptask.Revision20251125})
	f.Add(id)
	f.Add(tokenPrefix)
	f.Add(tokenPrefix + ".")
	f.Add(strings.Replace(id, ".", "..", 1))
	f.Add(id[:strings.LastIndexByte(id, '.')])
	f.Add(id + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, _ := keys.verify(text, "alice", now); got != nil && text != keys.encode(got) { // each fuzzing process signs its own
			t.Errorf("%q is taken for %+v", text, got)
		}
	})
}
