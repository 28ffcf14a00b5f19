package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/feed"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// pollEvery is how often a process looks for the commits of others, while somebody reads its feed.
const pollEvery = 50 * time.Millisecond

const (
	insertChange = "INSERT INTO change (news) VALUES (?)"
	selectNews   = "SELECT n, news FROM change WHERE n > ? AND n < ? ORDER BY n"
	lastChange   = "SELECT coalesce(max(n), 0) FROM change"
	trimChanges  = "DELETE FROM change WHERE n <= ?"
	// keepChanges is how many rows of the table stay at least. A process that is further behind misses
	// news.
	keepChanges = 1024
	trimEvery   = 256
)

// news is the changes of one commit.
type news struct {
	n       int64 // the commit's number
	changes []taskstore.Change
}

// tail passes the commits of all processes to the readers of the feed, in their order.
type tail struct {
	store  *Store
	logger *slog.Logger
	feed   *feed.Source[taskstore.Change]
	polls  sync.WaitGroup

	mu      sync.Mutex
	reading bool  // whether the feed has readers
	last    int64 // the number of the last commit that the feed has, as long as it has readers
}

// init sets a tail up, with the store that it belongs to.
func (t *tail) init(s *Store, logger *slog.Logger) {
	t.store, t.logger, t.feed = s, logger, feed.NewSource[taskstore.Change](t.start)
}

// Changes implements [taskstore.Store]. It has the changes of this process at once. Those of other
// processes take up to 50 milliseconds.
func (s *Store) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return s.tail.feed.Read(ctx, taskstore.Change{Missed: true})
}

// start starts the poll.
func (t *tail) start(ctx context.Context) (stop func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// The first Missed of a reader stands for the transactions that were committed before this moment.
	if err := t.store.read(ctx, "read", func(s *session) (err error) {
		t.last, err = s.queryInt(lastChange)
		return err
	}); err != nil {
		return nil, err
	}
	polling, cancel := context.WithCancel(context.Background())
	t.reading = true
	t.polls.Add(1)
	go t.poll(polling)
	return func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.reading = false
	}, nil
}

// close ends all readers and the poll.
func (t *tail) close() {
	t.feed.Close()
	t.polls.Wait()
}

// record writes the changes of the transaction for other processes, and returns the number of its
// commit. Call it once at most.
func (w *transaction) record(changes []taskstore.Change) (n int64, err error) {
	reading, last := w.tail.position()
	inserted, err := w.exec(insertChange, durable.EncodeChanges(changes))
	if err != nil {
		return 0, err
	}
	if n, err = inserted.LastInsertId(); err != nil {
		return 0, err
	}
	// The feed has all changes in the order of their commits, so those of others come first.
	if reading && n > last+1 {
		if w.latest, err = readNews(w.session, last, n); err != nil {
			return 0, err
		}
	}
	w.latest = append(w.latest, news{n, changes})
	if n%trimEvery == 0 {
		_, err = w.exec(trimChanges, n-keepChanges)
	}
	return n, err
}

// position returns whether the feed has readers, and the last commit that it has.
func (t *tail) position() (reading bool, last int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reading, t.last
}

// readNews reads the news between two commits.
func readNews(s *session, after, before int64) ([]news, error) {
	var latest []news
	err := s.query(selectNews, func(rows *sql.Rows) error {
		var one news
		var encoded []byte
		err := rows.Scan(&one.n, &encoded)
		if err != nil {
			return err
		}
		if one.changes, err = durable.DecodeChanges(encoded); err != nil { // a newer version of mcptask has written them
			one.changes = []taskstore.Change{{Missed: true}}
		}
		latest = append(latest, one)
		return nil
	}, after, before)
	return latest, err
}

// publish passes news to the feed, except for those that it has.
func (t *tail) publish(latest []news) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reading {
		return
	}
	for _, one := range latest {
		if one.n <= t.last {
			continue
		}
		if one.n != t.last+1 { // the transactions between are trimmed
			t.feed.Miss()
		}
		t.last = one.n
		t.feed.Publish(one.changes...)
	}
}

// poll looks for the commits of other processes until it is stopped.
func (t *tail) poll(ctx context.Context) {
	defer guard.Then(t.logger, "the poll for changes", func() { t.feed.Fail(errPollPanicked) })
	defer t.polls.Done()
	if err := t.watch(ctx); err != nil && ctx.Err() == nil {
		t.feed.Fail(explain(t.store.path, "watch", err))
	}
}

// watch is poll with a connection of its own: PRAGMA data_version compares with the value that the same connection saw
// before.
func (t *tail) watch(ctx context.Context) error {
	s, err := t.store.openReader(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // it has only read
	var seen int64
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		version, err := s.queryInt("PRAGMA data_version")
		if err != nil {
			return err
		}
		if version != seen {
			seen = version
			_, last := t.position()
			latest, err := readNews(s, last, math.MaxInt64)
			if err != nil {
				return err
			}
			t.publish(latest)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// errPollPanicked ends the feeds whose poll has panicked.
var errPollPanicked = errors.New("sqlite: the poll for changes panicked; see the log")
