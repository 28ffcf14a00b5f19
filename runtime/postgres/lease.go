package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// findOrphans finds tasks of the tools, $4, that have a worker, which is neither $2 nor has a lease. It leaves
// out the tasks with the numbers $5, which cannot be read. It steps through the index from worker to worker, so
// that its cost depends only on the workers and on the tasks that it finds.
const findOrphans = `WITH RECURSIVE workers(id) AS (
		(SELECT worker FROM @schema@.task WHERE phase < 9 AND worker > '' ORDER BY worker LIMIT 1)
		UNION ALL
		SELECT (SELECT t.worker FROM @schema@.task t WHERE t.phase < 9 AND t.worker > w.id ORDER BY t.worker LIMIT 1)
		FROM workers w WHERE w.id IS NOT NULL
	)
	SELECT t.id FROM workers w CROSS JOIN LATERAL (
		SELECT o.id FROM @schema@.task o WHERE o.worker = w.id AND o.phase < 9 AND o.tool = ANY($4::bytea[]) AND o.seq <> ALL($5::bigint[]) LIMIT $3
	) t WHERE w.id <> $2::bytea
		AND NOT EXISTS (SELECT FROM @schema@.worker l WHERE l.id = w.id AND l.until > ` + clock + `) LIMIT $3`

// readOrphans reads the whole records that findOrphans finds.
const readOrphans = selectWhole + " WHERE t.id IN (" + findOrphans + ")"

// Lease implements [taskstore.Store].
func (s *Store) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
	if limit <= 0 || len(tools) == 0 {
		return nil, ctx.Err()
	}
	var taken []taskstore.Record
	unreadable := []int64{}
	for {
		orphans, err := s.takeOrphans(ctx, worker, lease, tools, limit-len(taken), unreadable)
		switch {
		case err != nil && len(taken) == 0:
			return nil, fmt.Errorf("postgres: lease: %w", err)
		case err != nil:
			return taken, nil //nolint:nilerr // the caller must get those that are taken; the fault shows again
		}
		n := len(unreadable)
		for i := range orphans {
			if orphans[i].Err != nil {
				unreadable = append(unreadable, orphans[i].Seq)
			}
		}
		taken = append(taken, s.sieve.Keep(orphans)...)
		if len(unreadable) == n || len(taken) == limit { // others may wait behind those that cannot be read
			return taken, nil
		}
	}
}

// takeOrphans gives up to limit orphans to a worker, and returns them. It also returns those that cannot be
// read, but does not give them to the worker: a newer process may be able to read them.
func (s *Store) takeOrphans(ctx context.Context, worker string, lease time.Duration, tools []string, limit int, unreadable []int64) ([]durable.Found, error) {
	args := func() []any { return []any{s.shift.Load(), []byte(worker), limit, byteStrings(tools), unreadable} }
	// Mostly there are none, and nobody needs to wait for the lock.
	var isFound bool
	if err := s.pool.QueryRow(ctx, s.schema.sql("SELECT EXISTS ("+findOrphans+")"), args()...).Scan(&isFound); err != nil || !isFound {
		return nil, err
	}
	var orphans []durable.Found
	isTaken := false
	err := s.transact(ctx,
		func(b *pgx.Batch) {
			b.Queue(s.schema.sql(readOrphans), args()...).Query(func(rows pgx.Rows) (err error) {
				orphans, err = collectWhole(rows, nil)
				return err
			})
		},
		func(b *pgx.Batch) bool {
			isTaken = slices.ContainsFunc(orphans, func(f durable.Found) bool { return f.Err == nil })
			if isTaken {
				s.queueLease(b, worker, lease, orphans)
			}
			return isTaken
		})
	if err == nil && isTaken {
		s.announce()
	}
	return orphans, err
}

// queueLease gives those of the orphans that can be read to a worker, and begins its lease.
func (s *Store) queueLease(b *pgx.Batch, worker string, lease time.Duration, orphans []durable.Found) {
	var ids [][]byte
	var changes []taskstore.Change
	for i := range orphans {
		if orphans[i].Err != nil {
			continue
		}
		r := &orphans[i].Record
		r.Claim.Worker = worker
		r.Version++
		ids = append(ids, []byte(r.ID))
		changes = append(changes, r.Change())
	}
	b.Queue(s.schema.sql("UPDATE @schema@.task SET worker = $1, version = version + 1 WHERE id = ANY($2::bytea[])"), []byte(worker), ids)
	b.Queue(s.schema.sql(`INSERT INTO @schema@.worker AS w (id, until) VALUES ($2::bytea, `+clock+` + $3::bigint)
		ON CONFLICT (id) DO UPDATE SET until = greatest(w.until, excluded.until)`), s.shift.Load(), []byte(worker), lease.Microseconds())
	s.queueChanges(b, changes)
}

// Beat implements [taskstore.Store]. It is one statement, and waits for no writer of tasks.
func (s *Store) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	s.show(ctx, s.workers.add(worker, lease))
	var now int64
	var lost [][]byte
	err := s.pool.QueryRow(ctx, s.schema.sql(`WITH beat AS (
			INSERT INTO @schema@.worker (id, until) VALUES ($2::bytea, `+clock+` + $3::bigint) ON CONFLICT (id) DO UPDATE SET until = excluded.until
		)
		SELECT `+clock+`, (SELECT array_agg(h.id) FROM unnest($4::bytea[]) h(id)
			WHERE NOT EXISTS (SELECT FROM @schema@.task t WHERE t.id = h.id AND t.worker = $2::bytea AND t.phase < 9))`),
		s.shift.Load(), []byte(worker), lease.Microseconds(), byteStrings(held)).Scan(&now, &lost)
	if err != nil {
		return taskstore.Heartbeat{}, fmt.Errorf("postgres: beat: %w", err)
	}
	beat := taskstore.Heartbeat{Now: durable.Time(now)}
	for _, id := range lost {
		beat.Lost = append(beat.Lost, string(id))
	}
	return beat, nil
}

// Release implements [taskstore.Store].
func (s *Store) Release(ctx context.Context, worker string) error {
	s.workers.remove(worker)
	isFree := false
	err := s.transact(ctx,
		func(b *pgx.Batch) {
			b.Queue(s.schema.sql("SELECT EXISTS (SELECT FROM @schema@.task WHERE worker = $1 AND phase < 9)"), []byte(worker)).
				QueryRow(func(r pgx.Row) error { return r.Scan(&isFree) })
		},
		func(b *pgx.Batch) bool {
			b.Queue(s.schema.sql("DELETE FROM @schema@.worker WHERE id = $1"), []byte(worker))
			if isFree {
				s.queueChanges(b, []taskstore.Change{{Free: true}})
			}
			return true
		})
	if err != nil {
		return fmt.Errorf("postgres: release: %w", err)
	}
	s.announce()
	return nil
}
