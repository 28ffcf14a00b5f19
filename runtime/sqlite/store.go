// Package sqlite has a store of tasks in a SQLite file, for one machine. Several processes may
// share the file.
//
//	store, err := sqlite.Open("tasks.db", sqlite.Options{})
//	server, err := taskserver.New(taskserver.Options{Store: store}, tools)
//
// Acknowledged writes are on the disk. Writes that come at the same time share one commit, so that many clients write
// much faster than one. SQLite is linked as Go code: no C compiler and no library are needed.
//
// A task that has ended takes no memory. Of the others, an open store keeps up to 8 MiB of arguments and
// questions, and about 7 MB of counts for 20,000 tasks and accounts. SQLite itself keeps up to 16 MB of the
// file's pages for writes, and 2 MB for each connection that reads.
//
// Keep the file on a local disk. To back it up while processes use it, run
// `sqlite3 tasks.db "VACUUM INTO 'backup.db'"`. A copy of the file alone lacks the newest writes,
// which are in tasks.db-wal.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Synchronous says which writes a power cut may lose.
type Synchronous int

// The values of Synchronous. Neither loses anything if a process is killed.
const (
	// Full loses nothing that was acknowledged. It is the default.
	Full Synchronous = iota
	// Normal loses the last commits before a power cut or a crash of the operating system. The file
	// stays consistent, but a client may know of a task that the store does not, and a task may be
	// run again. One client writes several times faster than with Full.
	Normal
)

// Options are the choices of [Open].
type Options struct {
	// Synchronous is Full or Normal.
	Synchronous Synchronous
	// Logger gets the failures that the store cannot return as an error. nil means slog.Default().
	Logger *slog.Logger
}

// Store is a [taskstore.Store] and a [taskstore.Inspector] in a file.
type Store struct {
	path      string
	now       func() time.Time // tells when something begins
	past      *steady.Clock    // decides which records and leases have ended
	db        *sql.DB
	cache     *durable.Cache
	sieve     *durable.Sieve
	committer *durable.Committer
	tail      tail
	lives     lives
	readers   chan *session // those that are free; nil for one that is not open yet
	endOnce   sync.Once
	ending    chan struct{} // closed by Close

	// turn has an element while a goroutine uses writer.
	turn   chan struct{}
	writer *session
}

var (
	_ taskstore.Store     = (*Store)(nil)
	_ taskstore.Inspector = (*Store)(nil)
)

// latestTime finds the latest time that a process has stored: the creation of a task, or the end of a lease.
// Without tasks and leases it is ?1.
const latestTime = "SELECT coalesce(max(t), ?1) FROM (SELECT max(created) AS t FROM task UNION ALL SELECT max(until) FROM worker)"

// openTimeout bounds how long Open waits for other processes.
const openTimeout = 30 * time.Second

// Open opens the store in a file. It creates the file if there is none, and brings its schema up to
// date, see [Migrate].
func Open(path string, o Options) (*Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if o.Logger == nil {
		o.Logger = slog.Default() //nolint:forbidigo // what goes wrong in the background is never silent
	}
	db, err := openDatabase(path)
	if err != nil {
		return nil, err
	}
	writer, err := openWriter(ctx, db, o)
	if err != nil {
		_ = db.Close() // the first error says more
		return nil, explain(path, "open", err)
	}
	if err := migrate(ctx, writer, path); err != nil {
		_ = errors.Join(writer.close(), db.Close()) // the first error says more
		return nil, err
	}
	s := &Store{
		path: path, now: time.Now, db: db, cache: durable.NewCache(durable.CacheBytes), sieve: durable.NewSieve(o.Logger), writer: writer,
		turn: make(chan struct{}, 1), ending: make(chan struct{}), readers: make(chan *session, max(4, runtime.GOMAXPROCS(0))),
	}
	for range cap(s.readers) {
		s.readers <- nil
	}
	if err := s.startClock(ctx, steady.New(s.now)); err != nil {
		_ = errors.Join(writer.close(), db.Close()) // the first error says more
		return nil, err
	}
	s.tail.init(s, o.Logger)
	s.committer = durable.NewCommitter(backend{s}, o.Logger)
	s.lives.init(ctx, s, o.Logger)
	return s, nil
}

// startClock sets the clock that decides which records and leases have ended. The machine's clock may be wrong just
// now. If it is ahead of all times in the file, the store does not believe it until it has been ahead for a while.
func (s *Store) startClock(ctx context.Context, clock *steady.Clock) error {
	var latest int64
	if err := s.read(ctx, "read", func(r *session) (err error) {
		latest, err = r.queryInt(latestTime, durable.Micros(s.now()))
		return err
	}); err != nil {
		return err
	}
	clock.Doubt(durable.Time(latest))
	s.past = clock
	return nil
}

// openDatabase checks a path and prepares connections to its file.
func openDatabase(path string) (*sql.DB, error) {
	if path == "" || path == ":memory:" || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("sqlite: open %q: give the path of a file; taskstore.NewMemory is a store in memory", path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("sqlite: open %s: it is a directory; name a file in it, such as %s", path, filepath.Join(path, "tasks.db"))
	}
	if directory := filepath.Dir(path); !isDirectory(directory) {
		return nil, fmt.Errorf("sqlite: open %s: there is no directory %s; create it first", path, directory)
	}
	// Arguments and results may be secrets. SQLite gives the files beside this one the same mode. A
	// file that exists is not opened here: closing it would end the locks of others in this process.
	switch file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); {
	case err == nil:
		if err := file.Close(); err != nil {
			return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("sqlite: %w: check that this user may write there", err)
	}
	name, err := sourceName(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	return db, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// openWriter opens the connection that writes.
func openWriter(ctx context.Context, db *sql.DB, o Options) (*session, error) {
	synchronous := "synchronous=FULL"
	if o.Synchronous == Normal {
		synchronous = "synchronous=NORMAL"
	}
	s, err := openSession(ctx, db, fmt.Sprintf("busy_timeout=%d", busyTimeout), "foreign_keys=ON", synchronous,
		"cache_size=-16000", "journal_size_limit=67108864")
	if err != nil {
		return nil, err
	}
	if err := s.tryWrite(ctx); err != nil {
		_ = s.close() // the first error says more
		return nil, err
	}
	// Only the first process to open a file changes its mode; SQLite does not wait for the lock that
	// this needs.
	var mode string
	err = retryBusy(ctx, func() error {
		return s.conn.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode)
	})
	if err == nil && mode != "wal" {
		err = fmt.Errorf("the journal mode is %q and cannot be WAL; keep the file on a local disk", mode)
	}
	if err != nil {
		_ = s.close() // the first error says more
		return nil, err
	}
	return s, nil
}

// tryWrite returns an error if the file may not be written. SQLite opens such a file all the same.
func (s *session) tryWrite(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.rollBack()
	_, err := s.conn.ExecContext(context.Background(), "PRAGMA user_version = 0")
	return err
}

// Close implements [taskstore.Store]. Writes that wait are carried out first.
func (s *Store) Close() error {
	var err error
	s.endOnce.Do(func() {
		s.committer.Close()
		s.lives.stop()
		close(s.ending)
		s.tail.close()
		s.turn <- struct{}{}
		s.lives.close()
		for range cap(s.readers) {
			if r := <-s.readers; r != nil {
				err = errors.Join(err, r.close())
			}
		}
		err = errors.Join(err, s.writer.close(), s.db.Close())
	})
	return explain(s.path, "close", err)
}

// read runs f with a connection that reads. f sees the database as it was at one moment.
func (s *Store) read(ctx context.Context, doing string, f func(r *session) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var r *session
	select {
	case r = <-s.readers:
	case <-s.ending:
		return mcptask.ErrServerClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.readers <- r }()
	select {
	case <-s.ending:
		return mcptask.ErrServerClosed
	default:
	}
	if r == nil {
		var err error
		if r, err = s.openReader(ctx); err != nil {
			return explain(s.path, doing, err)
		}
	}
	return explain(s.path, doing, f(r))
}

// openReader opens a connection that reads.
func (s *Store) openReader(ctx context.Context) (*session, error) {
	return openSession(ctx, s.db, fmt.Sprintf("busy_timeout=%d", 100*busyTimeout), "query_only=ON")
}

// write runs f in a transaction. Then it tells the feed of the changes that f has recorded.
func (s *Store) write(ctx context.Context, doing string, f func(w *transaction) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-s.ending:
		return mcptask.ErrServerClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	w := &transaction{session: s.writer, tail: &s.tail, undo: func() {}}
	if err := w.begin(ctx); err != nil {
		return explain(s.path, doing, err)
	}
	committed := false
	defer func() {
		if !committed { // an error, or a panic
			w.rollBack()
			w.undo()
		}
	}()
	if err := f(w); err != nil {
		return explain(s.path, doing, err)
	}
	if _, err := w.exec("COMMIT"); err != nil {
		return durable.InDoubt(explain(s.path, doing, err))
	}
	committed = true
	s.tail.publish(w.latest)
	return nil
}

// transaction is a session in a transaction that writes.
type transaction struct {
	*session
	tail   *tail
	latest []news // for the feed
	undo   func() // takes back what f has done outside of the database
}
