package taskserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
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
	if len(o.SessionKey) > 0 {
		check("SessionKey", o.SessionKey)
	}
	for i, key := range o.OtherSessionKeys {
		check(fmt.Sprintf("OtherSessionKeys[%d]", i), key)
	}
	if len(o.SessionKey) == 0 && !stored && len(o.OtherSessionKeys) > 0 {
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
	isEmpty := b.options.SessionKey != nil && len(b.options.SessionKey) == 0 // as from a variable that is not set
	if isEmpty {
		b.options.SessionKey = nil
	}
	if store == nil {
		if isEmpty {
			b.logger.Warn("Options.SessionKey is empty, so each session of 2025-11-25 stays in this process: set it if there are several processes")
		}
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

// A task that a session creates has an ID that ends with a mark of the session, if the server has
// a session key. So a replica that has the session's stream knows the session's new tasks in the
// store's feed, whichever replica has created them. The mark does not tell the session's name, and
// the ID before it has all the random bits that it would have without the mark.

// markLength is the length of a session's mark. Two sessions have the same mark with a
// probability of 2^-40, and then their principals differ or the task is shown to one more client
// of its owner.
const markLength = 8

// unmarkedLength is the length of an ID before its mark.
const unmarkedLength = 26

// newTaskID returns the ID of a new task of the caller. told says that the caller is told the ID
// in the answer to its call.
func (b *Backend) newTaskID(caller Caller, told bool) string {
	id := rand.Text() // it cannot be guessed (C-91, E-86)
	if b.options.SessionKey == nil || caller.Session == "" || !told {
		return id
	}
	return id + MarkOfSession(caller.Session)
}

// MarkOfSession returns the mark of a session, with which the IDs of its tasks end. session is the
// one in [Caller].
func MarkOfSession(session string) string {
	sum := sha256.Sum256([]byte("mcptask session\x00" + session))
	return base32.StdEncoding.EncodeToString(sum[:])[:markLength]
}

// MarkOfTask returns the mark of the session that has created a task, or "" if the ID has none.
func MarkOfTask(id string) string {
	if len(id) != unmarkedLength+markLength {
		return ""
	}
	return id[unmarkedLength:]
}

// FollowSession is [Backend.Follow] for all tasks that a session creates, on whatever replica. It
// needs Options.SessionKey. It calls missed, which must not block, when changes may have been
// missed; FindTasksOfSession then finds the session's tasks. The calls may go on for a moment
// after unfollow is called.
func (b *Backend) FollowSession(session string, missed func()) (unfollow func()) {
	mark, key := MarkOfSession(session), new(int)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sessions[mark] == nil {
		b.sessions[mark] = map[*int]func(){}
	}
	b.sessions[mark][key] = missed
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.sessions[mark], key); len(b.sessions[mark]) == 0 {
			delete(b.sessions, mark)
		}
	}
}

// isOfFollowedSession reports whether a change is of a task that nothing here follows yet, although
// its session is followed.
func (b *Backend) isOfFollowedSession(c taskstore.Change) bool {
	mark := MarkOfTask(c.ID)
	if mark == "" || c.Version == 0 || c.Phase == taskstore.PhaseDone {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[mark] != nil && b.followed[c.ID] == nil
}

// notifySessions tells the followers of sessions that changes may have been missed.
func (b *Backend) notifySessions() {
	b.mu.Lock()
	var all []func()
	for _, followers := range b.sessions {
		for _, missed := range followers {
			all = append(all, missed)
		}
	}
	b.mu.Unlock()
	for _, missed := range all {
		missed()
	}
}

// NoteFetched sets Fetched of a question that waits for its answer. It ignores any other.
func (b *Backend) NoteFetched(ctx context.Context, id, key string) error {
	_, err := b.applyEvent(ctx, taskstore.Record{ID: id}, func(r taskstore.Record) event {
		if i := findInput(&r, key); i < 0 || r.Inputs[i].Fetched || !isOutstanding(&r, key) {
			return event{}
		}
		return event{kind: eventFetch, key: key}
	})
	if isOver(err) {
		return nil
	}
	return err
}

// maxFound bounds the records that FindTasksOfSession looks at.
const maxFound = 1000

// FindTasksOfSession returns the unfinished tasks that the caller's session has created, on
// whatever replica. Their arguments and questions may be missing. since is when the session began.
// It needs Options.SessionKey. Its cost is bounded: it looks at the newest 1,000 unfinished tasks of
// each phase, or, if the store is not an Inspector, at the oldest 1,000 since the session began.
func (b *Backend) FindTasksOfSession(ctx context.Context, caller Caller, since time.Time) (found []taskstore.Record, err error) {
	inspector, ok := b.store.(taskstore.Inspector)
	if !ok {
		return b.listTasksOfSession(ctx, caller, since)
	}
	for _, phase := range []taskstore.Phase{taskstore.PhaseQueued, taskstore.PhaseRunning, taskstore.PhaseInputRequired} {
		page, err := callStore(ctx, b.newRequestRetry(), "Scan", func(ctx context.Context) ([]taskstore.Record, error) {
			return inspector.Scan(ctx, taskstore.Filter{Principal: caller.Principal, Phase: phase}, taskstore.Position{}, maxFound)
		})
		if err != nil {
			return found, b.checkOwned(ctx, caller, taskstore.Record{}, err)
		}
		found = appendTasksOfSession(found, page, caller)
	}
	return found, nil
}

// listTasksOfSession is FindTasksOfSession for a store that is not an Inspector.
func (b *Backend) listTasksOfSession(ctx context.Context, caller Caller, since time.Time) (found []taskstore.Record, err error) {
	after := taskstore.Position{CreatedAt: since}
	for seen := 0; seen < maxFound; {
		page, err := callStore(ctx, b.newRequestRetry(), "List", func(ctx context.Context) ([]taskstore.Record, error) {
			return b.store.List(ctx, caller.Principal, after, PageSize)
		})
		if err != nil {
			return found, b.checkOwned(ctx, caller, taskstore.Record{}, err)
		}
		found = appendTasksOfSession(found, page, caller)
		if seen += len(page); len(page) < PageSize {
			break
		}
		last := page[len(page)-1]
		after = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	return found, nil
}

// appendTasksOfSession appends those records of a page that are of the caller's session.
func appendTasksOfSession(found, page []taskstore.Record, caller Caller) []taskstore.Record {
	mark := MarkOfSession(caller.Session)
	for _, r := range page {
		if !r.Done() && r.Principal == caller.Principal && MarkOfTask(r.ID) == mark {
			found = append(found, r)
		}
	}
	return found
}
