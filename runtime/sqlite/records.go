package sqlite

import (
	"context"
	"database/sql"
	"math"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	columns = "SELECT seq, asked, id, version, principal, account, tool, idem, phase, outcome, is_error <> 0, cancel <> 0, message, " +
		"done, total, created, updated, terminal, expires, attempt, tries, worker, timeline, terms, mark, step_bytes, worked, "
	selectBare  = columns + "NULL, NULL, NULL FROM task "
	selectWhole = columns + "coalesce(arguments, (SELECT body FROM arguments WHERE arguments.seq = task.seq)), " +
		"(SELECT body FROM inputs WHERE inputs.seq = task.seq), " +
		"coalesce(result, (SELECT body FROM outcome WHERE outcome.seq = task.seq)) FROM task "

	bareByID            = selectBare + "WHERE id = ?"
	wholeByID           = selectWhole + "WHERE id = ?"
	barePage            = selectBare + "WHERE principal = ? AND (created, id) > (?, ?) ORDER BY created, id LIMIT +?"
	bareExpired         = selectBare + "WHERE expires <= ? ORDER BY expires LIMIT +?"
	selectSteps         = "SELECT step.name, step.body FROM task LEFT JOIN step ON step.task = task.seq WHERE task.id = ?"
	byTombstone         = "SELECT principal FROM tombstone WHERE id = ? AND until > ?"
	oldTombstones       = "SELECT count(*) FROM (SELECT 1 FROM tombstone WHERE until <= ? LIMIT 1)"
	deleteOldTombstones = "DELETE FROM tombstone WHERE id IN (SELECT id FROM tombstone WHERE until <= ? ORDER BY until LIMIT +?)"
)

// scanFound reads a row of selectBare or selectWhole.
func scanFound(rows *sql.Rows) (found durable.Found, err error) {
	r := &found.Record
	var c durable.Columns
	var done, total sql.NullFloat64
	var idem []byte
	if err := rows.Scan(&found.Seq, &found.Asked, &r.ID, &r.Version, &r.Principal, &r.Account, &r.Tool, &idem, &c.Phase, &c.Outcome, &c.IsError,
		&r.CancelRequested, &r.StatusMessage, &done, &total, &c.Created, &c.Updated, &c.Terminal, &c.Expires, &r.Attempt, &r.Tries, &r.Claim.Worker,
		&r.Timeline, &c.Terms, &c.Mark, &r.StepBytes, (*int64)(&r.Worked), (*[]byte)(&r.Arguments), &c.Inputs, &c.Result); err != nil {
		return found, err
	}
	r.IdempotencyKey, r.Progress = string(idem), taskstore.Progress{Done: floatOf(done), Total: floatOf(total)}
	found.Err = c.Decode(r)
	return found, nil
}

// floatOf returns a stored number. SQLite stores NaN as NULL.
func floatOf(n sql.NullFloat64) float64 {
	if n.Valid {
		return n.Float64
	}
	return math.NaN()
}

// queryFound returns the records of a query.
func queryFound(ctx context.Context, s *session, query string, args ...any) (found []durable.Found, err error) {
	err = s.queryContext(ctx, query, func(rows *sql.Rows) error {
		f, err := scanFound(rows)
		found = append(found, f)
		return err
	}, args...)
	return found, err
}

// readBare returns the records of a query that selects no bodies.
func (s *Store) readBare(ctx context.Context, query string, args ...any) (found []durable.Found, err error) {
	err = s.read(ctx, "read", func(r *session) (err error) {
		found, err = queryFound(ctx, r, query, args...)
		return err
	})
	return found, err
}

// Create implements [taskstore.Store].
func (s *Store) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	return s.committer.Create(ctx, r, quota)
}

// Update implements [taskstore.Store].
func (s *Store) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	return s.committer.Update(ctx, from, to, quota, steps...)
}

// Delete implements [taskstore.Store].
func (s *Store) Delete(ctx context.Context, r taskstore.Record) error {
	return s.committer.Delete(ctx, r)
}

// Get implements [taskstore.Store].
func (s *Store) Get(ctx context.Context, id string) (record taskstore.Record, err error) {
	err = s.read(ctx, "read", func(r *session) error {
		found, err := s.cache.Read(id, func(whole bool) ([]durable.Found, error) {
			query := bareByID
			if whole {
				query = wholeByID
			}
			return queryFound(context.Background(), r, query, []byte(id))
		})
		if err != nil {
			return err
		}
		switch {
		case len(found) == 0:
			record, err = s.readTombstone(r, id)
			return err
		case found[0].Err != nil:
			s.sieve.Log(&found[0])
			record = taskstore.Record{ID: id, Principal: found[0].Record.Principal}
			return found[0].Err
		}
		record = found[0].Record
		return nil
	})
	return record, err
}

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

// readSteps returns what a function decodes of the steps of a task.
func readSteps[T any](ctx context.Context, s *Store, query, id string, decode func(body []byte, name string) (T, error)) (steps []T, err error) {
	isStored := false
	err = s.read(ctx, "read", func(r *session) error {
		return r.query(query, func(rows *sql.Rows) error {
			var name, body []byte
			isStored = true
			if err := rows.Scan(&name, &body); err != nil || body == nil { // the task has none
				return err
			}
			step, err := decode(body, string(name))
			steps = append(steps, step)
			return err
		}, []byte(id))
	})
	switch {
	case err != nil:
		return nil, err
	case !isStored:
		return nil, taskstore.ErrNoRecord
	}
	return steps, nil
}

// readTombstone returns the rest of an expired record, and ErrRecordExpired. It returns ErrNoRecord if nothing is left.
func (s *Store) readTombstone(r *session, id string) (taskstore.Record, error) {
	var principal *string
	if err := r.query(byTombstone, func(rows *sql.Rows) error {
		principal = new(string)
		return rows.Scan(principal)
	}, []byte(id), durable.Micros(s.past.Now())); err != nil {
		return taskstore.Record{}, err
	}
	if principal == nil {
		return taskstore.Record{}, taskstore.ErrNoRecord
	}
	return taskstore.Record{ID: id, Principal: *principal}, taskstore.ErrRecordExpired
}

// List implements [taskstore.Store]. Its records have no Arguments, no Inputs and no results.
func (s *Store) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	return s.sieve.Page(after, limit, func(after taskstore.Position) ([]durable.Found, error) {
		return s.readBare(ctx, barePage, []byte(principal), durable.Micros(after.CreatedAt), []byte(after.ID), limit)
	})
}

// Expire implements [taskstore.Store]. Its records have no Arguments, no Inputs and no results.
func (s *Store) Expire(ctx context.Context, limit int) ([]taskstore.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	if err := s.trimTombstones(ctx); err != nil {
		return nil, err
	}
	return s.committer.Expire(ctx, limit, s.findExpired)
}

// findExpired returns up to limit expired records, without their bodies.
func (s *Store) findExpired(ctx context.Context, limit int) ([]taskstore.Record, error) {
	found, err := s.readBare(ctx, bareExpired, durable.Micros(s.past.Now()), limit)
	return s.sieve.KeepAll(found), err
}

// tombstoneBatch bounds how many tombstones one call of Expire removes. It is more than one call
// adds, as a rule.
const tombstoneBatch = 1024

// trimTombstones removes some tombstones whose time is over.
func (s *Store) trimTombstones(ctx context.Context) error {
	var old int64
	past := durable.Micros(s.past.Now())
	err := s.read(ctx, "read", func(r *session) (err error) {
		old, err = r.queryInt(oldTombstones, past)
		return err
	})
	if err != nil || old == 0 {
		return err
	}
	return s.write(ctx, "write to", func(w *transaction) error {
		_, err := w.exec(deleteOldTombstones, past, tombstoneBatch)
		return err
	})
}
