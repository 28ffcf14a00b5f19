package postgres

import (
	"github.com/jackc/pgx/v5"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

// The statements that write. Each takes arrays, so that it writes any number of rows. None writes
// unless mayWrite.
const (
	insertTasks = `INSERT INTO @schema@.task (seq, id, version, principal, account, tool, idem, name, terms, phase, outcome, is_error, cancel, message,
	done, total, created, updated, terminal, expires, attempt, tries, worker, bytes, asked)
	SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bytea[],
	$10::smallint[], $11::smallint[], $12::boolean[], $13::boolean[], $14::bytea[], $15::float8[], $16::float8[], $17::bigint[], $18::bigint[],
	$19::bigint[], $20::bigint[], $21::bigint[], $22::bigint[], $23::bytea[], $24::bigint[], $25::bigint[]) WHERE ` + mayWrite

	insertArguments = `INSERT INTO @schema@.arguments (seq, body) SELECT * FROM unnest($1::bigint[], $2::bytea[]) WHERE ` + mayWrite

	upsertInputs = `INSERT INTO @schema@.inputs (seq, body) SELECT * FROM unnest($1::bigint[], $2::bytea[])
	WHERE ` + mayWrite + ` ON CONFLICT (seq) DO UPDATE SET body = excluded.body`

	insertOutcomes = `INSERT INTO @schema@.outcome (seq, body) SELECT * FROM unnest($1::bigint[], $2::bytea[]) WHERE ` + mayWrite

	// reportTasks changes no column that an index has.
	reportTasks = `UPDATE @schema@.task t SET version = u.version, cancel = u.cancel, message = u.message, done = u.done, total = u.total,
	updated = u.updated, terminal = u.terminal, attempt = u.attempt, tries = u.tries, bytes = u.bytes, asked = u.asked
	FROM unnest($1::bytea[], $2::bigint[], $3::boolean[], $4::bytea[], $5::float8[], $6::float8[], $7::bigint[], $8::bigint[], $9::bigint[],
	$10::bigint[], $11::bigint[], $12::bigint[]) u(id, version, cancel, message, done, total, updated, terminal, attempt, tries, bytes, asked)
	WHERE t.id = u.id AND ` + mayWrite

	moveTasks = `UPDATE @schema@.task t SET version = u.version, cancel = u.cancel, message = u.message, done = u.done, total = u.total,
	updated = u.updated, terminal = u.terminal, attempt = u.attempt, tries = u.tries, bytes = u.bytes, asked = u.asked,
	phase = u.phase, outcome = u.outcome, is_error = u.is_error, expires = u.expires, worker = u.worker
	FROM unnest($1::bytea[], $2::bigint[], $3::boolean[], $4::bytea[], $5::float8[], $6::float8[], $7::bigint[], $8::bigint[], $9::bigint[],
	$10::bigint[], $11::bigint[], $12::bigint[], $13::smallint[], $14::smallint[], $15::boolean[], $16::bigint[], $17::bytea[])
	u(id, version, cancel, message, done, total, updated, terminal, attempt, tries, bytes, asked, phase, outcome, is_error, expires, worker)
	WHERE t.id = u.id AND ` + mayWrite

	deleteTasks      = `DELETE FROM @schema@.task WHERE id = ANY($1::bytea[]) AND ` + mayWrite
	deleteArguments  = `DELETE FROM @schema@.arguments WHERE seq = ANY($1::bigint[]) AND ` + mayWrite
	deleteInputs     = `DELETE FROM @schema@.inputs WHERE seq = ANY($1::bigint[]) AND ` + mayWrite
	deleteOutcomes   = `DELETE FROM @schema@.outcome WHERE seq = ANY($1::bigint[]) AND ` + mayWrite
	deleteTombstones = `DELETE FROM @schema@.tombstone WHERE id = ANY($1::bytea[]) AND ` + mayWrite
	upsertTombstones = `INSERT INTO @schema@.tombstone (id, principal, until) SELECT u.id, u.principal, ` + clock + ` + $2::bigint
	FROM unnest($3::bytea[], $4::bytea[]) u(id, principal) WHERE ` + mayWrite + ` ON CONFLICT (id) DO UPDATE SET principal = excluded.principal, until = excluded.until`
	upsertAccounts = `INSERT INTO @schema@.account (account, stored, unfinished, bytes) SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[])
	WHERE ` + mayWrite + ` ON CONFLICT (account) DO UPDATE SET stored = excluded.stored, unfinished = excluded.unfinished, bytes = excluded.bytes`
	deleteAccounts = `DELETE FROM @schema@.account WHERE account = ANY($1::bytea[]) AND ` + mayWrite
	insertChange   = `INSERT INTO @schema@.change (at, news) SELECT ` + clock + `, $2 WHERE ` + mayWrite + ` RETURNING seq, at`
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

// queue queues a statement unless there are no rows for it.
func (s *Store) queue(b *pgx.Batch, sql string, rows int, args ...any) {
	if rows > 0 {
		b.Queue(s.schema.sql(sql), args...)
	}
}

// queueWrites queues writes of different records. Removals come first: the names that they free may be
// taken by others.
func (s *Store) queueWrites(b *pgx.Batch, list []durable.Write) {
	var removed, buried removals
	var inserted inserts
	var reported, moved updates
	var arguments, inputs, outcomes bodies
	for i := range list {
		w := &list[i]
		r := w.Record
		switch w.Kind {
		case durable.Remove:
			removed.add(w)
		case durable.Bury:
			buried.add(w)
		case durable.Insert:
			w.Row.Seq = s.seqs.take()
			inserted.add(w)
			if len(r.Arguments) > 0 {
				arguments.add(w, r.Arguments)
			}
		case durable.Update:
			if w.Parts.Moved || w.Parts.Expiry || w.Parts.Outcome {
				moved.add(w)
			} else {
				reported.add(w)
			}
		}
		isWritten := w.Kind == durable.Insert || w.Kind == durable.Update
		if isWritten && (w.Parts.Inputs || w.Kind == durable.Insert && len(r.Inputs) > 0) {
			inputs.add(w, durable.EncodeInputs(r.Inputs))
		}
		if isWritten && r.Outcome != nil && (w.Parts.Outcome || w.Kind == durable.Insert) {
			outcomes.add(w, durable.EncodeOutcome(r.Outcome))
		}
	}
	for _, gone := range []removals{removed, buried} {
		s.queue(b, deleteTasks, len(gone.ids), gone.ids)
		s.queue(b, deleteArguments, len(gone.ids), gone.seqs)
		s.queue(b, deleteInputs, len(gone.ids), gone.seqs)
		s.queue(b, deleteOutcomes, len(gone.ids), gone.seqs)
	}
	s.queue(b, deleteTombstones, len(removed.ids), removed.ids)
	s.queue(b, upsertTombstones, len(buried.ids), s.shift.Load(), mcptask.TombstoneFor.Microseconds(), buried.ids, buried.principals)
	s.queue(b, insertTasks, len(inserted.ids), inserted.args()...)
	s.queue(b, insertArguments, len(arguments.seqs), arguments.seqs, arguments.contents)
	s.queue(b, reportTasks, len(reported.ids), reported.reportArgs()...)
	s.queue(b, moveTasks, len(moved.ids), moved.moveArgs()...)
	s.queue(b, upsertInputs, len(inputs.seqs), inputs.seqs, inputs.contents)
	s.queue(b, insertOutcomes, len(outcomes.seqs), outcomes.seqs, outcomes.contents)
}

// queueAccounts queues the new values of usages.
func (s *Store) queueAccounts(b *pgx.Batch, list []durable.AccountUsage) {
	var gone, kept [][]byte
	var stored, unfinished, bytes []int64
	for _, a := range list {
		name := accountName(a.Key)
		if a.Usage == (mcptask.Usage{}) {
			gone = append(gone, name)
			continue
		}
		kept = append(kept, name)
		stored, unfinished, bytes = append(stored, int64(a.Usage.Stored)), append(unfinished, int64(a.Usage.Unfinished)), append(bytes, a.Usage.Bytes)
	}
	s.queue(b, deleteAccounts, len(gone), gone)
	s.queue(b, upsertAccounts, len(kept), kept, stored, unfinished, bytes)
}

// queueChanges queues news for the feeds of all processes.
func (s *Store) queueChanges(b *pgx.Batch, list []mcptask.Change) *pgx.QueuedQuery {
	return b.Queue(s.schema.sql(insertChange), s.shift.Load(), durable.EncodeChanges(list))
}

// removals are columns of records to remove.
type removals struct {
	ids, principals [][]byte
	seqs            []int64
}

func (c *removals) add(w *durable.Write) {
	c.ids, c.principals, c.seqs = append(c.ids, []byte(w.Record.ID)), append(c.principals, []byte(w.Record.Principal)), append(c.seqs, w.Row.Seq)
}

// bodies are columns of encoded parts of records.
type bodies struct {
	seqs     []int64
	contents [][]byte
}

func (c *bodies) add(w *durable.Write, content []byte) {
	c.seqs, c.contents = append(c.seqs, w.Row.Seq), append(c.contents, content)
}

// updates are columns of records to update.
type updates struct {
	ids, messages, workers                                              [][]byte
	versions, updated, terminal, expires, attempts, tries, bytes, asked []int64
	phases, outcomes                                                    []int16
	isErrors, cancels                                                   []bool
	done, total                                                         []float64
}

func (c *updates) add(w *durable.Write) {
	r := w.Record
	c.ids = append(c.ids, []byte(r.ID))
	c.messages = append(c.messages, []byte(r.StatusMessage))
	c.workers = append(c.workers, []byte(r.Worker))
	c.versions = append(c.versions, r.Version)
	c.updated = append(c.updated, durable.Micros(r.UpdatedAt))
	c.terminal = append(c.terminal, durable.Micros(r.TerminalAt))
	c.expires = append(c.expires, durable.Micros(r.ExpiresAt))
	c.attempts = append(c.attempts, int64(r.Attempt))
	c.tries = append(c.tries, int64(r.Tries))
	c.bytes = append(c.bytes, w.Row.Bytes)
	c.asked = append(c.asked, w.Row.Asked)
	c.phases = append(c.phases, int16(durable.PhaseNumber(r.Phase)))
	c.outcomes = append(c.outcomes, int16(durable.OutcomeNumber(r.Outcome)))
	c.isErrors = append(c.isErrors, r.Outcome != nil && r.Outcome.IsError)
	c.cancels = append(c.cancels, r.CancelRequested)
	c.done = append(c.done, r.Progress.Done)
	c.total = append(c.total, r.Progress.Total)
}

// reportArgs returns the arguments of reportTasks.
func (c *updates) reportArgs() []any {
	return []any{c.ids, c.versions, c.cancels, c.messages, c.done, c.total, c.updated, c.terminal, c.attempts, c.tries, c.bytes, c.asked}
}

// moveArgs returns the arguments of moveTasks.
func (c *updates) moveArgs() []any {
	return append(c.reportArgs(), c.phases, c.outcomes, c.isErrors, c.expires, c.workers)
}

// inserts are columns of new records.
type inserts struct {
	updates
	principals, accounts, tools, idems, names, terms [][]byte
	seqs, created                                    []int64
}

func (c *inserts) add(w *durable.Write) {
	r := w.Record
	c.updates.add(w)
	c.principals = append(c.principals, []byte(r.Principal))
	c.accounts = append(c.accounts, []byte(r.Account))
	c.tools = append(c.tools, []byte(r.Tool))
	c.idems = append(c.idems, []byte(r.IdempotencyKey))
	var name []byte
	if r.IdempotencyKey != "" {
		name = hashName(durable.Name{Principal: r.Principal, Tool: r.Tool, Key: r.IdempotencyKey})
	}
	c.names = append(c.names, name)
	c.terms = append(c.terms, w.Row.Terms)
	c.seqs = append(c.seqs, w.Row.Seq)
	c.created = append(c.created, durable.Micros(r.CreatedAt))
}

// args returns the arguments of insertTasks.
func (c *inserts) args() []any {
	return []any{
		c.seqs, c.ids, c.versions, c.principals, c.accounts, c.tools, c.idems, c.names, c.terms, c.phases, c.outcomes, c.isErrors, c.cancels, c.messages,
		c.done, c.total, c.created, c.updated, c.terminal, c.expires, c.attempts, c.tries, c.workers, c.bytes, c.asked,
	}
}
