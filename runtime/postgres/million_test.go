package postgres

import (
	"crypto/sha256"
	"strconv"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// fillTasks adds tasks with the numbers from $1 to $2, which ten principals have. Those up to $3 are held
// by a worker, and the others are done. They expire at $4, in microseconds.
const fillTasks = `WITH added AS (
		INSERT INTO @schema@.task (seq, id, version, principal, account, tool, idem, name, terms, phase, outcome, is_error, cancel, message, done, total,
			created, updated, terminal, expires, attempt, tries, worker, bytes, asked)
		SELECT i, sha256(convert_to(i::text, 'UTF8')), 2, convert_to('user' || i % 10, 'UTF8'), convert_to('user' || i % 10, 'UTF8'), 'tool', '', NULL, $5,
			CASE WHEN i <= $3 THEN 1 ELSE 9 END, CASE WHEN i <= $3 THEN 0 ELSE 1 END, false, false, '', 0, 0,
			1600000000000000 + i, 1600000000000000 + i, 1600000000000000 + i, $4, 1, 1, CASE WHEN i <= $3 THEN 'holder'::bytea ELSE '' END, 700, 0
		FROM generate_series($1::bigint, $2::bigint) i
	), called AS (
		INSERT INTO @schema@.arguments SELECT i, convert_to(repeat('x', 300), 'UTF8') FROM generate_series($1::bigint, $2::bigint) i
	), ended AS (
		INSERT INTO @schema@.outcome SELECT i, $6::bytea FROM generate_series(greatest($1::bigint, $3::bigint + 1), $2::bigint) i
	), stepped AS (
		INSERT INTO @schema@.step SELECT i, convert_to('step ' || n, 'UTF8'), $7::bytea FROM generate_series($1::bigint, $2::bigint) i, generate_series(0, 9) n
	)
	INSERT INTO @schema@.account SELECT convert_to('auser' || n, 'UTF8'), 1000000000, 0, 1000000000000 FROM generate_series(0, 9) n
	ON CONFLICT DO NOTHING`

// filled is a store with many tasks.
type filled struct {
	*Store
	last int64 // the number of the last task
}

// Fill implements [durabletest.Filled].
func (f *filled) Fill(b *testing.B, n, held int64, expires time.Time) {
	b.Helper()
	r := durabletest.NewTask(300)
	outcome := durable.EncodeOutcome(durabletest.Finish(r).Outcome)
	f.exec(b, fillTasks, f.last+1, f.last+n, held, durable.Micros(expires), durable.EncodeTerms(&r), outcome, durable.EncodeStep(durabletest.FilledStep()))
	f.last += n
}

// IDOf implements [durabletest.Filled].
func (f *filled) IDOf(number int64) string {
	hash := sha256.Sum256([]byte(strconv.FormatInt(number, 10)))
	return string(hash[:])
}

func (f *filled) exec(b *testing.B, sql string, args ...any) {
	b.Helper()
	if _, err := f.pool.Exec(b.Context(), f.schema.sql(sql), args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
	}
}

func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes minutes, and 4 GB of disk")
	}
	server := pgtest.Start(b, pgtest.Options{Durable: true})
	durabletest.BenchmarkMillion(b, func(b *testing.B, n, held int64) durabletest.Filled {
		b.Helper()
		f := &filled{Store: openStore(b, server.Database(b), Options{})}
		f.Fill(b, n, held, time.Now().Add(24*time.Hour))
		f.exec(b, "SELECT setval('@schema@.task_seq', 1000000000)")
		for _, table := range []string{"task", "arguments", "outcome", "step"} {
			f.exec(b, "VACUUM ANALYZE @schema@."+table)
		}
		f.exec(b, "CHECKPOINT")
		return f
	})
}
