package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

// Get implements [mcptask.Store].
func (s *Store) Get(ctx context.Context, id string) (mcptask.Record, error) {
	rows, err := readRows(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+" FROM @schema@.task t WHERE t.id = $1"), []byte(id)))
	if err != nil {
		return mcptask.Record{}, fmt.Errorf("postgres: get: %w", err)
	}
	records, err := s.completeRows(ctx, rows)
	if err != nil {
		return mcptask.Record{}, fmt.Errorf("postgres: get: %w", err)
	}
	if len(records) == 1 {
		return records[0], nil
	}
	tombstones, err := s.pool.Query(ctx, s.schema.sql("SELECT principal FROM @schema@.tombstone WHERE id = $2 AND until > "+clock), s.shift.Load(), []byte(id))
	if err != nil {
		return mcptask.Record{}, fmt.Errorf("postgres: get: %w", err)
	}
	principals, err := pgx.CollectRows(tombstones, pgx.RowTo[[]byte])
	switch {
	case err != nil:
		return mcptask.Record{}, fmt.Errorf("postgres: get: %w", err)
	case len(principals) == 1:
		return mcptask.Record{ID: id, Principal: string(principals[0])}, mcptask.ErrRecordExpired
	}
	return mcptask.Record{}, mcptask.ErrNoRecord
}

// List implements [mcptask.Store].
func (s *Store) List(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	var page []mcptask.Record
	for {
		most := limit - len(page)
		rows, err := readRows(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+` FROM @schema@.task t
			WHERE sha256(t.principal) = sha256($1::bytea) AND t.principal = $1 AND (t.created, t.id) > ($2::bigint, $3::bytea)
			ORDER BY t.created, t.id LIMIT $4`), []byte(principal), durable.Micros(after.CreatedAt), []byte(after.ID), most))
		if err != nil {
			return nil, fmt.Errorf("postgres: list: %w", err)
		}
		records, err := s.completeRows(ctx, rows)
		if err != nil {
			return nil, fmt.Errorf("postgres: list: %w", err)
		}
		page = append(page, records...)
		// Tasks that went meanwhile leave room: a short page would say that the list ends.
		if len(rows) < most || len(records) == len(rows) {
			return page, nil
		}
		last := rows[len(rows)-1].record
		after = mcptask.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

// Scan implements [mcptask.Inspector]. Its records have no Arguments, no Inputs and no results.
func (s *Store) Scan(ctx context.Context, filter mcptask.Filter, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	where, values := durable.JoinConditions(durable.ConditionsOf(filter, after, "sha256(principal) = sha256(?)", "position(? IN message) > 0"))
	for i, v := range values {
		kind := "bytea"
		if _, ok := v.(int64); ok {
			kind = "bigint"
		}
		where = strings.Replace(where, "?", fmt.Sprintf("$%d::%s", i+2, kind), 1)
	}
	rows, err := readRows(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+" FROM @schema@.task t"+where+durable.OrderOf(filter)+" LIMIT $1"), append([]any{limit}, values...)...))
	if err != nil {
		return nil, fmt.Errorf("postgres: scan: %w", err)
	}
	return recordsOf(rows), nil
}

// CountUnfinished implements [mcptask.Inspector].
func (s *Store) CountUnfinished(ctx context.Context) ([]mcptask.Count, error) {
	rows, err := s.pool.Query(ctx, s.schema.sql("SELECT tool, phase, count(*) FROM @schema@.task WHERE phase < 9 GROUP BY tool, phase"))
	if err != nil {
		return nil, fmt.Errorf("postgres: count: %w", err)
	}
	counts, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (c mcptask.Count, err error) {
		var tool []byte
		var phase int64
		if err := r.Scan(&tool, &phase, &c.Count); err != nil {
			return c, err
		}
		c.Tool = string(tool)
		c.Phase, err = durable.PhaseOf(phase)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: count: %w", err)
	}
	return counts, nil
}

// Workers implements [mcptask.Inspector].
func (s *Store) Workers(ctx context.Context) ([]mcptask.WorkerLease, error) {
	var leases []mcptask.WorkerLease
	counts := map[string]int{}
	var b pgx.Batch
	b.Queue(s.schema.sql("SELECT id, until FROM @schema@.worker WHERE until > "+clock), s.shift.Load()).Query(func(rows pgx.Rows) error {
		var worker []byte
		var until int64
		_, err := pgx.ForEachRow(rows, []any{&worker, &until}, func() error {
			leases = append(leases, mcptask.WorkerLease{Worker: string(worker), Until: durable.Time(until)})
			return nil
		})
		return err
	})
	b.Queue(s.schema.sql("SELECT worker, count(*) FROM @schema@.task WHERE phase < 9 GROUP BY worker")).Query(func(rows pgx.Rows) error {
		var worker []byte
		var n int
		_, err := pgx.ForEachRow(rows, []any{&worker, &n}, func() error {
			counts[string(worker)] = n
			return nil
		})
		return err
	})
	if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("postgres: workers: %w", err)
	}
	return durable.CountWorkers(leases, counts), nil
}
