package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

var _ taskstore.SessionStore = (*Store)(nil)

// SessionKey implements [taskstore.SessionStore].
func (s *Store) SessionKey(ctx context.Context) (key []byte, err error) {
	secret := make([]byte, taskstore.MinSessionKey)
	rand.Read(secret) // it never fails
	if _, err := s.pool.Exec(ctx, s.schema.sql("INSERT INTO @schema@.session_key (secret) SELECT $1::bytea WHERE NOT EXISTS (SELECT FROM @schema@.session_key) "+
		"ON CONFLICT DO NOTHING"), secret); err != nil {
		return nil, fmt.Errorf("postgres: make the session key: %w", err)
	}
	if err := s.pool.QueryRow(ctx, s.schema.sql("SELECT secret FROM @schema@.session_key")).Scan(&key); err != nil {
		return nil, fmt.Errorf("postgres: read the session key: %w", err)
	}
	return key, nil
}

// expiredAtOnce bounds how many expired rows one EndSession removes.
const expiredAtOnce = 100

// EndSession implements [taskstore.SessionStore].
func (s *Store) EndSession(ctx context.Context, principal, session string, until time.Time, most int) (bool, error) {
	if _, err := s.pool.Exec(ctx, s.schema.sql("DELETE FROM @schema@.ended_session WHERE (principal, session) IN "+
		"(SELECT principal, session FROM @schema@.ended_session WHERE until <= "+clock+" LIMIT $2::bigint FOR UPDATE SKIP LOCKED)"),
		s.shift.Load(), expiredAtOnce); err != nil {
		return false, fmt.Errorf("postgres: forget ended sessions: %w", err)
	}
	added, err := s.pool.Exec(ctx, s.schema.sql("INSERT INTO @schema@.ended_session SELECT sha256($1::bytea), $2::bytea, $3::bigint WHERE "+
		"(SELECT count(*) FROM (SELECT FROM @schema@.ended_session WHERE principal = sha256($1::bytea) LIMIT $4::bigint) AS known) < $4::bigint "+
		"ON CONFLICT (principal, session) DO UPDATE SET until = GREATEST(ended_session.until, excluded.until)"), []byte(principal), []byte(session), until.UnixMicro(), most)
	if err != nil {
		return false, fmt.Errorf("postgres: end a session: %w", err)
	}
	return added.RowsAffected() > 0, nil
}

// HasEnded implements [taskstore.SessionStore].
func (s *Store) HasEnded(ctx context.Context, principal, session string) (ended bool, err error) {
	err = s.pool.QueryRow(ctx, s.schema.sql("SELECT EXISTS (SELECT FROM @schema@.ended_session WHERE principal = sha256($1::bytea) AND session = $2::bytea)"),
		[]byte(principal), []byte(session)).Scan(&ended)
	if err != nil {
		return false, fmt.Errorf("postgres: look for an ended session: %w", err)
	}
	return ended, nil
}
