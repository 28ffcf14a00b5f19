package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The feed is read from table change, which has a row for each transaction, in the order of the commits: a row gets its
// number under the lock that all who write hold. So a cut costs nothing as long as the table still has the rows that
// came meanwhile. A notification has no content: it says that it is time to look.

const (
	// lookEvery and lookOften are how often a process looks without a notification: while it
	// listens, and while it does not.
	lookEvery = time.Second
	lookOften = 500 * time.Millisecond
	// lookBatch is how many transactions are read at once.
	lookBatch = 500
	// notifyEvery is the least time between two notifications. PostgreSQL lets only one transaction
	// that notifies commit at a time, in all databases together.
	notifyEvery = 10 * time.Millisecond
	// backgroundTimeout bounds a query in the background.
	backgroundTimeout = 5 * time.Second
)

// Changes implements [taskstore.Store].
func (s *Store) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return s.feed.Read(ctx, taskstore.Change{Missed: true})
}

// follower reads the changes of all processes as long as somebody reads the feed of this one.
type follower struct {
	store   *Store
	listens bool
	current atomic.Pointer[following]
}

// start begins to follow. When it returns, all later changes will come to the feed.
func (f *follower) start(ctx context.Context) (stop func(), err error) {
	s := f.store
	g := &following{store: s, look: make(chan struct{}, 1)}
	asking, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(s.closing, end)()
	err = s.pool.QueryRow(asking, s.schema.sql("SELECT coalesce(max(seq), 0), "+clock+" FROM @schema@.change"), s.shift.Load()).Scan(&g.seq, &g.at)
	switch {
	case s.closing.Err() != nil:
		return func() {}, nil // Close waits for its turn to end the readers
	case err != nil:
		return nil, fmt.Errorf("postgres: changes: %w", err)
	}
	following, cancel := context.WithCancel(s.closing)
	f.current.Store(g)
	s.running.Go(func() {
		defer guard.Then(s.logger, "feed of changes", func() { s.feed.Fail(errFollowPanicked) })
		g.follow(following)
	})
	if f.listens {
		heard := make(chan struct{})
		s.running.Go(func() {
			defer guard.Recover(s.logger, "notifications")
			g.listen(following, sync.OnceFunc(func() { close(heard) }))
		})
		s.running.Go(func() {
			defer guard.Recover(s.logger, "search for dead workers")
			select {
			case <-heard:
				g.watch(following)
			case <-following.Done():
			}
		})
	}
	return func() {
		cancel()
		f.current.Store(nil)
	}, nil
}

// errFollowPanicked ends the feeds whose news cannot be read.
var errFollowPanicked = errors.New("postgres: the reading of changes panicked; see the log")

// poke lets the follower look soon, if there is one.
func (f *follower) poke() {
	if g := f.current.Load(); g != nil {
		g.poke()
	}
}

// following is the time from the first reader of the feed to the last.
type following struct {
	store     *Store
	look      chan struct{} // has an element if it is time to look
	listening atomic.Bool
	lost      atomic.Pointer[time.Time] // when it has lost a connection last

	// seq is the number of the last transaction that was read, and at the database's time then.
	seq, at int64
}

func (g *following) poke() {
	select {
	case g.look <- struct{}{}:
	default:
	}
}

// follow publishes changes until ctx ends.
func (g *following) follow(ctx context.Context) {
	for failures := 0; ; {
		pause := g.store.lookOften
		if g.listening.Load() {
			pause = lookEvery
		}
		if err := g.publishNew(ctx); err == nil {
			failures = 0
		} else if failures++; ctx.Err() == nil {
			if failures == 1 {
				g.store.logger.Warn("feed of the database failed, and is tried again", "error", err)
			}
			pause = retryPause(failures)
		}
		select {
		case <-g.look:
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// readChanges reads transactions after $2. Each row has the database's time, and the number of the last
// transaction.
const readChanges = `SELECT ` + clock + `, (SELECT coalesce(max(seq), $2::bigint) FROM @schema@.change), c.seq, c.news
	FROM (SELECT) one LEFT JOIN (SELECT seq, news FROM @schema@.change WHERE seq > $2::bigint ORDER BY seq LIMIT $3) c ON true ORDER BY c.seq`

// publishNew publishes the transactions that were committed since the last call.
func (g *following) publishNew(ctx context.Context) error {
	for {
		if more, err := g.publishSome(ctx); err != nil || !more {
			return err
		}
	}
}

// publishSome publishes the changes of up to lookBatch transactions. It reports whether there may be
// more.
func (g *following) publishSome(ctx context.Context) (more bool, err error) {
	s := g.store
	ctx, cancel := context.WithTimeout(ctx, backgroundTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, s.schema.sql(readChanges), s.shift.Load(), g.seq, lookBatch)
	if err != nil {
		return false, err
	}
	var now, last int64
	var seq *int64
	var news []byte
	var changes []taskstore.Change
	read, n, missed := g.seq, 0, false
	if _, err := pgx.ForEachRow(rows, []any{&now, &last, &seq, &news}, func() error {
		if seq == nil {
			return nil
		}
		list, err := durable.DecodeChanges(news)
		missed = missed || err != nil // a newer version of mcptask has written them
		changes = append(changes, list...)
		read, n = *seq, n+1
		return nil
	}); err != nil {
		return false, err
	}
	// A server that lacks the last commits may have taken over. After a long pause, the table may lack the rows that
	// came meanwhile.
	if last < g.seq || now-g.at > changesFor.Microseconds()/2 {
		read, missed = last, true
	}
	g.seq, g.at = read, now
	if missed {
		s.feed.Miss()
	} else {
		s.feed.Publish(changes...)
	}
	return n == lookBatch, nil
}

// listen waits for notifications until ctx ends, and connects again when it must. It calls heard whenever it listens again.
func (g *following) listen(ctx context.Context, heard func()) {
	for failures := 0; ctx.Err() == nil; failures++ {
		err := g.receive(ctx, func() {
			failures = 0
			heard()
		})
		if ctx.Err() != nil {
			return
		}
		g.noteLoss()
		if failures == 0 {
			g.store.logger.Warn("notifications of the database failed, and are tried again", "error", err)
		}
		select {
		case <-time.After(min(retryPause(failures), longestReconnect)):
		case <-ctx.Done():
		}
	}
}

// receive receives notifications until the connection fails. It calls listening once it listens.
func (g *following) receive(ctx context.Context, listening func()) error {
	s := g.store
	config := s.pool.Config().ConnConfig
	config.OnNotification = nil // the connection keeps them for WaitForNotification
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer closeConn(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+s.schema.channel); err != nil {
		return err
	}
	life, err := s.prove(ctx, conn)
	defer life.hide() // before the connection is closed
	if err != nil {
		return err
	}
	g.listening.Store(true)
	defer g.listening.Store(false)
	listening()
	defer g.poke()
	g.poke() // also for transactions from before it listened
	for keep := time.Now(); ; {
		if now := time.Now(); s.workers.takeNew() || !now.Before(keep) {
			if err := life.keep(ctx); err != nil {
				return err
			}
			keep = now.Add(keepEvery)
		}
		n, err := awaitNotification(ctx, conn, time.Until(keep))
		switch {
		case err != nil:
			return err
		case n != nil && n.Payload != s.notifier.sender:
			g.poke()
		}
	}
}

// awaitNotification waits for a notification. It returns nil if there is none for the given time.
func awaitNotification(ctx context.Context, conn *pgx.Conn, longest time.Duration) (*pgconn.Notification, error) {
	waiting, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	n, err := conn.WaitForNotification(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil && !conn.IsClosed() {
		return nil, nil //nolint:nilnil // there is none
	}
	return n, err
}

// notifier tells other processes that something was committed. It does so beside the commits, which
// would have to wait for each other otherwise.
type notifier struct {
	store *Store
	// sender marks the process's own notifications.
	sender string
	news   chan struct{}
}

// newNotifier makes a notifier and starts it.
func newNotifier(s *Store) *notifier {
	n := &notifier{store: s, sender: rand.Text(), news: make(chan struct{}, 1)}
	s.running.Go(func() {
		defer guard.Recover(s.logger, "notifications")
		n.run()
	})
	return n
}

// poke sends a notification soon.
func (n *notifier) poke() {
	select {
	case n.news <- struct{}{}:
	default:
	}
}

// run sends notifications until the store closes.
func (n *notifier) run() {
	closing := n.store.closing.Done()
	for {
		select {
		case <-n.news:
			n.send(backgroundTimeout)
		case <-closing:
			select {
			case <-n.news: // such as a release
				n.send(time.Second)
			default:
			}
			return
		}
		select {
		case <-time.After(notifyEvery):
		case <-closing:
		}
	}
}

// send sends a notification. A failure costs others no more than the time until they look.
func (n *notifier) send(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	n.store.pool.Exec(ctx, "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", n.store.schema.channel, n.sender) //nolint:errcheck // see above
}

// retryPause is the pause after some failures in a row.
func retryPause(failures int) time.Duration {
	const first, longest = 50 * time.Millisecond, 5 * time.Second
	return min(first<<min(failures, 10), longest)
}
