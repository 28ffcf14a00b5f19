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
	graves, err := s.pool.Query(ctx, s.schema.sql("SELECT principal FROM @schema@.tombstone WHERE id = $2 AND until > "+clock), s.shift.Load(), []byte(id))
	if err != nil {
		return mcptask.Record{}, fmt.Errorf("postgres: get: %w", err)
	}
	principals, err := pgx.CollectRows(graves, pgx.RowTo[[]byte])
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
func (s *Store) Scan(ctx context.Context, filter mcptask.Filter, before mcptask.Position, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	var conditions []string
	args := []any{limit}
	admit := func(condition string, values ...any) {
		for _, v := range values {
			args = append(args, v)
			condition = strings.Replace(condition, "?", fmt.Sprint("$", len(args)), 1)
		}
		conditions = append(conditions, condition)
	}
	if filter.Principal != "" {
		admit("sha256(t.principal) = sha256(?::bytea)", []byte(filter.Principal))
	}
	if filter.Tool != "" {
		admit("t.tool = ?", []byte(filter.Tool))
	}
	if filter.Worker != "" {
		admit("t.worker = ?", []byte(filter.Worker))
	}
	if filter.Phase != "" {
		admit("t.phase = ?::bigint", durable.PhaseNumber(filter.Phase))
	}
	if filter.Outcome != "" {
		admit("t.outcome = ?::bigint", durable.OutcomeKindNumber(filter.Outcome))
	}
	if before != (mcptask.Position{}) {
		admit("(t.created, t.id) < (?::bigint, ?::bytea)", durable.Micros(before.CreatedAt), []byte(before.ID))
	}
	where := ""
	if len(conditions) > 0 {
		where = "WHERE " + strings.Join(conditions, " AND ")
	}
	rows, err := readRows(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+" FROM @schema@.task t "+where+" ORDER BY t.created DESC, t.id DESC LIMIT $1"), args...))
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
