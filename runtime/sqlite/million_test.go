package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The statements that add tasks from ?1 to ?2, which ten principals have. Those up to ?3 are
// held by a worker, and the others are done. They expire at ?4, in microseconds.
const (
	numbers   = "WITH RECURSIVE number (i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM number WHERE i < ?2) "
	fillTasks = numbers + `INSERT INTO task (seq, id, version, principal, account, tool, phase, outcome, is_error, cancel, message, done, total,
		created, updated, terminal, expires, attempt, tries, worker, bytes, asked, terms)
		SELECT -i, CAST(printf('%08x', i * 2654435761 % 4294967296) AS BLOB), 2, CAST('user' || (i % 10) AS BLOB), CAST('user' || (i % 10) AS BLOB), x'00',
		iif(i <= ?3, 1, 9), i > ?3, 0, 0, x'', 0, 0, 1600000000000000 + i, 1600000000000000 + i, 1600000000000000 + i, ?4, 1, 1,
		iif(i <= ?3, CAST('holder' AS BLOB), x''), 700, 0, ?5 FROM number`
	fillArguments = numbers + "INSERT INTO arguments SELECT -i, zeroblob(300) FROM number"
	fillOutcomes  = numbers + "INSERT INTO outcome SELECT -i, ?4 FROM number WHERE i > ?3"
	fillSteps     = numbers + `, nth (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM nth WHERE n < 9)
		INSERT INTO step SELECT -i, CAST('step ' || n AS BLOB), ?3 FROM number, nth`
	fillAccounts = `WITH RECURSIVE number (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM number WHERE i < 9)
		INSERT OR IGNORE INTO account SELECT CAST('auser' || i AS BLOB), 1000000000, 0, 1000000000000 FROM number`
)

// filled is a store with many tasks.
type filled struct{ *Store }

// Fill implements [durabletest.Filled]. The seq of its tasks is negative, as no other task's is.
func (f filled) Fill(b *testing.B, n, held int64, expires time.Time) {
	b.Helper()
	if err := f.write(b.Context(), "fill", func(w *transaction) error {
		last, err := w.queryInt("SELECT max(0, -coalesce(min(seq), 0)) FROM task")
		if err != nil {
			return err
		}
		first, last := last+1, last+n
		r := durabletest.NewTask(300)
		for _, s := range []struct {
			query string
			args  []any
		}{
			{fillTasks, []any{first, last, held, durable.Micros(expires), durable.EncodeTerms(&r)}},
			{fillArguments, []any{first, last}},
			{fillOutcomes, []any{first, last, held, durable.EncodeOutcome(durabletest.Finish(r).Outcome)}},
			{fillSteps, []any{first, last, durable.EncodeStep(durabletest.FilledStep())}},
			{fillAccounts, nil},
		} {
			if _, err := w.exec(s.query, s.args...); err != nil {
				return err
			}
		}
		_, err = w.record([]taskstore.Change{{Missed: true}})
		return err
	}); err != nil {
		b.Fatal(err)
	}
}

// IDOf implements [durabletest.Filled].
func (f filled) IDOf(number int64) string { return fmt.Sprintf("%08x", uint32(number*2654435761)) }

func BenchmarkMillion(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes minutes, and 8 GB of disk")
	}
	durabletest.BenchmarkMillion(b, func(b *testing.B, n, held int64) durabletest.Filled {
		b.Helper()
		f := filled{openBench(b)}
		f.Fill(b, n, held, time.Now().Add(24*time.Hour))
		if _, err := f.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			b.Fatal(err)
		}
		return f
	})
}
