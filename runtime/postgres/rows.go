package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

// rowColumns are the columns of table task that scanRow reads.
const rowColumns = `t.seq, t.asked, t.id, t.version, t.principal, t.account, t.tool, t.idem, t.phase, t.outcome, t.is_error, t.cancel,
	t.terms, t.message, t.done, t.total, t.created, t.updated, t.terminal, t.expires, t.attempt, t.tries, t.worker, t.timeline`

// row is a record without its arguments, its inputs and the content of its outcome, as table task has it.
type row struct {
	record     mcptask.Record
	seq, asked int64
}

// scanRow reads the rowColumns, and the bodies after them if the row has been selected by
// selectWhole.
func scanRow(from pgx.Row, whole bool) (row, error) {
	var w row
	r := &w.record
	var c durable.Columns
	var id, principal, account, tool, idem, message, worker, timeline []byte
	var attempt, tries int64
	columns := []any{
		&w.seq, &w.asked, &id, &r.Version, &principal, &account, &tool, &idem, &c.Phase, &c.Outcome, &c.IsError, &r.CancelRequested,
		&c.Terms, &message, &r.Progress.Done, &r.Progress.Total, &c.Created, &c.Updated, &c.Terminal, &c.Expires, &attempt, &tries, &worker, &timeline,
	}
	if whole {
		columns = append(columns, (*[]byte)(&r.Arguments), &c.Inputs, &c.Result)
	}
	if err := from.Scan(columns...); err != nil {
		return w, err
	}
	r.ID, r.Principal, r.Account, r.Tool = string(id), string(principal), string(account), string(tool)
	r.IdempotencyKey, r.StatusMessage, r.Worker = string(idem), string(message), string(worker)
	r.Attempt, r.Tries, r.Timeline = int(attempt), int(tries), mcptask.Timeline(timeline)
	return w, c.Decode(r)
}

// readRows reads the rows of a query that selects the rowColumns.
func readRows(rows pgx.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (row, error) { return scanRow(r, false) })
}

// recordsOf returns the records of rows as they are.
func recordsOf(rows []row) []mcptask.Record {
	records := make([]mcptask.Record, len(rows))
	for i := range rows {
		records[i] = rows[i].record
	}
	return records
}

const (
	// selectWhole reads whole records.
	selectWhole = `SELECT ` + rowColumns + `, coalesce(t.arguments, a.body), i.body, coalesce(t.result, o.body) FROM @schema@.task t LEFT JOIN @schema@.arguments a USING (seq)
	LEFT JOIN @schema@.inputs i USING (seq) LEFT JOIN @schema@.outcome o USING (seq)`
	// readWhole reads whole records by ID.
	readWhole = selectWhole + ` WHERE t.id = ANY($1::bytea[])`
)

// completeRows returns whole records in the order of rows. What the cache lacks is read from the
// database, and may be newer. Records that are gone are left out.
func (s *Store) completeRows(ctx context.Context, rows []row) ([]mcptask.Record, error) {
	records := make([]mcptask.Record, 0, len(rows))
	lacking := map[string]int{} // the index in records, by ID
	var ids [][]byte
	for i := range rows {
		r := &rows[i].record
		if !s.cache.Fill(rows[i].seq, rows[i].asked, r) {
			lacking[r.ID] = len(records)
			ids = append(ids, []byte(r.ID))
		}
		records = append(records, *r)
	}
	if len(ids) == 0 {
		return records, nil
	}
	found, err := s.pool.Query(ctx, s.schema.sql(readWhole), ids)
	if err != nil {
		return nil, err
	}
	whole, err := pgx.CollectRows(found, func(r pgx.CollectableRow) (row, error) { return scanRow(r, true) })
	if err != nil {
		return nil, err
	}
	for i := range whole {
		w := &whole[i]
		at, ok := lacking[w.record.ID]
		if !ok || !w.record.CreatedAt.Equal(records[at].CreatedAt) || w.record.Principal != records[at].Principal {
			continue // a new record has the ID
		}
		s.cache.Keep(w.seq, w.asked, &w.record)
		records[at] = w.record
		delete(lacking, w.record.ID)
	}
	kept := records[:0]
	for i, r := range records {
		if at, gone := lacking[r.ID]; !gone || at != i {
			kept = append(kept, r)
		}
	}
	return kept, nil
}
