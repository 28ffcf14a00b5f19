package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

const (
	// heldTasks is how many tasks of the large store one worker holds.
	heldTasks = 10_000
	// expiryBatch is how many tasks expire at once.
	expiryBatch = 256
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
	fillAccounts  = `WITH RECURSIVE number (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM number WHERE i < 9)
		INSERT OR IGNORE INTO account SELECT CAST('auser' || i AS BLOB), 1000000000, 0, 1000000000000 FROM number`
)

// filledID returns the ID of a task of fillTasks.
func filledID(number int64) string { return fmt.Sprintf("%08x", uint32(number*2654435761)) }

// filled is a store with many tasks.
type filled struct {
	*Store
	times map[string][]time.Duration
}

// openFilled makes a store with n tasks.
func openFilled(b *testing.B, n, held int64) *filled {
	b.Helper()
	f := &filled{Store: openBench(b), times: map[string][]time.Duration{}}
	f.fill(b, n, held, time.Now().Add(24*time.Hour))
	if _, err := f.writer.exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		b.Fatal(err)
	}
	return f
}

// fill adds n tasks to the store. Their seq is negative, as no other task's is.
func (f *filled) fill(b *testing.B, n, held int64, expires time.Time) {
	b.Helper()
	if err := f.write(b.Context(), "fill", func(w *transaction) error {
		last, err := w.queryInt("SELECT max(0, -coalesce(min(seq), 0)) FROM task")
		if err != nil {
			return err
		}
		first, last := last+1, last+n
		r := newTask(300)
		for _, s := range []struct {
			query string
			args  []any
		}{
			{fillTasks, []any{first, last, held, durable.Micros(expires), durable.EncodeTerms(&r)}},
			{fillArguments, []any{first, last}},
			{fillOutcomes, []any{first, last, held, durable.EncodeOutcome(finish(r).Outcome)}},
			{fillAccounts, nil},
		} {
			if _, err := w.exec(s.query, s.args...); err != nil {
				return err
			}
		}
		_, err = w.record([]mcptask.Change{{Missed: true}})
		return err
	}); err != nil {
		b.Fatal(err)
	}
}

// time measures a call, which must return n records.
func (f *filled) time(b *testing.B, name string, n int, do func(context.Context) (int, error)) {
	b.Helper()
	began := time.Now()
	got, err := do(b.Context())
	f.times[name] = append(f.times[name], time.Since(began))
	if err != nil || got != n {
		b.Fatalf("%s: %d records, %v; want %d", name, got, err, n)
	}
}

// median returns the median time of a call.
func (f *filled) median(name string) time.Duration {
	slices.Sort(f.times[name])
	return f.times[name][len(f.times[name])/2]
}

// turn makes each call some times.
func (f *filled) turn(b *testing.B, tasks int64) {
	b.Helper()
	const calls, page = 20, 50
	for i := range int64(calls) {
		f.time(b, "create", 1, func(ctx context.Context) (int, error) {
			_, err := f.Create(ctx, newTask(300), benchQuota)
			return 1, err
		})
		number := tasks/2 + i*7919%(tasks/2) // one that is done
		f.time(b, "get", 1, func(ctx context.Context) (int, error) {
			_, err := f.Get(ctx, filledID(number))
			return 1, err
		})
		after := mcptask.Position{CreatedAt: durable.Time(1600000000000000 + tasks/4 + i)}
		f.time(b, "list", page, func(ctx context.Context) (int, error) {
			list, err := f.List(ctx, "user3", after, page)
			return len(list), err
		})
	}
	f.fill(b, expiryBatch, 0, time.Now().Add(-time.Hour))
	f.time(b, "expire", expiryBatch, func(ctx context.Context) (int, error) {
		list, err := f.Expire(ctx, expiryBatch)
		return len(list), err
	})
}

// BenchmarkMillion compares the cost of calls on a store with 1,000,000 tasks to that on one with 1,000: the
// ratios of the median times. It also measures the memory of the process, and the heartbeat of a
// worker that holds 10,000 tasks. It takes minutes and 1 GB of disk.
func BenchmarkMillion(b *testing.B) {
	const few, many = 1000, 1_000_000
	small, large := openFilled(b, few, 0), openFilled(b, many, heldTasks)
	before := heapSize()
	for b.Loop() {
		small.turn(b, few)
		large.turn(b, many)
	}
	for name := range large.times {
		b.ReportMetric(float64(large.median(name))/float64(small.median(name)), name+"-ratio")
	}
	b.ReportMetric(float64(large.median("expire").Microseconds())/1000, "expire-ms")
	held := make([]string, heldTasks)
	for i := range held {
		held[i] = filledID(int64(i) + 1)
	}
	held[0] = "lost"
	for range 10 {
		large.time(b, "beat", 1, func(ctx context.Context) (int, error) {
			beat, err := large.Beat(ctx, "holder", time.Minute, held)
			return len(beat.Lost), err
		})
	}
	b.ReportMetric(float64(large.median("beat").Microseconds())/1000, "beat-ms")
	b.ReportMetric(heapSize()-before, "heap-MB")
}

// heapSize returns the size of the live heap in MB.
func heapSize() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
