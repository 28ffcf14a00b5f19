package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// upkeepEvery is how often Expire also removes other rows that are no longer needed.
	upkeepEvery = 10 * time.Second
	// upkeepBatch bounds how many rows of each kind that removes.
	upkeepBatch = 5000
	// changesFor is how long changes stay for the feeds of other processes.
	changesFor = 2 * time.Minute
	// workersFor is how long the worker of an ended lease stays, for people who look at the tables.
	workersFor = time.Hour
)

// Expire implements [taskstore.Store]. Its records have no Arguments, no Inputs and no results.
func (s *Store) Expire(ctx context.Context, limit int) ([]taskstore.Record, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	if err := s.upkeep(ctx); err != nil {
		return nil, fmt.Errorf("postgres: expire: %w", err)
	}
	gone, err := s.committer.Expire(ctx, limit, s.findExpired)
	if err != nil {
		return nil, fmt.Errorf("postgres: expire: %w", err)
	}
	return gone, nil
}

// findExpired returns up to limit expired records, without their bodies.
func (s *Store) findExpired(ctx context.Context, limit int) ([]taskstore.Record, error) {
	expired, err := collectBare(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+" FROM @schema@.task t WHERE t.expires <= "+clock+
		" ORDER BY t.expires LIMIT $2"), s.shift.Load(), limit))
	return s.sieve.KeepAll(expired), err
}

// upkeep removes old changes, tombstones and workers, if some time has passed since the last upkeep.
func (s *Store) upkeep(ctx context.Context) error {
	now := time.Now().UnixMicro()
	if last := s.keptUp.Load(); now-last < upkeepEvery.Microseconds() && last <= now || !s.keptUp.CompareAndSwap(last, now) {
		return nil
	}
	shift := s.shift.Load()
	return s.transact(ctx, func(*pgx.Batch) {}, func(b *pgx.Batch) bool {
		b.Queue(s.schema.sql(`DELETE FROM @schema@.change WHERE seq IN (SELECT seq FROM @schema@.change WHERE seq <
			coalesce((SELECT seq FROM @schema@.change WHERE at >= `+clock+` - $2::bigint ORDER BY seq LIMIT 1), 9223372036854775807)
			ORDER BY seq LIMIT $3)`), shift, changesFor.Microseconds(), upkeepBatch)
		b.Queue(s.schema.sql(`DELETE FROM @schema@.tombstone WHERE id IN (SELECT id FROM @schema@.tombstone WHERE until <= `+clock+
			` ORDER BY until LIMIT $2)`), shift, upkeepBatch)
		b.Queue(s.schema.sql(`DELETE FROM @schema@.worker WHERE until < `+clock+` - $2::bigint`), shift, workersFor.Microseconds())
		return true
	})
}
