package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Get implements [taskstore.Store].
func (s *Store) Get(ctx context.Context, id string) (taskstore.Record, error) {
	found, err := s.cache.Read(id, func(whole bool) ([]durable.Found, error) {
		if whole {
			return collectWhole(s.pool.Query(ctx, s.schema.sql(selectWhole+" WHERE t.id = $1"), []byte(id)))
		}
		return collectBare(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+" FROM @schema@.task t WHERE t.id = $1"), []byte(id)))
	})
	switch {
	case err != nil:
		return taskstore.Record{}, fmt.Errorf("postgres: get: %w", err)
	case len(found) == 1 && found[0].Err != nil:
		s.sieve.Log(&found[0])
		return taskstore.Record{ID: id, Principal: found[0].Record.Principal}, fmt.Errorf("postgres: get: %w", found[0].Err)
	case len(found) == 1:
		return found[0].Record, nil
	}
	tombstones, err := s.pool.Query(ctx, s.schema.sql("SELECT principal FROM @schema@.tombstone WHERE id = $2 AND until > "+clock), s.shift.Load(), []byte(id))
	if err != nil {
		return taskstore.Record{}, fmt.Errorf("postgres: get: %w", err)
	}
	principals, err := pgx.CollectRows(tombstones, pgx.RowTo[[]byte])
	switch {
	case err != nil:
		return taskstore.Record{}, fmt.Errorf("postgres: get: %w", err)
	case len(principals) == 1:
		return taskstore.Record{ID: id, Principal: string(principals[0])}, taskstore.ErrRecordExpired
	}
	return taskstore.Record{}, taskstore.ErrNoRecord
}

// selectSteps has one row without a step if the task has none.
const selectSteps = "SELECT s.name, s.body FROM @schema@.task t LEFT JOIN @schema@.step s ON s.task = t.seq WHERE t.id = $1"

// Steps implements [taskstore.Store].
func (s *Store) Steps(ctx context.Context, id string) ([]taskstore.Step, error) {
	steps, err := readSteps(ctx, s, selectSteps, id, func(body []byte, name string) (taskstore.Step, error) {
		step := taskstore.Step{Name: name}
		err := durable.DecodeStep(body, &step)
		return step, err
	})
	taskstore.SortSteps(steps)
	return steps, err
}

// selectStepHeads is selectSteps without the values.
var selectStepHeads = strings.Replace(selectSteps, "s.body", "substr(s.body, 1, "+strconv.Itoa(durable.StepHead)+")", 1)

// ListSteps implements [taskstore.Inspector].
func (s *Store) ListSteps(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
	return readSteps(ctx, s, selectStepHeads, id, durable.DecodeStepHead)
}

// readSteps returns what a function decodes of the steps of a task.
func readSteps[T any](ctx context.Context, s *Store, query, id string, decode func(body []byte, name string) (T, error)) ([]T, error) {
	rows, err := s.pool.Query(ctx, s.schema.sql(query), []byte(id))
	if err != nil {
		return nil, fmt.Errorf("postgres: steps: %w", err)
	}
	isStored := false
	var steps []T
	var name, body []byte
	if _, err := pgx.ForEachRow(rows, []any{&name, &body}, func() error {
		if isStored = true; body == nil { // the task has none
			return nil
		}
		step, err := decode(body, string(name))
		steps = append(steps, step)
		return err
	}); err != nil {
		return nil, fmt.Errorf("postgres: steps: %w", err)
	}
	if !isStored {
		return nil, taskstore.ErrNoRecord
	}
	return steps, nil
}

// List implements [taskstore.Store]. Its records have no Arguments, no Inputs and no results.
func (s *Store) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	page, err := s.sieve.Page(after, limit, func(after taskstore.Position) ([]durable.Found, error) {
		return collectBare(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+` FROM @schema@.task t
			WHERE sha256(t.principal) = sha256($1::bytea) AND t.principal = $1 AND (t.created, t.id) > ($2::bigint, $3::bytea)
			ORDER BY t.created, t.id LIMIT $4`), []byte(principal), durable.Micros(after.CreatedAt), []byte(after.ID), limit))
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: list: %w", err)
	}
	return page, nil
}

// Scan implements [taskstore.Inspector]. Its records have no Arguments, no Inputs and no results.
func (s *Store) Scan(ctx context.Context, filter taskstore.Filter, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	page, err := s.sieve.Page(after, limit, func(after taskstore.Position) ([]durable.Found, error) {
		where, values := durable.JoinConditions(durable.ConditionsOf(filter, after, "sha256(principal) = sha256(?)", "position(? IN message) > 0"))
		for i, v := range values {
			kind := "bytea"
			if _, ok := v.(int64); ok {
				kind = "bigint"
			}
			where = strings.Replace(where, "?", fmt.Sprintf("$%d::%s", i+2, kind), 1)
		}
		return collectBare(s.pool.Query(ctx, s.schema.sql("SELECT "+rowColumns+" FROM @schema@.task t"+where+durable.OrderOf(filter)+" LIMIT $1"), append([]any{limit}, values...)...))
	})
	if err != nil {
		return nil, fmt.Errorf("postgres: scan: %w", err)
	}
	return page, nil
}

// CountUnfinished implements [taskstore.Inspector].
func (s *Store) CountUnfinished(ctx context.Context) ([]taskstore.Count, error) {
	rows, err := s.pool.Query(ctx, s.schema.sql("SELECT tool, phase, worker, count(*) FROM @schema@.task WHERE phase < 9 GROUP BY tool, phase, worker"))
	if err != nil {
		return nil, fmt.Errorf("postgres: count: %w", err)
	}
	var counts []taskstore.Count
	var tool, worker []byte
	var phase int64
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&tool, &phase, &worker, &n}, func() error {
		if p, err := durable.PhaseOf(phase); err == nil { // otherwise the tasks cannot be read
			counts = append(counts, taskstore.Count{Tool: string(tool), Phase: p, Worker: string(worker), Count: n})
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("postgres: count: %w", err)
	}
	return counts, nil
}

var countFailed = durable.CountFailed("@schema@.task", "$1")

// CountFailed implements [taskstore.Inspector].
func (s *Store) CountFailed(ctx context.Context, since time.Time) ([]taskstore.Count, error) {
	rows, err := s.pool.Query(ctx, s.schema.sql(countFailed), durable.Micros(since))
	if err != nil {
		return nil, fmt.Errorf("postgres: count: %w", err)
	}
	var counts []taskstore.Count
	var tool []byte
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&tool, &n}, func() error {
		counts = append(counts, taskstore.Count{Tool: string(tool), Phase: taskstore.PhaseDone, Count: n})
		return nil
	}); err != nil {
		return nil, fmt.Errorf("postgres: count: %w", err)
	}
	return counts, nil
}

// Workers implements [taskstore.Inspector].
func (s *Store) Workers(ctx context.Context) ([]taskstore.WorkerLease, error) {
	var leases []taskstore.WorkerLease
	counts := map[string]int{}
	var b pgx.Batch
	b.Queue(s.schema.sql("SELECT id, until FROM @schema@.worker WHERE until > "+clock), s.shift.Load()).Query(func(rows pgx.Rows) error {
		var worker []byte
		var until int64
		_, err := pgx.ForEachRow(rows, []any{&worker, &until}, func() error {
			leases = append(leases, taskstore.WorkerLease{Worker: string(worker), Until: durable.Time(until)})
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
