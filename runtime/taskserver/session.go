package taskserver

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// SessionLife is how long after its beginning a session can move to another replica. Then the
// session ends with the process that has it.
const SessionLife = 30 * 24 * time.Hour

// checkSessionKeys returns an error for each session key that is too short. stored says that the store keeps a key.
func (o *Options) checkSessionKeys(stored bool) (faults []error) {
	check := func(name string, key []byte) {
		if len(key) < taskstore.MinSessionKey {
			faults = append(faults, fmt.Errorf("mcptask: Options.%s has %d bytes, but needs at least %d: make one with crypto/rand or openssl rand -hex 32", name, len(key), taskstore.MinSessionKey))
		}
	}
	if o.SessionKey != nil {
		check("SessionKey", o.SessionKey)
	}
	for i, key := range o.OtherSessionKeys {
		check(fmt.Sprintf("OtherSessionKeys[%d]", i), key)
	}
	if o.SessionKey == nil && !stored && len(o.OtherSessionKeys) > 0 {
		faults = append(faults, fmt.Errorf("mcptask: Options.OtherSessionKeys needs a SessionKey beside it, which signs"))
	}
	return faults
}

// maxSessionsEnded is how many ended sessions of a principal are remembered. All anonymous callers are one principal.
const maxSessionsEnded = 10_000

// sessionEndings remembers the sessions that their clients have ended. It is the part of a [taskstore.SessionStore].
type sessionEndings interface {
	EndSession(ctx context.Context, principal, session string, until time.Time, most int) (bool, error)
	HasEnded(ctx context.Context, principal, session string) (bool, error)
}

// useSessionStore takes the session key from the store, which may be nil. It returns an error if the store does not
// give the key: a server without it would open sessions that no other process serves.
func (b *Backend) useSessionStore(store taskstore.SessionStore) error {
	if store == nil {
		b.endings = &localEndings{clock: steady.New(time.Now)}
		return nil
	}
	b.endings = store
	if b.options.SessionKey != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), StorePatience)
	defer cancel()
	key, err := store.SessionKey(ctx)
	if err == nil && len(key) < taskstore.MinSessionKey {
		err = fmt.Errorf("it has %d bytes, but needs at least %d", len(key), taskstore.MinSessionKey)
	}
	if err != nil {
		return fmt.Errorf("mcptask: the session key of Options.Store could not be read: %w: start again when the store works, or set Options.SessionKey", err)
	}
	b.options.SessionKey = key
	return nil
}

// EndSession remembers that a caller has ended its session, which began at the given time. It remembers that for as
// long as the session's ID could open it again. It returns false if the caller has ended too many sessions for that.
func (b *Backend) EndSession(ctx context.Context, caller Caller, began time.Time) (bool, error) {
	return callStore(ctx, b.newRequestRetry(), "EndSession", func(ctx context.Context) (bool, error) {
		return b.endings.EndSession(ctx, caller.Principal, caller.Session, began.Add(SessionLife), maxSessionsEnded)
	})
}

// HasEnded reports whether a caller has ended its session.
func (b *Backend) HasEnded(ctx context.Context, caller Caller) (bool, error) {
	return callStore(ctx, b.newRequestRetry(), "HasEnded", func(ctx context.Context) (bool, error) {
		return b.endings.HasEnded(ctx, caller.Principal, caller.Session)
	})
}

// localEndings are the sessionEndings of a process whose store does not keep them. It is safe for concurrent use.
type localEndings struct {
	clock *steady.Clock
	mu    sync.Mutex
	until map[string]map[string]time.Time // by principal and session
	count int                             // of all principals
	// looked is when expired sessions were last removed.
	looked time.Time
}

// maxLocalEndings is how many sessions localEndings remembers in all.
const maxLocalEndings = 100_000

// EndSession implements sessionEndings.
func (l *localEndings) EndSession(_ context.Context, principal, session string, until time.Time, most int) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isFull := func() bool { return len(l.until[principal]) >= most || l.count >= maxLocalEndings }
	if now := l.clock.Now(); isFull() && now.Sub(l.looked) > time.Minute {
		l.looked = now
		l.removeExpired(now)
	}
	if isFull() {
		return false, nil
	}
	if l.until == nil {
		l.until = map[string]map[string]time.Time{}
	}
	if l.until[principal] == nil {
		l.until[principal] = map[string]time.Time{}
	}
	before := len(l.until[principal])
	if until.After(l.until[principal][session]) {
		l.until[principal][session] = until
	}
	l.count += len(l.until[principal]) - before
	return true, nil
}

// removeExpired removes the sessions whose IDs are void. l.mu is held.
func (l *localEndings) removeExpired(now time.Time) {
	for principal, sessions := range l.until {
		before := len(sessions)
		maps.DeleteFunc(sessions, func(_ string, until time.Time) bool { return !until.After(now) })
		l.count -= before - len(sessions)
		if len(sessions) == 0 {
			delete(l.until, principal)
		}
	}
}

// HasEnded implements sessionEndings.
func (l *localEndings) HasEnded(_ context.Context, principal, session string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ended := l.until[principal][session]
	return ended, nil
}
