package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// benchQuota is checked and never reached.
var benchQuota = mcptask.Quota{
	Account: mcptask.Usage{Stored: 1e9, Unfinished: 1e9, Bytes: 1e15}, Server: mcptask.Usage{Stored: 1e9, Unfinished: 1e9, Bytes: 1e15},
}

// newBenchTask returns a task as a server creates it, with arguments of some size.
func newBenchTask(size int) mcptask.Record {
	r := newTask(rand.Text(), "user")
	r.Arguments = make(json.RawMessage, size)
	return r
}

// bareTable is what a program would write that needs to remember a call and its end.
const bareTable = `CREATE TABLE bare (
	id bytea PRIMARY KEY, version bigint NOT NULL, principal bytea NOT NULL, tool bytea NOT NULL, phase smallint NOT NULL,
	created bigint NOT NULL, updated bigint NOT NULL, expires bigint NOT NULL, worker bytea NOT NULL, arguments bytea, result bytea
);
CREATE INDEX ON bare (principal, created, id);
CREATE INDEX ON bare (created, id);
CREATE INDEX ON bare (expires);
CREATE INDEX ON bare (worker, tool) WHERE phase < 9;`

// bare writes with one statement a commit.
type bare struct{ pool *pgxpool.Pool }

func openBare(b *testing.B, dsn string) bare {
	b.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = 64 // one for each client
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if _, err := pool.Exec(b.Context(), bareTable); err != nil {
		b.Fatal(err)
	}
	return bare{pool}
}

// liveOnce stores a task and its end.
func (p bare) liveOnce(ctx context.Context) error {
	r := newBenchTask(300)
	now := time.Now().UnixMicro()
	if _, err := p.pool.Exec(ctx, "INSERT INTO bare VALUES ($1, 1, $2, $3, 1, $4, $4, $5, $6, $7, NULL)", []byte(r.ID), []byte(r.Principal),
		[]byte(r.Tool), now, now+86400e6, []byte(r.Worker), []byte(r.Arguments)); err != nil {
		return err
	}
	_, err := p.pool.Exec(ctx, "UPDATE bare SET version = version + 1, phase = 9, updated = $1, worker = '', result = $2 WHERE id = $3 AND version = 1",
		time.Now().UnixMicro(), make([]byte, 300), []byte(r.ID))
	return err
}

// liveOnce stores a task and its end.
func liveOnce(ctx context.Context, s mcptask.Store) error {
	r, err := s.Create(ctx, newBenchTask(300), benchQuota)
	if err != nil {
		return err
	}
	done := finish(r)
	done.Outcome.Result = make(json.RawMessage, 300)
	_, err = s.Update(ctx, r, done, benchQuota)
	return err
}

// measure runs do in some goroutines, n times in all, and returns the time.
func measure(b *testing.B, clients, n int, do func() error) time.Duration {
	b.Helper()
	turns := make(chan struct{}, n)
	for range n {
		turns <- struct{}{}
	}
	close(turns)
	var group sync.WaitGroup
	began := time.Now()
	for range clients {
		group.Go(func() {
			for range turns {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(began)
}

// BenchmarkTaskLife creates and ends tasks, beside one INSERT and one UPDATE on a table of the same
// kind. The two take turns, because the speed of a disk changes. The ratio is that of the rates.
func BenchmarkTaskLife(b *testing.B) {
	server := pgtest.Start(b, pgtest.Options{Durable: true})
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			dsn := server.Database(b)
			s, floor := openStore(b, dsn, Options{}), openBare(b, dsn)
			turn := 64 * min(clients, 8)
			var store, bare time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; done += turn {
				n := min(turn, b.N-done)
				store += measure(b, clients, n, func() error { return liveOnce(b.Context(), s) })
				bare += measure(b, clients, n, func() error { return floor.liveOnce(b.Context()) })
			}
			b.ReportMetric(float64(b.N)/store.Seconds(), "tasks/s")
			b.ReportMetric(float64(b.N)/bare.Seconds(), "bare/s")
			b.ReportMetric(bare.Seconds()/store.Seconds(), "ratio")
		})
	}
}

// BenchmarkPoll reads a finished task, beside the store in memory.
func BenchmarkPoll(b *testing.B) {
	s, memory := openStore(b, pgtest.Database(b), Options{}), mcptask.NewMemoryStore()
	task := newBenchTask(300)
	for _, store := range []mcptask.Store{s, memory} {
		r, err := store.Create(b.Context(), task, benchQuota)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := store.Update(b.Context(), r, finish(r), benchQuota); err != nil {
			b.Fatal(err)
		}
	}
	var stored, remembered time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; done += 1000 {
		n := min(1000, b.N-done)
		stored += measure(b, 8, n, func() error { _, err := s.Get(b.Context(), task.ID); return err })
		remembered += measure(b, 8, n, func() error { _, err := memory.Get(b.Context(), task.ID); return err })
	}
	b.ReportMetric(float64(b.N)/stored.Seconds(), "polls/s")
	b.ReportMetric(float64(b.N)/remembered.Seconds(), "memory/s")
}

// BenchmarkReport reports the progress of tasks with long arguments, beside tasks with short ones.
func BenchmarkReport(b *testing.B) {
	const clients = 16
	s := openStore(b, pgtest.Start(b, pgtest.Options{Durable: true}).Database(b), Options{})
	// report returns a function that reports on one of some tasks.
	report := func(size int) func() error {
		tasks := make(chan mcptask.Record, clients)
		for range clients {
			tasks <- create(b, s, newBenchTask(size))
		}
		return func() error {
			from := <-tasks
			to := from
			to.Progress.Done++
			to, err := s.Update(b.Context(), from, to, benchQuota)
			tasks <- to
			return err
		}
	}
	short, long := report(300), report(100_000)
	var shortTime, longTime time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; done += 256 {
		n := min(256, b.N-done)
		shortTime += measure(b, clients, n, short)
		longTime += measure(b, clients, n, long)
	}
	b.ReportMetric(float64(b.N)/shortTime.Seconds(), "short/s")
	b.ReportMetric(float64(b.N)/longTime.Seconds(), "long/s")
	b.ReportMetric(shortTime.Seconds()/longTime.Seconds(), "ratio")
}
