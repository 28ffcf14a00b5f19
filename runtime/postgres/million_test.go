package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

const (
	// heldTasks is how many tasks of the large store one worker holds.
	heldTasks = 10_000
	// expiryBatch is how many tasks expire at once.
	expiryBatch = 256
)

// fillTasks adds tasks with the numbers from $1 to $2, which ten principals have. Those up to $3 are held
// by a worker, and the others are done. They expire at $4, in microseconds.
const fillTasks = `WITH added AS (
		INSERT INTO @schema@.task (seq, id, version, principal, account, tool, idem, name, terms, phase, outcome, is_error, cancel, message, done, total,
			created, updated, terminal, expires, attempt, tries, worker, bytes, asked)
		SELECT i, sha256(convert_to(i::text, 'UTF8')), 2, convert_to('user' || i % 10, 'UTF8'), convert_to('auser' || i % 10, 'UTF8'), 'tool', '', NULL, $5,
			CASE WHEN i <= $3 THEN 1 ELSE 9 END, CASE WHEN i <= $3 THEN 0 ELSE 1 END, false, false, '', 0, 0,
			1600000000000000 + i, 1600000000000000 + i, 1600000000000000 + i, $4, 1, 1, CASE WHEN i <= $3 THEN 'holder'::bytea ELSE '' END, 700, 0
		FROM generate_series($1::bigint, $2::bigint) i
	), called AS (
		INSERT INTO @schema@.arguments SELECT i, convert_to(repeat('x', 300), 'UTF8') FROM generate_series($1::bigint, $2::bigint) i
	), ended AS (
		INSERT INTO @schema@.outcome SELECT i, $6::bytea FROM generate_series(greatest($1::bigint, $3::bigint + 1), $2::bigint) i
	)
	INSERT INTO @schema@.account SELECT convert_to('auser' || n, 'UTF8'), 1000000000, 0, 1000000000000 FROM generate_series(0, 9) n
	ON CONFLICT DO NOTHING`

// filledID returns the ID of a task of fillTasks.
func filledID(number int64) string {
	hash := sha256.Sum256([]byte(strconv.FormatInt(number, 10)))
	return string(hash[:])
}

// filled is a store with many tasks.
type filled struct {
	*Store
	last  int64 // the number of the last task
	times map[string][]time.Duration
}

// openFilled makes a store with n tasks, and empty caches.
func openFilled(b *testing.B, server *pgtest.Server, n, held int64) *filled {
	b.Helper()
	f := &filled{Store: openStore(b, server.Database(b), Options{}), times: map[string][]time.Duration{}}
	f.fill(b, n, held, time.Now().Add(24*time.Hour))
	f.exec(b, "SELECT setval('@schema@.task_seq', 1000000000)")
	for _, table := range []string{"task", "arguments", "outcome"} {
		f.exec(b, "VACUUM ANALYZE @schema@."+table)
	}
	f.exec(b, "CHECKPOINT")
	return f
}

// fill adds n tasks to the store.
func (f *filled) fill(b *testing.B, n, held int64, expires time.Time) {
	b.Helper()
	r := newTask("t", "user")
	outcome := durable.EncodeOutcome(finish(r).Outcome)
	f.exec(b, fillTasks, f.last+1, f.last+n, held, durable.Micros(expires), durable.EncodeTerms(&r), outcome)
	f.last += n
}

func (f *filled) exec(b *testing.B, sql string, args ...any) {
	b.Helper()
	if _, err := f.pool.Exec(b.Context(), f.schema.sql(sql), args...); err != nil {
		b.Fatalf("%s: %v", sql, err)
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
			_, err := f.Create(ctx, newTask(rand.Text(), "user"), benchQuota)
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
// worker that holds 10,000 tasks. It takes minutes and 2 GB of disk.
func BenchmarkMillion(b *testing.B) {
	const few, many = 1000, 1_000_000
	server := pgtest.Start(b, pgtest.Options{Durable: true})
	small, large := openFilled(b, server, few, 0), openFilled(b, server, many, heldTasks)
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
