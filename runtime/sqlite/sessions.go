package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

var _ taskstore.SessionStore = (*Store)(nil)

// SessionKey implements [taskstore.SessionStore].
func (s *Store) SessionKey(ctx context.Context) (key []byte, err error) {
	read := func(r *session) error {
		return r.query("SELECT secret FROM session_key", func(rows *sql.Rows) error { return rows.Scan(&key) })
	}
	if err := s.read(ctx, "read", read); err != nil || key != nil {
		return key, err
	}
	secret := make([]byte, taskstore.MinSessionKey)
	rand.Read(secret) // it never fails
	err = s.write(ctx, "write", func(w *transaction) error {
		if _, err := w.exec("INSERT INTO session_key VALUES (1, ?) ON CONFLICT DO NOTHING", secret); err != nil {
			return err
		}
		return read(w.session) // another process may have made one meanwhile
	})
	return key, err
}

// expiredAtOnce bounds how many expired rows one EndSession removes.
const expiredAtOnce = 100

// EndSession implements [taskstore.SessionStore].
func (s *Store) EndSession(ctx context.Context, principal, name string, until time.Time, most int) (ended bool, err error) {
	err = s.write(ctx, "write", func(w *transaction) error {
		if _, err := w.exec("DELETE FROM ended_session WHERE (principal, session) IN (SELECT principal, session FROM ended_session WHERE until <= ? LIMIT +?)",
			durable.Micros(s.past.Now()), expiredAtOnce); err != nil {
			return err
		}
		n, err := w.queryInt("SELECT count(*) FROM (SELECT 1 FROM ended_session WHERE principal = ? LIMIT +?)", []byte(principal), most)
		if ended = n < int64(most); err != nil || !ended {
			return err
		}
		_, err = w.exec("INSERT INTO ended_session VALUES (?, ?, ?) ON CONFLICT (principal, session) DO UPDATE SET until = max(until, excluded.until)", []byte(principal), []byte(name), durable.Micros(until))
		return err
	})
	return ended && err == nil, err
}

// HasEnded implements [taskstore.SessionStore].
func (s *Store) HasEnded(ctx context.Context, principal, name string) (ended bool, err error) {
	err = s.read(ctx, "read", func(r *session) error {
		n, err := r.queryInt("SELECT count(*) FROM ended_session WHERE principal = ? AND session = ?", []byte(principal), []byte(name))
		ended = n > 0
		return err
	})
	return ended, err
}
