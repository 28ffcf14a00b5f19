package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

// backend is the Store as the Committer sees it.
type backend struct{ *Store }

// Transact implements [durable.Backend]. A transaction that writes has the file to itself, so
// that it needs no other locks.
func (b backend) Transact(ctx context.Context, keys durable.Keys, decide func(*durable.State) *durable.Plan) error {
	var plan *durable.Plan
	err := b.write(ctx, "write to", func(w *session) ([]mcptask.Change, error) {
		state, err := loadState(w, keys)
		if err != nil {
			return nil, err
		}
		plan = decide(state)
		for i := range plan.Writes {
			if err := b.carryOut(w, &plan.Writes[i]); err != nil {
				return nil, err
			}
		}
		for _, a := range plan.Accounts {
			if err := storeUsage(w, a); err != nil {
				return nil, err
			}
		}
		return plan.Changes, nil
	})
	if err == nil {
		b.cache.Note(plan.Writes)
	}
	return err
}

const (
	selectAccount = "SELECT stored, unfinished, bytes FROM account WHERE key = ?"
	selectRow     = "SELECT seq, version, created, bytes, phase, asked, terms FROM task WHERE id = ?"
	selectName    = "SELECT id FROM task WHERE principal = ? AND tool = ? AND idem = ?"
)

// loadState reads what a transaction decides upon.
func loadState(w *session, keys durable.Keys) (*durable.State, error) {
	state := durable.NewState()
	for _, key := range keys.Accounts {
		if err := w.query(selectAccount, func(rows *sql.Rows) error {
			var u mcptask.Usage
			err := rows.Scan(&u.Stored, &u.Unfinished, &u.Bytes)
			state.Accounts[key] = u
			return err
		}, []byte(key)); err != nil {
			return nil, err
		}
	}
	for _, id := range keys.IDs {
		if err := w.query(selectRow, func(rows *sql.Rows) error {
			var row durable.Row
			var phase int64
			err := rows.Scan(&row.Seq, &row.Version, &row.Created, &row.Bytes, &phase, &row.Asked, &row.Terms)
			row.Done = phase == durable.PhaseDone
			state.Rows[id] = &row
			return err
		}, []byte(id)); err != nil {
			return nil, err
		}
	}
	for _, name := range keys.Names {
		if err := w.query(selectName, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			state.Names[name] = id
			return err
		}, []byte(name.Principal), []byte(name.Tool), []byte(name.Key)); err != nil {
			return nil, err
		}
	}
	return state, nil
}

const (
	upsertAccount = "INSERT INTO account VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET " +
		"stored = excluded.stored, unfinished = excluded.unfinished, bytes = excluded.bytes"
	deleteAccount = "DELETE FROM account WHERE key = ?"
)

func storeUsage(w *session, a durable.AccountUsage) error {
	if a.Usage == (mcptask.Usage{}) {
		_, err := w.exec(deleteAccount, []byte(a.Key))
		return err
	}
	_, err := w.exec(upsertAccount, []byte(a.Key), a.Usage.Stored, a.Usage.Unfinished, a.Usage.Bytes)
	return err
}

const (
	insertTask = "INSERT INTO task (id, version, principal, account, tool, idem, phase, outcome, is_error, cancel, message, " +
		"done, total, created, updated, terminal, expires, attempt, tries, worker, bytes, asked, terms) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	setReport = "UPDATE task SET version = ?, outcome = ?, is_error = ?, cancel = ?, message = ?, done = ?, total = ?, " +
		"updated = ?, terminal = ?, attempt = ?, tries = ?, bytes = ?, asked = ?"
	// updateReport changes no column of an index. So most updates rewrite one row and nothing else.
	updateReport    = setReport + " WHERE seq = ?"
	updateTask      = setReport + ", phase = ?, worker = ?, expires = ? WHERE seq = ?"
	insertArguments = "INSERT INTO arguments VALUES (?, ?)"
	upsertInputs    = "INSERT INTO inputs VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET body = excluded.body"
	insertOutcome   = "INSERT INTO outcome VALUES (?, ?)"
	deleteTask      = "DELETE FROM task WHERE seq = ?"
	deleteTombstone = "DELETE FROM tombstone WHERE id = ?"
	insertTombstone = "INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?)"
)

// carryOut writes one record.
func (b backend) carryOut(w *session, d *durable.Write) error {
	r, row := d.Record, d.Row
	switch d.Kind {
	case durable.Insert:
		return insertRecord(w, r, row)
	case durable.Update:
		return updateRecord(w, r, row, d.Parts)
	}
	if _, err := w.exec(deleteTask, row.Seq); err != nil { // and its bodies
		return err
	}
	if d.Kind == durable.Remove {
		_, err := w.exec(deleteTombstone, []byte(r.ID)) // of an earlier task of that ID
		return err
	}
	_, err := w.exec(insertTombstone, []byte(r.ID), []byte(r.Principal), durable.Micros(b.now().Add(mcptask.TombstoneFor)))
	return err
}

func insertRecord(w *session, r *mcptask.Record, row *durable.Row) error {
	var idem []byte
	if r.IdempotencyKey != "" {
		idem = []byte(r.IdempotencyKey)
	}
	inserted, err := w.exec(insertTask, []byte(r.ID), r.Version, []byte(r.Principal), []byte(r.Account), []byte(r.Tool), idem,
		durable.PhaseNumber(r.Phase), durable.OutcomeNumber(r.Outcome), isError(r), r.CancelRequested, []byte(r.StatusMessage),
		r.Progress.Done, r.Progress.Total, durable.Micros(r.CreatedAt), durable.Micros(r.UpdatedAt), durable.Micros(r.TerminalAt),
		durable.Micros(r.ExpiresAt), r.Attempt, r.Tries, []byte(r.Worker), row.Bytes, row.Asked, row.Terms)
	if err != nil {
		return err
	}
	if row.Seq, err = inserted.LastInsertId(); err != nil {
		return err
	}
	if len(r.Arguments) > 0 {
		if _, err := w.exec(insertArguments, row.Seq, []byte(r.Arguments)); err != nil {
			return err
		}
	}
	return storeBodies(w, r, row, durable.Parts{Inputs: len(r.Inputs) > 0, Outcome: r.Outcome != nil})
}

func updateRecord(w *session, r *mcptask.Record, row *durable.Row, parts durable.Parts) error {
	query := updateReport
	args := make([]any, 0, 17)
	args = append(args, r.Version, durable.OutcomeNumber(r.Outcome), isError(r), r.CancelRequested, []byte(r.StatusMessage),
		r.Progress.Done, r.Progress.Total, durable.Micros(r.UpdatedAt), durable.Micros(r.TerminalAt), r.Attempt, r.Tries, row.Bytes, row.Asked)
	if parts.Indexed {
		query = updateTask
		args = append(args, durable.PhaseNumber(r.Phase), []byte(r.Worker), durable.Micros(r.ExpiresAt))
	}
	updated, err := w.exec(query, append(args, row.Seq)...)
	if err != nil {
		return err
	}
	if n, err := updated.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows have the number of task %q: %w", n, r.ID, err)
	}
	return storeBodies(w, r, row, parts)
}

// storeBodies stores the inputs and the outcome, if they are new.
func storeBodies(w *session, r *mcptask.Record, row *durable.Row, parts durable.Parts) error {
	if parts.Inputs {
		if _, err := w.exec(upsertInputs, row.Seq, durable.EncodeInputs(r.Inputs)); err != nil {
			return err
		}
	}
	if parts.Outcome {
		if _, err := w.exec(insertOutcome, row.Seq, durable.EncodeOutcome(r.Outcome)); err != nil {
			return err
		}
	}
	return nil
}

func isError(r *mcptask.Record) bool { return r.Outcome != nil && r.Outcome.IsError }
