package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// rowColumns are the columns of table task that scanRow reads.
const rowColumns = `t.seq, t.asked, t.id, t.version, t.principal, t.account, t.tool, t.idem, t.phase, t.outcome, t.is_error, t.cancel,
	t.terms, t.message, t.done, t.total, t.created, t.updated, t.terminal, t.expires, t.attempt, t.tries, t.worker, t.timeline, t.mark, t.step_bytes, t.worked`

// scanFound reads the rowColumns, and the bodies after them if the row has been selected by
// selectWhole.
func scanFound(from pgx.Row, whole bool) (found durable.Found, err error) {
	r := &found.Record
	var c durable.Columns
	var id, principal, account, tool, idem, message, worker, timeline []byte
	var attempt, tries int64
	columns := []any{
		&found.Seq, &found.Asked, &id, &r.Version, &principal, &account, &tool, &idem, &c.Phase, &c.Outcome, &c.IsError, &r.CancelRequested,
		&c.Terms, &message, &r.Progress.Done, &r.Progress.Total, &c.Created, &c.Updated, &c.Terminal, &c.Expires, &attempt, &tries, &worker, &timeline, &c.Mark, &r.StepBytes, (*int64)(&r.Worked),
	}
	if whole {
		columns = append(columns, (*[]byte)(&r.Arguments), &c.Inputs, &c.Result)
	}
	if err := from.Scan(columns...); err != nil {
		return found, err
	}
	r.ID, r.Principal, r.Account, r.Tool = string(id), string(principal), string(account), string(tool)
	r.IdempotencyKey, r.StatusMessage, r.Claim.Worker = string(idem), string(message), string(worker)
	r.Attempt, r.Tries, r.Timeline = int(attempt), int(tries), taskstore.Timeline(timeline)
	found.Err = c.Decode(r)
	return found, nil
}

// collectBare reads the records of a query that selects the rowColumns.
func collectBare(rows pgx.Rows, err error) ([]durable.Found, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (durable.Found, error) { return scanFound(r, false) })
}

// collectWhole reads the records of a query that begins with selectWhole.
func collectWhole(rows pgx.Rows, err error) ([]durable.Found, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (durable.Found, error) { return scanFound(r, true) })
}

// selectWhole reads whole records.
const selectWhole = `SELECT ` + rowColumns + `, coalesce(t.arguments, a.body), i.body, coalesce(t.result, o.body) FROM @schema@.task t LEFT JOIN @schema@.arguments a USING (seq)
	LEFT JOIN @schema@.inputs i USING (seq) LEFT JOIN @schema@.outcome o USING (seq)`
