package sqlite

import (
	"context"
	"database/sql"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

// Scan implements [mcptask.Inspector]. A filter that admits few of many records makes it read many.
func (s *Store) Scan(ctx context.Context, filter mcptask.Filter, before mcptask.Position, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	conditions := []string{"1"}
	var args []any
	add := func(condition string, values ...any) {
		conditions, args = append(conditions, condition), append(args, values...)
	}
	if filter.Principal != "" {
		add("principal = ?", []byte(filter.Principal))
	}
	if filter.Tool != "" {
		add("tool = ?", []byte(filter.Tool))
	}
	if filter.Worker != "" {
		add("worker = ?", []byte(filter.Worker))
	}
	if filter.Phase != "" {
		add("phase = ?", durable.PhaseNumber(filter.Phase))
	}
	if filter.Outcome != "" {
		add("outcome = ?", durable.OutcomeKindNumber(filter.Outcome))
	}
	if before != (mcptask.Position{}) {
		add("(created, id) < (?, ?)", durable.Micros(before.CreatedAt), []byte(before.ID))
	}
	query := selectBare + "WHERE " + strings.Join(conditions, " AND ") + " ORDER BY created DESC, id DESC LIMIT ?"
	return s.readBare(ctx, query, append(args, limit)...)
}

const countUnfinished = "SELECT tool, phase, count(*) FROM task WHERE phase < 9 GROUP BY tool, phase"

// CountUnfinished implements [mcptask.Inspector].
func (s *Store) CountUnfinished(ctx context.Context) ([]mcptask.Count, error) {
	var counts []mcptask.Count
	err := s.read(ctx, "read", func(r *session) error {
		return r.queryContext(ctx, countUnfinished, func(rows *sql.Rows) error {
			var c mcptask.Count
			var phase int64
			if err := rows.Scan(&c.Tool, &phase, &c.Count); err != nil {
				return err
			}
			var err error
			c.Phase, err = durable.PhaseOf(phase)
			counts = append(counts, c)
			return err
		})
	})
	return counts, err
}
