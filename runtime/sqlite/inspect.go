package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Scan implements [taskstore.Inspector]. A filter that admits few of many records makes it read many.
func (s *Store) Scan(ctx context.Context, filter taskstore.Filter, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	return s.sieve.Page(after, limit, func(after taskstore.Position) ([]durable.Found, error) {
		where, args := durable.JoinConditions(durable.ConditionsOf(filter, after, "principal = ?", "instr(message, ?) > 0"))
		return s.readBare(ctx, selectBare+where+durable.OrderOf(filter)+" LIMIT +?", append(args, limit)...)
	})
}

const countUnfinished = "SELECT tool, phase, worker, count(*) FROM task WHERE phase < 9 GROUP BY tool, phase, worker"

// CountUnfinished implements [taskstore.Inspector].
func (s *Store) CountUnfinished(ctx context.Context) ([]taskstore.Count, error) {
	var counts []taskstore.Count
	err := s.read(ctx, "read", func(r *session) error {
		return r.queryContext(ctx, countUnfinished, func(rows *sql.Rows) error {
			var c taskstore.Count
			var phase int64
			if err := rows.Scan(&c.Tool, &phase, &c.Worker, &c.Count); err != nil {
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

var countFailed = durable.CountFailed("task", "?")

// CountFailed implements [taskstore.Inspector].
func (s *Store) CountFailed(ctx context.Context, since time.Time) ([]taskstore.Count, error) {
	var counts []taskstore.Count
	err := s.read(ctx, "read", func(r *session) error {
		return r.queryContext(ctx, countFailed, func(rows *sql.Rows) error {
			c := taskstore.Count{Phase: taskstore.PhaseDone}
			err := rows.Scan(&c.Tool, &c.Count)
			counts = append(counts, c)
			return err
		}, durable.Micros(since))
	})
	return counts, err
}

const (
	selectLeases = "SELECT id, until FROM worker WHERE until > ?"
	countWorkers = "SELECT worker, count(*) FROM task WHERE phase < 9 GROUP BY worker"
)

// Workers implements [taskstore.Inspector].
func (s *Store) Workers(ctx context.Context) ([]taskstore.WorkerLease, error) {
	var leases []taskstore.WorkerLease
	counts := map[string]int{}
	err := s.read(ctx, "read", func(r *session) error {
		if err := r.queryContext(ctx, selectLeases, func(rows *sql.Rows) error {
			var lease taskstore.WorkerLease
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

// selectStepHeads is selectSteps without the values.
var selectStepHeads = strings.Replace(selectSteps, "step.body", "substr(step.body, 1, "+strconv.Itoa(durable.StepHead)+")", 1)

// ListSteps implements [taskstore.Inspector].
func (s *Store) ListSteps(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
	return readSteps(ctx, s, selectStepHeads, id, durable.DecodeStepHead)
}
