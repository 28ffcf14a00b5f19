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
// locks of their own. A transaction that need not read has one round trip: its statements write nothing if another
// transaction has come between.

const (
	// beginWriting begins with the isolation in which each statement sees the transactions that were committed before
	// it, whatever the database's default is.
	beginWriting = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	// lockWriting takes the lock, $1. PostgreSQL ends a transaction that hears nothing of its process for
	// a while, such as one that was stopped, so that the others go on. A time that the user has set
	// stays.
	//
	// All statements of these transactions find rows by key, whatever their arguments are. So PostgreSQL
	// plans each statement once, with indexes, even if a table was empty then. A table without an index that fits is
	// still scanned, and the plan's cost is then so high that PostgreSQL would compile it. That takes seconds on a busy
	// machine, so jit is off.
	lockWriting = `SELECT set_config('idle_in_transaction_session_timeout',
		CASE current_setting('idle_in_transaction_session_timeout') WHEN '0' THEN '5s' ELSE current_setting('idle_in_transaction_session_timeout') END, true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('mcptask.write', 'on', true), pg_advisory_xact_lock($1::bigint)`
	// ifLast forbids the statements that follow to write, unless the last transaction has the mark $1, $2
	// and no task has one of the names $3 or of the IDs $4. Inserting such a task would fail, and the
	// connection with it.
	ifLast = `SELECT set_config('mcptask.write', 'off', true)
	WHERE NOT EXISTS (SELECT FROM (` + selectLast + `) last WHERE (seq, at) = ($1::bigint, $2::bigint))
	OR EXISTS (SELECT FROM @schema@.task WHERE name = ANY($3::bytea[]))
	OR EXISTS (SELECT FROM @schema@.task WHERE id = ANY($4::bytea[]))`
	selectLast = `SELECT seq, at FROM @schema@.change ORDER BY seq DESC LIMIT 1`
	// mayWrite is true unless ifLast forbids it.
	mayWrite = `current_setting('mcptask.write') = 'on'`

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
func (s *Store) Transact(ctx context.Context, keys durable.Keys, decide func(*durable.State) *durable.Plan) (before, after durable.Mark, err error) {
	var state *durable.State
	var plan *durable.Plan
	err = s.transact(ctx,
		func(b *pgx.Batch) {
			state, before = durable.NewState(), durable.Mark{}
			s.queueState(b, keys, state)
			b.Queue(s.schema.sql(selectLast)).Query(func(rows pgx.Rows) error {
				_, err := pgx.ForEachRow(rows, []any{&before.Number, &before.At}, func() error { return nil })
				return err
			})
		},
		func(b *pgx.Batch) bool {
			if plan = decide(state); len(plan.Writes) == 0 {
				return false
			}
			s.queuePlan(b, plan, &after)
			return true
		})
	if err != nil {
		return before, durable.Mark{}, fmt.Errorf("postgres: %w", err)
	}
	if len(plan.Writes) > 0 {
		s.noteCommit(plan)
	}
	return before, after, nil
}

// Apply implements [durable.Backend].
func (s *Store) Apply(ctx context.Context, last durable.Mark, names []durable.Name, plan *durable.Plan) (after durable.Mark, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return after, fmt.Errorf("postgres: %w", err)
	}
	defer conn.Release()
	if !s.hasSeqs(len(plan.Writes)) {
		return after, durable.ErrStale
	}
	var b pgx.Batch
	b.Queue(beginWriting)
	b.Queue(lockWriting, s.schema.lock)
	hashes := make([][]byte, len(names))
	for i, name := range names {
		hashes[i] = hashName(name)
	}
	b.Queue(s.schema.sql(ifLast), last.Number, last.At, hashes, insertedIDs(plan))
	s.queuePlan(&b, plan, &after)
	queueCommit(&b)
	switch err := s.sendLocking(ctx, conn, &b); {
	case err != nil && wroteNothing(err):
		return durable.Mark{}, fmt.Errorf("postgres: %w", err)
	case err != nil:
		return durable.Mark{}, durable.InDoubt(fmt.Errorf("postgres: %w", err))
	case after == (durable.Mark{}):
		return after, durable.ErrStale
	}
	s.noteCommit(plan)
	return after, nil
}

// insertedIDs returns the IDs of the records that a plan inserts.
func insertedIDs(plan *durable.Plan) [][]byte {
	var ids [][]byte
	for i := range plan.Writes {
		if w := &plan.Writes[i]; w.Kind == durable.Insert {
			ids = append(ids, []byte(w.Record.ID))
		}
	}
	return ids
}

// noteCommit takes note of a committed plan.
func (s *Store) noteCommit(plan *durable.Plan) {
	s.cache.Note(plan.Writes)
	s.announce()
}

// announce lets the feed look for new transactions, here and elsewhere.
func (s *Store) announce() {
	s.follower.poke()
	s.notifier.poke()
}

// queueState queues the queries that read a State.
func (s *Store) queueState(b *pgx.Batch, keys durable.Keys, state *durable.State) {
	if connects := s.connects.Load(); !s.hasSeqs(len(keys.IDs)) {
		b.Queue("SELECT nextval($1::text::regclass)", s.schema.sql("@schema@.task_seq")).QueryRow(func(r pgx.Row) error {
			var next int64
			if err := r.Scan(&next); err != nil {
				return err
			}
			s.seqs = seqRange{next: next, left: seqStep, connects: connects}
			return nil
		})
	}
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
	b.Queue(s.schema.sql("SELECT id, seq, version, created, bytes, phase >= 9, asked, mark FROM @schema@.task WHERE id = ANY($1::bytea[])"), byteStrings(keys.IDs)).
		Query(func(rows pgx.Rows) error {
			var id []byte
			var r durable.Row
			_, err := pgx.ForEachRow(rows, []any{&id, &r.Seq, &r.Version, &r.Created, &r.Bytes, &r.Done, &r.Asked, &r.Mark}, func() error {
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

// seqStep is the increment of the sequence of task numbers.
const seqStep = 1000

// seqRange is the numbers for new tasks that the process may use.
type seqRange struct {
	next, left int64
	// connects is the store's count when the range was taken. A server to which the store has to connect again may have
	// lost the state of the sequence, and give the same numbers to others.
	connects int64
}

// hasSeqs reports whether the process may use n more numbers. Call it after the connection is made.
func (s *Store) hasSeqs(n int) bool {
	return s.seqs.left >= int64(n) && s.seqs.connects == s.connects.Load()
}

// take takes a number.
func (r *seqRange) take() int64 {
	r.next++
	r.left--
	return r.next - 1
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
