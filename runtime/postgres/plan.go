package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// statement writes rows. A row has a value for each column.
type statement struct {
	// few has the SQL for one row, two rows and so on. Its arguments are the values, row by row.
	few [3]string
	// many is the SQL for any number of rows. Its arguments are arrays, one for each column, which
	// cost PostgreSQL more time.
	many string
}

// newStatement makes a statement from its columns, each a name and a type, and a text. In the text,
// @columns@ stands for their names, @rows@ for the rows, as table u, and @set@ for the assignment of
// all columns but the first.
func newStatement(columns, text string) (st statement) {
	var names, sets, arrays []string
	for i, column := range strings.Split(columns, ", ") {
		name, kind, _ := strings.Cut(column, " ")
		names, sets = append(names, name), append(sets, name+" = u."+name)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, kind))
	}
	list := strings.Join(names, ", ")
	text = strings.NewReplacer("@columns@", list, "@set@", strings.Join(sets[1:], ", ")).Replace(text)
	st.many = strings.ReplaceAll(text, "@rows@", "unnest("+strings.Join(arrays, ", ")+") u("+list+")")
	rows, n := "VALUES ", 0
	for i := range st.few {
		var values []string
		for _, column := range strings.Split(columns, ", ") {
			n++
			values = append(values, fmt.Sprintf("$%d::%s", n, column[strings.Index(column, " ")+1:]))
		}
		rows += "(" + strings.Join(values, ", ") + ")"
		st.few[i] = strings.ReplaceAll(text, "@rows@", "("+rows+") u("+list+")")
		rows += ", "
	}
	return st
}

// The columns of table task that a report changes, and those that other updates change too.
const (
	reportColumns = "id bytea, version bigint, cancel boolean, message bytea, done float8, total float8, updated bigint, terminal bigint, " +
		"attempt bigint, tries bigint, timeline bytea, bytes bigint, asked bigint, mark bytea, step_bytes bigint, worked bigint"
	moveColumns = reportColumns + ", phase bigint, outcome bigint, is_error boolean, expires bigint, worker bytea"
)

// The statements that write. They write nothing unless mayWrite is true.
var (
	insertTasks = newStatement(moveColumns+", result bytea, seq bigint, principal bytea, account bytea, tool bytea, idem bytea, name bytea, "+
		"terms bytea, arguments bytea, created bigint", "INSERT INTO @schema@.task (@columns@) SELECT * FROM @rows@ WHERE "+mayWrite)
	// reportTasks changes no column that an index has.
	reportTasks  = newStatement(reportColumns, updateTasks)
	moveTasks    = newStatement(moveColumns, updateTasks)
	finishTasks  = newStatement(moveColumns+", result bytea", updateTasks)
	insertBodies = newStatement("seq bigint, body bytea", "INSERT INTO @schema@.arguments (@columns@) SELECT * FROM @rows@ WHERE "+mayWrite)
	upsertInputs = newStatement("seq bigint, body bytea", "INSERT INTO @schema@.inputs (@columns@) SELECT * FROM @rows@ WHERE "+mayWrite+
		" ON CONFLICT (seq) DO UPDATE SET body = excluded.body")
	upsertSteps = newStatement("task bigint, name bytea, body bytea", "INSERT INTO @schema@.step (@columns@) SELECT * FROM @rows@ WHERE "+mayWrite+
		" ON CONFLICT (task, name) DO UPDATE SET body = excluded.body")
	insertOutcomes   = newStatement("seq bigint, body bytea", "INSERT INTO @schema@.outcome (@columns@) SELECT * FROM @rows@ WHERE "+mayWrite)
	upsertTombstones = newStatement("id bytea, principal bytea, until bigint", "INSERT INTO @schema@.tombstone (@columns@) "+
		"SELECT u.id, u.principal, "+databaseClock+" + u.until FROM @rows@ WHERE "+mayWrite+
		" ON CONFLICT (id) DO UPDATE SET principal = excluded.principal, until = excluded.until")
	upsertAccounts = newStatement("account bytea, stored bigint, unfinished bigint, bytes bigint", "INSERT INTO @schema@.account (@columns@) "+
		"SELECT * FROM @rows@ WHERE "+mayWrite+" ON CONFLICT (account) DO UPDATE SET stored = excluded.stored, "+
		"unfinished = excluded.unfinished, bytes = excluded.bytes")
)

const (
	updateTasks      = "UPDATE @schema@.task t SET @set@ FROM @rows@ WHERE t.id = u.id AND " + mayWrite
	deleteTasks      = "DELETE FROM @schema@.task WHERE id = ANY($1::bytea[]) AND " + mayWrite
	deleteArguments  = "DELETE FROM @schema@.arguments WHERE seq = ANY($1::bigint[]) AND " + mayWrite
	deleteInputs     = "DELETE FROM @schema@.inputs WHERE seq = ANY($1::bigint[]) AND " + mayWrite
	deleteOutcomes   = "DELETE FROM @schema@.outcome WHERE seq = ANY($1::bigint[]) AND " + mayWrite
	deleteSteps      = "DELETE FROM @schema@.step WHERE task = ANY($1::bigint[]) AND " + mayWrite
	deleteTombstones = "DELETE FROM @schema@.tombstone WHERE id = ANY($1::bytea[]) AND " + mayWrite
	deleteAccounts   = "DELETE FROM @schema@.account WHERE account = ANY($1::bytea[]) AND " + mayWrite
	insertChange     = "INSERT INTO @schema@.change (at, news) SELECT " + clock + ", $2 WHERE " + mayWrite + " RETURNING seq, at"
)

// queuePlan queues the statements that carry out a plan. They set mark to that of the transaction,
// unless they write nothing.
func (s *Store) queuePlan(b *pgx.Batch, plan *durable.Plan, mark *durable.Mark) {
	for rest := plan.Writes; len(rest) > 0; {
		n := countApart(rest)
		s.queueWrites(b, rest[:n])
		rest = rest[n:]
	}
	s.queueAccounts(b, plan.Accounts)
	*mark = durable.Mark{}
	s.queueChanges(b, plan.Changes).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&mark.Number, &mark.At}, func() error { return nil })
		return err
	})
}

// countApart returns how many of the first writes are of different records, so that they may be
// carried out in any order.
func countApart(list []durable.Write) int {
	seen := make(map[string]bool, len(list))
	for i := range list {
		id := list[i].Record.ID
		if seen[id] {
			return i
		}
		seen[id] = true
	}
	return len(list)
}

// queue queues a statement that writes rows, unless there are none.
func (s *Store) queue(b *pgx.Batch, st statement, rows [][]any) {
	switch n := len(rows); {
	case n == 0:
	case n <= len(st.few):
		b.Queue(s.schema.sql(st.few[n-1]), slices.Concat(rows...)...)
	default:
		columns := make([]any, len(rows[0]))
		for i := range columns {
			columns[i] = columnOf(rows, i)
		}
		b.Queue(s.schema.sql(st.many), columns...)
	}
}

// columnOf returns a column of rows.
func columnOf(rows [][]any, i int) any {
	switch rows[0][i].(type) {
	case []byte:
		return collect[[]byte](rows, i)
	case int64:
		return collect[int64](rows, i)
	case float64:
		return collect[float64](rows, i)
	}
	return collect[bool](rows, i)
}

func collect[T any](rows [][]any, i int) []T {
	column := make([]T, len(rows))
	for n, row := range rows {
		column[n] = row[i].(T)
	}
	return column
}

// queueWrites queues writes of different records. Removals come first: the names that they free may be
// taken by others.
func (s *Store) queueWrites(b *pgx.Batch, list []durable.Write) {
	var gone, removed [][]byte
	var seqs []int64
	var buried, inserted, reported, moved, finished, arguments, inputs, outcomes, steps [][]any
	for i := range list {
		w := &list[i]
		r := w.Record
		var result, longResult []byte
		if w.Kind == durable.Insert || w.Parts.Outcome {
			result, longResult = durable.SplitBody(durable.EncodeOutcome(r.Outcome))
		}
		switch w.Kind {
		case durable.Remove, durable.Bury:
			gone, seqs = append(gone, []byte(r.ID)), append(seqs, w.Row.Seq)
			if w.Kind == durable.Remove {
				removed = append(removed, []byte(r.ID))
			} else {
				buried = append(buried, []any{[]byte(r.ID), []byte(r.Principal), s.shift.Load() + taskstore.TombstoneFor.Microseconds()})
			}
			continue
		case durable.Insert:
			w.Row.Seq = s.seqs.take()
			short, long := durable.SplitBody(r.Arguments)
			inserted = append(inserted, append(append(moveValues(w), result), insertValues(w, short)...))
			arguments = appendBody(arguments, w, long)
		case durable.Update:
			switch {
			case w.Parts.Outcome:
				finished = append(finished, append(moveValues(w), result))
			case w.Parts.Moved || w.Parts.Expiry:
				moved = append(moved, moveValues(w))
			default:
				reported = append(reported, reportValues(w))
			}
		}
		for n := range w.Steps {
			steps = append(steps, []any{w.Row.Seq, []byte(w.Steps[n].Name), durable.EncodeStep(&w.Steps[n])})
		}
		outcomes = appendBody(outcomes, w, longResult)
		if w.Parts.Inputs || w.Kind == durable.Insert && len(r.Inputs) > 0 {
			inputs = appendBody(inputs, w, durable.EncodeInputs(r.Inputs))
		}
	}
	if len(gone) > 0 {
		b.Queue(s.schema.sql(deleteTasks), gone)
		for _, sql := range []string{deleteArguments, deleteInputs, deleteOutcomes, deleteSteps} {
			b.Queue(s.schema.sql(sql), seqs)
		}
	}
	if len(removed) > 0 {
		b.Queue(s.schema.sql(deleteTombstones), removed)
	}
	s.queue(b, upsertTombstones, buried)
	s.queue(b, insertTasks, inserted)
	s.queue(b, insertBodies, arguments)
	s.queue(b, reportTasks, reported)
	s.queue(b, moveTasks, moved)
	s.queue(b, finishTasks, finished)
	s.queue(b, upsertInputs, inputs)
	s.queue(b, upsertSteps, steps)
	s.queue(b, insertOutcomes, outcomes)
}

// appendBody appends the row of a body, unless that is nil.
func appendBody(rows [][]any, w *durable.Write, body []byte) [][]any {
	if body == nil {
		return rows
	}
	return append(rows, []any{w.Row.Seq, body})
}

// reportValues returns the values of reportColumns.
func reportValues(w *durable.Write) []any {
	r := w.Record
	return append(make([]any, 0, 32), []byte(r.ID), r.Version, r.CancelRequested, []byte(r.StatusMessage), r.Progress.Done, r.Progress.Total,
		durable.Micros(r.UpdatedAt), durable.Micros(r.TerminalAt), int64(r.Attempt), int64(r.Tries),
		[]byte(r.Timeline), w.Row.Bytes, w.Row.Asked, w.Row.Mark, r.StepBytes, int64(r.Worked))
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

// queueAccounts queues the new values of usages.
func (s *Store) queueAccounts(b *pgx.Batch, list []durable.AccountUsage) {
	var gone [][]byte
	var kept [][]any
	for _, a := range list {
		if name := accountName(a.Key); a.Usage == (taskstore.Usage{}) {
			gone = append(gone, name)
		} else {
			kept = append(kept, []any{name, int64(a.Usage.Stored), int64(a.Usage.Unfinished), a.Usage.Bytes})
		}
	}
	if len(gone) > 0 {
		b.Queue(s.schema.sql(deleteAccounts), gone)
	}
	s.queue(b, upsertAccounts, kept)
}

// queueChanges queues news for the feeds of all processes.
func (s *Store) queueChanges(b *pgx.Batch, list []taskstore.Change) *pgx.QueuedQuery {
	return b.Queue(s.schema.sql(insertChange), s.shift.Load(), durable.EncodeChanges(list))
}
