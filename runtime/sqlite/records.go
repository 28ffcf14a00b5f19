package sqlite

import (
	"context"
	"database/sql"
	"math"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

const (
	columns = "SELECT seq, asked, id, version, principal, account, tool, idem, phase, outcome, is_error, cancel, message, " +
		"done, total, created, updated, terminal, expires, attempt, tries, worker, timeline, terms, "
	selectBare  = columns + "NULL, NULL, NULL FROM task "
	selectWhole = columns + "coalesce(arguments, (SELECT body FROM arguments WHERE arguments.seq = task.seq)), " +
		"(SELECT body FROM inputs WHERE inputs.seq = task.seq), " +
		"coalesce(result, (SELECT body FROM outcome WHERE outcome.seq = task.seq)) FROM task "

	bareByID            = selectBare + "WHERE id = ?"
	wholeByID           = selectWhole + "WHERE id = ?"
	wholeBySeq          = selectWhole + "WHERE seq = ?"
	barePage            = selectBare + "WHERE principal = ? AND (created, id) > (?, ?) ORDER BY created, id LIMIT ?"
	bareExpired         = selectBare + "WHERE expires <= ? ORDER BY expires LIMIT ?"
	byTombstone         = "SELECT principal FROM tombstone WHERE id = ? AND until > ?"
	oldTombstones       = "SELECT count(*) FROM (SELECT 1 FROM tombstone WHERE until <= ? LIMIT 1)"
	deleteOldTombstones = "DELETE FROM tombstone WHERE id IN (SELECT id FROM tombstone WHERE until <= ? ORDER BY until LIMIT ?)"
)

// row is a record with the two numbers of its row that the cache needs.
type row struct {
	seq, asked int64
	record     mcptask.Record
}

// scanRow reads a row of selectBare or selectWhole.
func scanRow(rows *sql.Rows) (row, error) {
	var found row
	r := &found.record
	var c durable.Columns
	var done, total sql.NullFloat64
	var idem []byte
	if err := rows.Scan(&found.seq, &found.asked, &r.ID, &r.Version, &r.Principal, &r.Account, &r.Tool, &idem, &c.Phase, &c.Outcome, &c.IsError,
		&r.CancelRequested, &r.StatusMessage, &done, &total, &c.Created, &c.Updated, &c.Terminal, &c.Expires, &r.Attempt, &r.Tries, &r.Worker,
		&r.Timeline, &c.Terms, (*[]byte)(&r.Arguments), &c.Inputs, &c.Result); err != nil {
		return found, err
	}
	r.IdempotencyKey, r.Progress = string(idem), mcptask.Progress{Done: floatOf(done), Total: floatOf(total)}
	return found, c.Decode(r)
}

// floatOf returns a stored number. SQLite stores NaN as NULL.
func floatOf(n sql.NullFloat64) float64 {
	if n.Valid {
		return n.Float64
	}
	return math.NaN()
}

// queryRows returns the rows of a query.
func queryRows(ctx context.Context, s *session, query string, args ...any) ([]row, error) {
	var found []row
	err := s.queryContext(ctx, query, func(rows *sql.Rows) error {
		r, err := scanRow(rows)
		if err == nil { // a damaged row must not get into the cache
			found = append(found, r)
		}
		return err
	}, args...)
	return found, err
}

// readRecords returns the records of the rows that find returns.
func (s *Store) readRecords(ctx context.Context, find func(r *session) ([]row, error)) (records []mcptask.Record, err error) {
	var rows []row
	err = s.read(ctx, "read", func(r *session) (err error) {
		rows, err = find(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		records = append(records, rows[i].record)
	}
	return records, nil
}

// readBare returns the records of a query that selects no bodies.
func (s *Store) readBare(ctx context.Context, query string, args ...any) ([]mcptask.Record, error) {
	return s.readRecords(ctx, func(r *session) ([]row, error) { return queryRows(ctx, r, query, args...) })
}

// Create implements [mcptask.Store].
func (s *Store) Create(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	return s.committer.Create(ctx, r, quota)
}

// Update implements [mcptask.Store].
func (s *Store) Update(ctx context.Context, from, to mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	return s.committer.Update(ctx, from, to, quota)
}

// Delete implements [mcptask.Store].
func (s *Store) Delete(ctx context.Context, r mcptask.Record) error {
	return s.committer.Delete(ctx, r)
}

// Get implements [mcptask.Store].
func (s *Store) Get(ctx context.Context, id string) (found mcptask.Record, err error) {
	err = s.read(ctx, "read", func(r *session) error {
		rows, err := queryRows(context.Background(), r, bareByID, []byte(id))
		if err != nil {
			return err
		}
		if len(rows) == 1 {
			if s.cache.Fill(rows[0].seq, rows[0].asked, &rows[0].record) {
				found = rows[0].record
				return nil
			}
			if rows, err = s.readWhole(r, wholeByID, []byte(id)); err != nil {
				return err
			}
		}
		if len(rows) == 1 {
			found = rows[0].record
			return nil
		}
		var principal *string
		if err := r.query(byTombstone, func(rows *sql.Rows) error {
			principal = new("")
			return rows.Scan(principal)
		}, []byte(id), durable.Micros(s.now())); err != nil {
			return err
		}
		if principal == nil {
			return mcptask.ErrNoRecord
		}
		found = mcptask.Record{ID: id, Principal: *principal}
		return mcptask.ErrRecordExpired
	})
	return found, err
}

// readWhole returns whole records and keeps them in the cache.
func (s *Store) readWhole(r *session, query string, args ...any) ([]row, error) {
	rows, err := queryRows(context.Background(), r, query, args...)
	for i := range rows {
		s.cache.Keep(rows[i].seq, rows[i].asked, &rows[i].record)
	}
	return rows, err
}

// List implements [mcptask.Store].
func (s *Store) List(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	return s.readRecords(ctx, func(r *session) ([]row, error) {
		return r.atOneMoment(func() ([]row, error) {
			rows, err := queryRows(context.Background(), r, barePage, []byte(principal), durable.Micros(after.CreatedAt), []byte(after.ID), limit)
			for i := range rows {
				if err == nil && !s.cache.Fill(rows[i].seq, rows[i].asked, &rows[i].record) {
					var whole []row
					if whole, err = s.readWhole(r, wholeBySeq, rows[i].seq); err == nil {
						rows[i] = whole[0]
					}
				}
			}
			return rows, err
		})
	})
}

// atOneMoment runs f, whose queries all see the file as it is at the first one.
func (s *session) atOneMoment(f func() ([]row, error)) ([]row, error) {
	if _, err := s.exec("BEGIN"); err != nil {
		return nil, err
	}
	defer s.rollBack()
	return f()
}

// Expire implements [mcptask.Store]. Its records have no Arguments, no Inputs and no results.
func (s *Store) Expire(ctx context.Context, limit int) ([]mcptask.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	if err := s.trimTombstones(ctx); err != nil {
		return nil, err
	}
	return s.committer.Expire(ctx, limit, s.findExpired)
}

// findExpired returns up to limit expired records, without their bodies.
func (s *Store) findExpired(ctx context.Context, limit int) ([]mcptask.Record, error) {
	return s.readBare(ctx, bareExpired, durable.Micros(s.now()), limit)
}

// tombstoneBatch bounds how many tombstones one call of Expire removes. It is more than one call
// adds, as a rule.
const tombstoneBatch = 1024

// trimTombstones removes some tombstones whose time is over.
func (s *Store) trimTombstones(ctx context.Context) error {
	var old int64
	now := durable.Micros(s.now())
	err := s.read(ctx, "read", func(r *session) (err error) {
		old, err = r.queryInt(oldTombstones, now)
		return err
	})
	if err != nil || old == 0 {
		return err
	}
	return s.write(ctx, "write to", func(w *transaction) error {
		_, err := w.exec(deleteOldTombstones, now, tombstoneBatch)
		return err
	})
}
