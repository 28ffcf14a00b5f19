package mcptask

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"sync"
	"time"
)

// MinSessionKey is how many bytes a session key has at least.
const MinSessionKey = 32

// SessionLife is how long after its beginning a session can move to another replica. Then the
// session ends with the process that has it.
const SessionLife = 30 * 24 * time.Hour

// checkSessionKeys returns an error for each session key that is too short.
func (o *Options) checkSessionKeys() (faults []error) {
	check := func(name string, key []byte) {
		if len(key) < MinSessionKey {
			faults = append(faults, fmt.Errorf("mcptask: Options.%s has %d bytes, but needs at least %d: make one with crypto/rand or openssl rand -hex 32", name, len(key), MinSessionKey))
		}
	}
	if o.SessionKey != nil {
		check("SessionKey", o.SessionKey)
	}
	for i, key := range o.OtherSessionKeys {
		check(fmt.Sprintf("OtherSessionKeys[%d]", i), key)
	}
	if o.SessionKey == nil && len(o.OtherSessionKeys) > 0 {
		faults = append(faults, fmt.Errorf("mcptask: Options.OtherSessionKeys needs a SessionKey beside it, which signs"))
	}
	return faults
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
func (s *Server) newTaskID(caller Caller, told bool) string {
	id := rand.Text()
	if s.options.SessionKey == nil || caller.Session == "" || !told {
		return id
	}
	return id + markOf(caller.Session)
}

// markOf returns the mark of a session.
func markOf(session string) string {
	sum := sha256.Sum256([]byte("mcptask session\x00" + session))
	return base32.StdEncoding.EncodeToString(sum[:])[:markLength]
}

// findMark returns the mark of the session that has created a task, or "" if the ID has none.
func findMark(id string) string {
	if len(id) != unmarkedLength+markLength {
		return ""
	}
	return id[unmarkedLength:]
}

// follows has the tasks whose changes this process wants from the store's feed. It is safe for
// concurrent use. The zero value is ready to use.
type follows struct {
	mu sync.Mutex
	// tasks counts the followers of a task, by ID. marks counts those of a session, by its mark.
	tasks, marks map[string]int
}

// follow adds a follower to one of the maps until unfollow is called.
func (f *follows) follow(in *map[string]int, key string) (unfollow func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if *in == nil {
		*in = map[string]int{}
	}
	(*in)[key]++
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if (*in)[key]--; (*in)[key] == 0 {
			delete(*in, key)
		}
	})
}

// has reports whether a task has a follower.
func (f *follows) has(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tasks[id] > 0 || f.marks[findMark(id)] > 0
}

// Follow makes the functions of Observe see the changes of a task by other processes too, until
// unfollow is called.
func (s *Server) Follow(id string) (unfollow func()) { return s.follows.follow(&s.follows.tasks, id) }

// FollowSession is Follow for all tasks that a session creates, on whatever replica. It needs
// Options.SessionKey.
func (s *Server) FollowSession(session string) (unfollow func()) {
	return s.follows.follow(&s.follows.marks, markOf(session))
}

// IsOfSession reports whether a session has created the task with an ID. It needs
// Options.SessionKey.
func IsOfSession(id, session string) bool { return findMark(id) == markOf(session) }

// maxFound bounds the records that FindTasksOfSession looks at.
const maxFound = 1000

// FindTasksOfSession returns the unfinished tasks that the caller's session has created, on
// whatever replica. since is when the session began. It needs Options.SessionKey. It looks at no
// more than 1,000 records, so that its cost is bounded.
func (s *Server) FindTasksOfSession(ctx context.Context, caller Caller, since time.Time) (found []Record, err error) {
	after := Position{CreatedAt: since}
	for seen := 0; seen < maxFound; {
		page, err := callStore(ctx, s.newRequestRetry(), "List", func(ctx context.Context) ([]Record, error) {
			return s.store.List(ctx, caller.Principal, after, PageSize)
		})
		if err != nil {
			return found, s.checkOwned(ctx, caller, Record{}, err)
		}
		for _, r := range page {
			if !r.Done() && IsOfSession(r.ID, caller.Session) {
				found = append(found, r)
			}
		}
		if seen += len(page); len(page) < PageSize {
			break
		}
		last := page[len(page)-1]
		after = Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	return found, nil
}
