package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A transaction that writes has two round trips. The first begins it, takes the lock that all who write share, and
// reads. The second writes and commits. So transactions go one after the other, and the rows that they read need no
// locks of their own.

const (
	// beginWriting begins with the isolation in which each statement sees the transactions that were committed before
	// it, whatever the database's default is.
	beginWriting = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	// lockWriting takes the lock, $1. PostgreSQL ends a transaction that hears nothing of its process for
	// a while, such as one that was stopped, so that the others go on. A time that the user has set
	// stays.
	//
	// All statements of these transactions find rows by key, whatever their arguments are. So PostgreSQL
	// plans each statement once, with indexes, even if a table was empty then.
	lockWriting = `SELECT set_config('idle_in_transaction_session_timeout',
		CASE current_setting('idle_in_transaction_session_timeout') WHEN '0' THEN '5s' ELSE current_setting('idle_in_transaction_session_timeout') END, true),
	set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	pg_advisory_xact_lock($1::bigint)`
	// lastChange is the number of the last transaction that has written, under the lock.
	lastChange = `SELECT coalesce(max(seq), 0) FROM @schema@.change`

	// endSilent ends the transaction that has the lock $1, if PostgreSQL waits for the rest of a batch and
	// has heard nothing for $2 microseconds. The timeout above is only for the time between batches.
	endSilent = `SELECT pg_terminate_backend(a.pid) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
	WHERE l.locktype = 'advisory' AND l.granted AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
	AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = $1::bigint
	AND a.state = 'active' AND a.wait_event = 'ClientRead' AND a.state_change < clock_timestamp() - $2::bigint * interval '1 microsecond'`
	// mostSilence is how long a process may be silent. Those who wait look several times meanwhile, since a
	// call of the store may not last longer.
	mostSilence = 5 * time.Second

	// idleForTooLong is the code of PostgreSQL's error that ends a process's transaction, see lockWriting.
	idleForTooLong = "25P03"

	// attempts is how often a transaction is tried if it surely wrote nothing.
	attempts = 3
)

// transact runs a transaction. read queues queries into a batch with functions that take their
// rows, and write queues statements. A write that returns false ends the transaction without a
// commit. The transaction is tried again, from read on, if it surely wrote nothing.
func (s *Store) transact(ctx context.Context, read func(*pgx.Batch), write func(*pgx.Batch) bool) (err error) {
	for range attempts {
		var again bool
		if again, err = s.tryTransact(ctx, read, write); !again || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// tryTransact runs a transaction once. again says that a fault of the connection or of others was
// in its way, and that it wrote nothing.
func (s *Store) tryTransact(ctx context.Context, read func(*pgx.Batch), write func(*pgx.Batch) bool) (again bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release() // it closes the connection if that is still in a transaction
	var first, second pgx.Batch
	first.Queue(beginWriting)
	first.Queue(lockWriting, s.schema.lock)
	read(&first)
	if err := s.sendLocking(ctx, conn, &first); err != nil {
		return isPassing(err), err
	}
	if !write(&second) {
		_, err := conn.Exec(ctx, "ROLLBACK")
		return false, err
	}
	queueCommit(&second)
	err = conn.SendBatch(ctx, &second).Close()
	if err != nil && !wroteNothing(err) {
		return false, durable.InDoubt(err)
	}
	return err != nil && isPassing(err), err
}

// sendLocking sends a batch that waits for the lock. If that takes long, it looks whether the process that
// has the lock was stopped, or cut off, before it has sent all of its batch.
func (s *Store) sendLocking(ctx context.Context, conn *pgxpool.Conn, b *pgx.Batch) error {
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer time.AfterFunc(s.mostSilence/5, func() {
		defer guard.Recover(s.logger, "waiting for the lock")
		s.endSilentHolders(waiting)
	}).Stop()
	return conn.SendBatch(ctx, b).Close()
}

// endSilentHolders ends transactions of silent processes until ctx ends.
func (s *Store) endSilentHolders(ctx context.Context) {
	for ctx.Err() == nil {
		s.pool.Exec(ctx, endSilent, s.schema.lock, s.mostSilence.Microseconds()) //nolint:errcheck // it is tried again
		select {
		case <-time.After(s.mostSilence / 5):
		case <-ctx.Done():
		}
	}
}

// queueCommit queues the end of a transaction.
func queueCommit(b *pgx.Batch) {
	b.Queue("COMMIT").Exec(func(tag pgconn.CommandTag) error {
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the database answered COMMIT with %s", tag)
		}
		return nil
	})
}

// wroteNothing reports whether a transaction whose COMMIT was sent surely wrote nothing.
func wroteNothing(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return pgconn.SafeToRetry(err)
	}
	// Severity is in the language of the server, which may be any. A pooler may send nothing else.
	return cmp.Or(refused.SeverityUnlocalized, refused.Severity) == "ERROR" || refused.Code == idleForTooLong
}

// isPassing reports whether an error is that of a connection that was lost, or of a conflict with
// others, so that another attempt may succeed.
func isPassing(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return true // no answer of the server
	}
	switch refused.Code[:min(2, len(refused.Code))] {
	case "08", "40", "57": // connection, rollback (deadlock, serialization), intervention of an operator
		return true
	}
	return refused.Code == idleForTooLong || refused.Code == "55P03" // lock not available
}

// Transact implements [durable.Backend].
func (s *Store) Transact(ctx context.Context, keys durable.Keys, decide func(*durable.State) *durable.Plan) error {
	var state *durable.State
	var plan *durable.Plan
	var last int64
	err := s.transact(ctx,
		func(b *pgx.Batch) {
			state = durable.NewState()
			s.queueState(b, keys, state)
			b.Queue(s.schema.sql(lastChange)).QueryRow(func(r pgx.Row) error { return r.Scan(&last) })
		},
		func(b *pgx.Batch) bool {
			if plan = decide(state); len(plan.Writes) == 0 {
				return false
			}
			plan.SetNumbers(last + 1)
			s.queuePlan(b, plan)
			return true
		})
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if len(plan.Writes) > 0 {
		s.announce()
	}
	return nil
}

// announce lets the feed look for new transactions, here and elsewhere.
func (s *Store) announce() {
	s.follower.poke()
	s.notifier.poke()
}

// queueState queues the queries that read a State.
func (s *Store) queueState(b *pgx.Batch, keys durable.Keys, state *durable.State) {
	if len(keys.Accounts) > 0 {
		names := map[string]string{} // by stored name
		stored := make([][]byte, len(keys.Accounts))
		for i, key := range keys.Accounts {
			stored[i] = accountName(key)
			names[string(stored[i])] = key
		}
		b.Queue(s.schema.sql("SELECT account, stored, unfinished, bytes FROM @schema@.account WHERE account = ANY($1::bytea[])"), stored).
			Query(func(rows pgx.Rows) error {
				var name []byte
				var u taskstore.Usage
				_, err := pgx.ForEachRow(rows, []any{&name, &u.Stored, &u.Unfinished, &u.Bytes}, func() error {
					state.Accounts[names[string(name)]] = u
					return nil
				})
				return err
			})
	}
	b.Queue(s.schema.sql("SELECT id, seq, version, created, bytes, phase >= 9, mark FROM @schema@.task WHERE id = ANY($1::bytea[])"), byteStrings(keys.IDs)).
		Query(func(rows pgx.Rows) error {
			var id []byte
			var r durable.Row
			_, err := pgx.ForEachRow(rows, []any{&id, &r.Seq, &r.Version, &r.Created, &r.Bytes, &r.Done, &r.Mark}, func() error {
				row := r
				state.Rows[string(id)] = &row
				return nil
			})
			return err
		})
	if len(keys.Names) > 0 {
		names := map[string]durable.Name{}
		hashes := make([][]byte, len(keys.Names))
		for i, name := range keys.Names {
			hashes[i] = hashName(name)
			names[string(hashes[i])] = name
		}
		b.Queue(s.schema.sql("SELECT name, id FROM @schema@.task WHERE name = ANY($1::bytea[])"), hashes).
			Query(func(rows pgx.Rows) error {
				var name, id []byte
				_, err := pgx.ForEachRow(rows, []any{&name, &id}, func() error {
					state.Names[names[string(name)]] = string(id)
					return nil
				})
				return err
			})
	}
}

// accountName returns the stored name of an account, which an index allows whatever its length.
func accountName(key string) []byte {
	const longest = 512
	if len(key) <= longest {
		return []byte(key)
	}
	hash := sha256.Sum256([]byte(key))
	return append([]byte("h"), hash[:]...)
}

// hashName returns the stored form of an idempotency key.
func hashName(n durable.Name) []byte {
	var b []byte
	for _, part := range []string{n.Principal, n.Tool, n.Key} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	hash := sha256.Sum256(b)
	return hash[:]
}

// byteStrings returns strings as bytes.
func byteStrings(list []string) [][]byte {
	converted := make([][]byte, len(list))
	for i, s := range list {
		converted[i] = []byte(s)
	}
	return converted
}
