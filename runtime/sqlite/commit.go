package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// backend is the Store as the Committer sees it.
type backend struct{ *Store }

// Transact implements [durable.Backend]. A transaction that writes has the file to itself, so
// that it needs no other locks.
func (b backend) Transact(ctx context.Context, keys durable.Keys, decide func(*durable.State) *durable.Plan) (before, after durable.Mark, err error) {
	var plan *durable.Plan
	err = b.write(ctx, "write to", func(w *transaction) error {
		state, err := loadState(w.session, keys)
		if err != nil {
			return err
		}
		if plan = decide(state); len(plan.Writes) == 0 {
			return nil
		}
		n, err := w.record(plan.Changes)
		if err != nil {
			return err
		}
		before, after = durable.Mark{Number: n - 1}, durable.Mark{Number: n}
		return b.carryOut(w.session, n, plan)
	})
	if err == nil {
		b.cache.Note(plan.Writes)
	}
	return before, after, err
}

// Apply implements [durable.Backend].
func (b backend) Apply(ctx context.Context, last durable.Mark, names []durable.Name, plan *durable.Plan) (after durable.Mark, err error) {
	err = b.write(ctx, "write to", func(w *transaction) error {
		n, err := w.record(plan.Changes)
		if err != nil {
			return err
		}
		after = durable.Mark{Number: n}
		state, err := loadState(w.session, durable.Keys{Names: names})
		if err == nil && (n != last.Number+1 || len(state.Names) > 0) {
			err = durable.ErrStale
		}
		if err != nil {
			return err
		}
		return b.carryOut(w.session, n, plan)
	})
	if err == nil {
		b.cache.Note(plan.Writes)
	}
	return after, err
}

// carryOut writes a plan, in the transaction with the number n.
func (b backend) carryOut(w *session, n int64, plan *durable.Plan) error {
	for i := range plan.Writes {
		d := &plan.Writes[i]
		if d.Kind == durable.Insert {
			d.Row.Seq = n<<seqBits + int64(i)
		}
		if err := b.writeRecord(w, d); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(plan.Accounts, mostAccounts) {
		if err := storeUsage(w, some); err != nil {
			return err
		}
	}
	return nil
}

// seqBits is how many bits of a task's number tell tasks of one transaction apart.
const seqBits = 16

const (
	selectAccount = "SELECT stored, unfinished, bytes FROM account WHERE key = ?"
	selectRow     = "SELECT seq, version, created, bytes, phase, asked, mark FROM task WHERE id = ?"
	selectName    = "SELECT id FROM task WHERE principal = ? AND tool = ? AND idem = ?"
)

// loadState reads the state that a transaction decides upon.
func loadState(w *session, keys durable.Keys) (*durable.State, error) {
	state := durable.NewState()
	for _, key := range keys.Accounts {
		if err := w.query(selectAccount, func(rows *sql.Rows) error {
			var u taskstore.Usage
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
			err := rows.Scan(&row.Seq, &row.Version, &row.Created, &row.Bytes, &phase, &row.Asked, &row.Mark)
			row.Done = phase >= durable.PhaseDone
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

// mostAccounts is how many accounts one statement stores. One task has up to four.
const mostAccounts = 4

// upsertAccounts are the statements that store one to four accounts.
var upsertAccounts = func() (statements [mostAccounts]string) {
	for i := range statements {
		statements[i] = "INSERT INTO account VALUES (?, ?, ?, ?)" + strings.Repeat(", (?, ?, ?, ?)", i) + " ON CONFLICT (key) DO UPDATE SET " +
			"stored = excluded.stored, unfinished = excluded.unfinished, bytes = excluded.bytes"
	}
	return statements
}()

const deleteAccount = "DELETE FROM account WHERE key = ?"

// storeUsage stores up to mostAccounts usages.
func storeUsage(w *session, accounts []durable.AccountUsage) error {
	args := make([]any, 0, 4*mostAccounts)
	for _, a := range accounts {
		if a.Usage != (taskstore.Usage{}) {
			args = append(args, []byte(a.Key), a.Usage.Stored, a.Usage.Unfinished, a.Usage.Bytes)
			continue
		}
		if _, err := w.exec(deleteAccount, []byte(a.Key)); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := w.exec(upsertAccounts[len(args)/4-1], args...)
	return err
}

const (
	insertTask = "INSERT INTO task (seq, id, version, principal, account, tool, idem, phase, outcome, is_error, cancel, message, " +
		"done, total, created, updated, terminal, expires, attempt, tries, worker, timeline, bytes, asked, mark, step_bytes, worked, terms, arguments, result) " +
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	setReport = "UPDATE task SET version = ?, outcome = ?, is_error = ?, cancel = ?, message = ?, done = ?, total = ?, " +
		"updated = ?, terminal = ?, attempt = ?, tries = ?, timeline = ?, bytes = ?, asked = ?, mark = ?, step_bytes = ?, worked = ?"
	// updateReport changes no column of an index. So most updates rewrite one row and nothing else.
	updateReport    = setReport + " WHERE seq = ?"
	updateTask      = setReport + ", phase = ?, worker = ? WHERE seq = ?"
	updateEnd       = setReport + ", phase = ?, worker = ?, result = ? WHERE seq = ?"
	updateExpiry    = "UPDATE task SET expires = ? WHERE seq = ?"
	insertArguments = "INSERT INTO arguments VALUES (?, ?)"
	upsertInputs    = "INSERT INTO inputs VALUES (?, ?) ON CONFLICT (seq) DO UPDATE SET body = excluded.body"
	upsertStep      = "INSERT INTO step VALUES (?, ?, ?) ON CONFLICT (task, name) DO UPDATE SET body = excluded.body"
	insertOutcome   = "INSERT INTO outcome VALUES (?, ?)"
	deleteTask      = "DELETE FROM task WHERE seq = ?"
	deleteTombstone = "DELETE FROM tombstone WHERE id = ?"
	insertTombstone = "INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?)"
)

// writeRecord writes one record.
func (b backend) writeRecord(w *session, d *durable.Write) error {
	r, row := d.Record, d.Row
	switch d.Kind {
	case durable.Insert:
		return insertRecord(w, r, row)
	case durable.Update:
		if err := updateRecord(w, r, row, d.Parts); err != nil {
			return err
		}
		return storeSteps(w, row.Seq, d.Steps)
	}
	if _, err := w.exec(deleteTask, row.Seq); err != nil { // and its bodies
		return err
	}
	if d.Kind == durable.Remove {
		_, err := w.exec(deleteTombstone, []byte(r.ID)) // of an earlier task of that ID
		return err
	}
	_, err := w.exec(insertTombstone, []byte(r.ID), []byte(r.Principal), durable.Micros(b.now().Add(taskstore.TombstoneFor)))
	return err
}

func insertRecord(w *session, r *taskstore.Record, row *durable.Row) error {
	var idem []byte
	if r.IdempotencyKey != "" {
		idem = []byte(r.IdempotencyKey)
	}
	arguments, longArguments := durable.SplitBody(r.Arguments)
	result, longResult := durable.SplitBody(durable.EncodeOutcome(r.Outcome))
	if _, err := w.exec(insertTask, row.Seq, []byte(r.ID), r.Version, []byte(r.Principal), []byte(r.Account), []byte(r.Tool), idem,
		durable.PhaseNumber(r.Phase), durable.OutcomeNumber(r.Outcome), isError(r), r.CancelRequested, []byte(r.StatusMessage),
		r.Progress.Done, r.Progress.Total, durable.Micros(r.CreatedAt), durable.Micros(r.UpdatedAt), durable.Micros(r.TerminalAt),
		durable.Micros(r.ExpiresAt), r.Attempt, r.Tries, []byte(r.Claim.Worker), []byte(r.Timeline), row.Bytes, row.Asked, row.Mark, r.StepBytes, int64(r.Worked), durable.EncodeTerms(r),
		arguments, result); err != nil {
		return err
	}
	var inputs []byte
	if len(r.Inputs) > 0 {
		inputs = durable.EncodeInputs(r.Inputs)
	}
	return storeBodies(w, row.Seq, longArguments, inputs, longResult)
}

func updateRecord(w *session, r *taskstore.Record, row *durable.Row, parts durable.Parts) error {
	var inputs, result, longResult []byte
	if parts.Inputs {
		inputs = durable.EncodeInputs(r.Inputs)
	}
	query := updateReport
	args := make([]any, 0, 21)
	args = append(args, r.Version, durable.OutcomeNumber(r.Outcome), isError(r), r.CancelRequested, []byte(r.StatusMessage),
		r.Progress.Done, r.Progress.Total, durable.Micros(r.UpdatedAt), durable.Micros(r.TerminalAt), r.Attempt, r.Tries,
		[]byte(r.Timeline), row.Bytes, row.Asked, row.Mark, r.StepBytes, int64(r.Worked))
	switch {
	case parts.Outcome:
		query = updateEnd
		result, longResult = durable.SplitBody(durable.EncodeOutcome(r.Outcome))
		args = append(args, durable.PhaseNumber(r.Phase), []byte(r.Claim.Worker), result)
	case parts.Moved:
		query = updateTask
		args = append(args, durable.PhaseNumber(r.Phase), []byte(r.Claim.Worker))
	}
	updated, err := w.exec(query, append(args, row.Seq)...)
	if err != nil {
		return err
	}
	if n, err := updated.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows have the number of task %q: %w", n, r.ID, err)
	}
	if parts.Expiry {
		if _, err := w.exec(updateExpiry, durable.Micros(r.ExpiresAt), row.Seq); err != nil {
			return err
		}
	}
	return storeBodies(w, row.Seq, nil, inputs, longResult)
}

// storeBodies stores the bodies that have tables of their own, and are not nil.
func storeBodies(w *session, seq int64, arguments, inputs, outcome []byte) error {
	for _, b := range []struct {
		query string
		body  []byte
	}{{insertArguments, arguments}, {upsertInputs, inputs}, {insertOutcome, outcome}} {
		if b.body == nil {
			continue
		}
		if _, err := w.exec(b.query, seq, b.body); err != nil {
			return err
		}
	}
	return nil
}

// storeSteps stores steps of the task with a number.
func storeSteps(w *session, seq int64, steps []taskstore.Step) error {
	for i := range steps {
		if _, err := w.exec(upsertStep, seq, []byte(steps[i].Name), durable.EncodeStep(&steps[i])); err != nil {
			return err
		}
	}
	return nil
}

func isError(r *taskstore.Record) bool { return r.Outcome != nil && r.Outcome.IsError }
