package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// session is one connection with its prepared statements. One goroutine at a time uses it.
type session struct {
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

// openSession makes a connection and sets it up.
func openSession(ctx context.Context, db *sql.DB, pragmas ...string) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, pragma := range pragmas {
		if err := retryBusy(ctx, func() error {
			_, err := conn.ExecContext(ctx, "PRAGMA "+pragma)
			return err
		}); err != nil {
			_ = conn.Close() // the first error says more
			return nil, err
		}
	}
	return &session{conn, map[string]*sql.Stmt{}}, nil
}

func (s *session) close() error {
	for _, stmt := range s.prepared {
		_ = stmt.Close() // the connection ends anyway
	}
	return s.conn.Close()
}

// prepare returns the prepared statement of a query, one of a fixed number of texts. They have LIMIT +?, because SQLite
// would compile a statement with LIMIT ? again for each value.
func (s *session) prepare(query string) (*sql.Stmt, error) {
	stmt, ok := s.prepared[query]
	if ok {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(context.Background(), query)
	if err == nil {
		s.prepared[query] = stmt
	}
	return stmt, err
}

// exec runs a statement. Statements are short and are never interrupted: only waiting for a lock
// takes long, and begin does that.
func (s *session) exec(query string, args ...any) (sql.Result, error) {
	stmt, err := s.prepare(query) //nolint:sqlclosecheck // the session closes it
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), args...)
}

// query runs a query and calls scan for each row.
func (s *session) query(query string, scan func(*sql.Rows) error, args ...any) error {
	return s.queryContext(context.Background(), query, scan, args...)
}

// queryContext is query for one that may take long.
func (s *session) queryContext(ctx context.Context, query string, scan func(*sql.Rows) error, args ...any) (err error) {
	stmt, err := s.prepare(query) //nolint:sqlclosecheck // the session closes it
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// queryInt runs a query for one number. It returns 0 if there is no row.
func (s *session) queryInt(query string, args ...any) (n int64, err error) {
	err = s.query(query, func(rows *sql.Rows) error { return rows.Scan(&n) }, args...)
	return n, err
}

const (
	// busyTimeout is how long SQLite itself waits for another process's lock, in milliseconds. Nothing
	// interrupts it.
	busyTimeout = 100
	// mostBusy is how long a write waits for it in all, if its context lasts as long.
	mostBusy = 30 * time.Second
)

// begin begins a transaction that may write. It waits for those of other processes.
func (s *session) begin(ctx context.Context) error {
	return retryBusy(ctx, func() error {
		_, err := s.exec("BEGIN IMMEDIATE")
		return err
	})
}

// retryBusy repeats do while another process has a lock.
func retryBusy(ctx context.Context, do func() error) error {
	for began := time.Now(); ; {
		err := do()
		if codeOf(err) != codes.SQLITE_BUSY || time.Since(began) > mostBusy {
			return err
		}
		select {
		case <-time.After(time.Millisecond): // SQLite has waited longer, as a rule
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// rollBack ends a transaction without its writes. If SQLite has ended it already, that is an error
// of no consequence.
func (s *session) rollBack() { _, _ = s.exec("ROLLBACK") }

// codeOf returns the primary result code of SQLite's error, or 0.
func codeOf(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// waysOut has the way out of an error of SQLite, by code.
var waysOut = map[int]string{
	codes.SQLITE_CANTOPEN: "check that its directory exists and that this user may write there",
	codes.SQLITE_NOTADB:   "the file is not a SQLite database; name another file",
	codes.SQLITE_READONLY: "the file and its directory must be writable for this user",
	codes.SQLITE_PERM:     "the file and its directory must be writable for this user",
	codes.SQLITE_CORRUPT:  "the file is damaged; restore a backup",
	codes.SQLITE_FULL:     "the disk is full; make room",
	codes.SQLITE_BUSY:     "another process keeps the file locked; end its transaction",
	codes.SQLITE_IOERR:    "the disk does not work, or the file is on a network file system",
}

// explain adds the place, the cause and the way out to an error of SQLite. It does not change other errors, such as
// those of a context.
func explain(path, doing string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if way := waysOut[codeOf(err)]; way != "" {
		return fmt.Errorf("sqlite: %s %s: %w: %s", doing, path, err, way)
	}
	return fmt.Errorf("sqlite: %s %s: %w", doing, path, err)
}

// sourceName returns the data source name of a file, whatever characters its path has.
func sourceName(path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	absolute = filepath.ToSlash(absolute)
	if !strings.HasPrefix(absolute, "/") { // such as C:/
		absolute = "/" + absolute
	}
	return (&url.URL{Scheme: "file", Path: absolute}).String(), nil
}
