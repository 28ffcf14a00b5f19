package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// newStatement makes a statement that writes one row, from its columns, each a name and a type, and a text. In the text,
// @columns@ stands for their names, @row@ for the values, and @set@ for the assignment of all columns but the first. The
// first column is the argument $1, and so on.
func newStatement(columns, text string) string {
	var names, values, sets []string
	for i, column := range strings.Split(columns, ", ") {
		name, kind, _ := strings.Cut(column, " ")
		value := fmt.Sprintf("$%d::%s", i+1, kind)
		names, values, sets = append(names, name), append(values, value), append(sets, name+" = "+value)
	}
	return strings.NewReplacer("@columns@", strings.Join(names, ", "), "@row@", strings.Join(values, ", "), "@set@", strings.Join(sets[1:], ", ")).Replace(text)
}

// The columns of table task that a report changes, and those that other updates change too.
const (
	reportColumns = "id bytea, version bigint, cancel boolean, message bytea, done float8, total float8, updated bigint, terminal bigint, " +
		"attempt bigint, tries bigint, timeline bytea, bytes bigint, mark bytea"
	moveColumns = reportColumns + ", phase bigint, outcome bigint, is_error boolean, expires bigint, worker bytea"
)

// The statements that write.
var (
	insertTask = newStatement(moveColumns+", result bytea, seq bigint, principal bytea, account bytea, tool bytea, idem bytea, name bytea, "+
		"terms bytea, arguments bytea, created bigint", "INSERT INTO @schema@.task (@columns@) VALUES (@row@)")
	// reportTask changes no column that an index has.
	reportTask      = newStatement(reportColumns, updateTask)
	moveTask        = newStatement(moveColumns, updateTask)
	finishTask      = newStatement(moveColumns+", result bytea", updateTask)
	upsertTombstone = "INSERT INTO @schema@.tombstone (id, principal, until) " +
		"VALUES ($1::bytea, $2::bytea, " + databaseClock + " + $3::bigint) ON CONFLICT (id) DO UPDATE SET principal = excluded.principal, until = excluded.until"
	upsertAccount = newStatement("account bytea, stored bigint, unfinished bigint, bytes bigint",
		"INSERT INTO @schema@.account (@columns@) VALUES (@row@) ON CONFLICT (account) DO UPDATE SET @set@")
)

const (
	updateTask      = "UPDATE @schema@.task SET @set@ WHERE id = $1::bytea"
	insertArguments = "INSERT INTO @schema@.arguments (seq, body) VALUES ($1, $2)"
	upsertInputs    = "INSERT INTO @schema@.inputs (seq, body) VALUES ($1, $2) ON CONFLICT (seq) DO UPDATE SET body = excluded.body"
	insertOutcome   = "INSERT INTO @schema@.outcome (seq, body) VALUES ($1, $2)"
	deleteTask      = "DELETE FROM @schema@.task WHERE id = $1"
	deleteArguments = "DELETE FROM @schema@.arguments WHERE seq = $1"
	deleteInputs    = "DELETE FROM @schema@.inputs WHERE seq = $1"
	deleteOutcome   = "DELETE FROM @schema@.outcome WHERE seq = $1"
	deleteTombstone = "DELETE FROM @schema@.tombstone WHERE id = $1"
	deleteAccount   = "DELETE FROM @schema@.account WHERE account = $1"
	insertChange    = "INSERT INTO @schema@.change (at, news) VALUES (" + clock + ", $2)"
)

// queuePlan queues the statements that carry out a plan.
func (s *Store) queuePlan(b *pgx.Batch, plan *durable.Plan) {
	for i := range plan.Writes {
		s.queueWrite(b, &plan.Writes[i])
	}
	for _, a := range plan.Accounts {
		if name := accountName(a.Key); a.Usage == (taskstore.Usage{}) {
			b.Queue(s.schema.sql(deleteAccount), name)
		} else {
			b.Queue(s.schema.sql(upsertAccount), name, a.Usage.Stored, a.Usage.Unfinished, a.Usage.Bytes)
		}
	}
	s.queueChanges(b, plan.Changes)
}

// queueWrite queues the write of one record.
func (s *Store) queueWrite(b *pgx.Batch, w *durable.Write) {
	r, isNew := w.Record, w.Kind == durable.Insert
	if w.Kind == durable.Remove || w.Kind == durable.Bury {
		b.Queue(s.schema.sql(deleteTask), []byte(r.ID))
		for _, sql := range []string{deleteArguments, deleteInputs, deleteOutcome} {
			b.Queue(s.schema.sql(sql), w.Row.Seq)
		}
		if w.Kind == durable.Remove {
			b.Queue(s.schema.sql(deleteTombstone), []byte(r.ID)) // of an earlier task of that ID
		} else {
			b.Queue(s.schema.sql(upsertTombstone), []byte(r.ID), []byte(r.Principal), s.shift.Load()+taskstore.TombstoneFor.Microseconds())
		}
		return
	}
	var arguments, inputs, result, longArguments, longResult []byte
	if isNew || w.Parts.Outcome {
		result, longResult = durable.SplitBody(durable.EncodeOutcome(r.Outcome))
	}
	if isNew {
		arguments, longArguments = durable.SplitBody(r.Arguments)
	}
	if w.Parts.Inputs || isNew && len(r.Inputs) > 0 {
		inputs = durable.EncodeInputs(r.Inputs)
	}
	switch {
	case isNew:
		b.Queue(s.schema.sql(insertTask), append(append(moveValues(w), result), insertValues(w, arguments)...)...)
	case w.Parts.Outcome:
		b.Queue(s.schema.sql(finishTask), append(moveValues(w), result)...)
	case w.Parts.Moved || w.Parts.Expiry:
		b.Queue(s.schema.sql(moveTask), moveValues(w)...)
	default:
		b.Queue(s.schema.sql(reportTask), reportValues(w)...)
	}
	for sql, body := range map[string][]byte{insertArguments: longArguments, upsertInputs: inputs, insertOutcome: longResult} {
		if body != nil {
			b.Queue(s.schema.sql(sql), w.Row.Seq, body)
		}
	}
}

// reportValues returns the values of reportColumns.
func reportValues(w *durable.Write) []any {
	r := w.Record
	return append(make([]any, 0, 32), []byte(r.ID), r.Version, r.CancelRequested, []byte(r.StatusMessage), r.Progress.Done, r.Progress.Total,
		durable.Micros(r.UpdatedAt), durable.Micros(r.TerminalAt), int64(r.Attempt), int64(r.Tries),
		[]byte(r.Timeline), w.Row.Bytes, w.Row.Mark)
}

// moveValues returns the values of moveColumns.
func moveValues(w *durable.Write) []any {
	r := w.Record
	return append(reportValues(w), durable.PhaseNumber(r.Phase), durable.OutcomeNumber(r.Outcome), r.Outcome != nil && r.Outcome.IsError,
		durable.Micros(r.ExpiresAt), []byte(r.Claim.Worker))
}

// insertValues returns the values of the columns that only insertTasks has.
func insertValues(w *durable.Write, arguments []byte) []any {
	r := w.Record
	var name []byte
	if r.IdempotencyKey != "" {
		name = hashName(durable.Name{Principal: r.Principal, Tool: r.Tool, Key: r.IdempotencyKey})
	}
	return []any{
		w.Row.Seq, []byte(r.Principal), []byte(r.Account), []byte(r.Tool), []byte(r.IdempotencyKey), name, durable.EncodeTerms(r), arguments, durable.Micros(r.CreatedAt),
	}
}

// queueChanges queues news for the feeds of all processes.
func (s *Store) queueChanges(b *pgx.Batch, list []taskstore.Change) {
	b.Queue(s.schema.sql(insertChange), s.shift.Load(), durable.EncodeChanges(list))
}
