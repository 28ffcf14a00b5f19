package sqlite

import (
	"context"
	"database/sql"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

// Scan implements [mcptask.Inspector]. A filter that admits few of many records makes it read many.
func (s *Store) Scan(ctx context.Context, filter mcptask.Filter, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	return s.sieve.Page(after, limit, func(after mcptask.Position) ([]durable.Found, error) {
		where, args := durable.JoinConditions(durable.ConditionsOf(filter, after, "principal = ?", "instr(message, ?) > 0"))
		return s.readBare(ctx, selectBare+where+durable.OrderOf(filter)+" LIMIT ?", append(args, limit)...)
	})
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
			if c.Phase, err = durable.PhaseOf(phase); err == nil { // otherwise the tasks cannot be read
				counts = append(counts, c)
			}
			return nil
		})
	})
	return counts, err
}

const (
	selectLeases = "SELECT id, until FROM worker WHERE until > ?"
	countWorkers = "SELECT worker, count(*) FROM task WHERE phase < 9 GROUP BY worker"
)

// Workers implements [mcptask.Inspector].
func (s *Store) Workers(ctx context.Context) ([]mcptask.WorkerLease, error) {
	var leases []mcptask.WorkerLease
	counts := map[string]int{}
	err := s.read(ctx, "read", func(r *session) error {
		if err := r.queryContext(ctx, selectLeases, func(rows *sql.Rows) error {
			var lease mcptask.WorkerLease
			var until int64
			err := rows.Scan(&lease.Worker, &until)
			lease.Until = durable.Time(until)
			leases = append(leases, lease)
			return err
		}, durable.Micros(s.past.Now())); err != nil {
			return err
		}
		return r.queryContext(ctx, countWorkers, func(rows *sql.Rows) error {
			var worker string
			var n int
			err := rows.Scan(&worker, &n)
			counts[worker] = n
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return durable.CountWorkers(leases, counts), nil
}
