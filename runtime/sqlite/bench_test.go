package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// benchOptions are those of the server's defaults, about: quotas that are checked and never
// reached.
var benchQuota = mcptask.Quota{Account: mcptask.Usage{Stored: 1e9, Unfinished: 1e9, Bytes: 1e15}}

// newTask returns a task as the server creates it, with arguments of some size.
func newTask(size int) mcptask.Record {
	now := time.Now()
	return mcptask.Record{
		ID: rand.Text(), Principal: "user", Account: "user", Tool: "run_pipeline", Arguments: make(json.RawMessage, size),
		Revision: mcptask.Revision20260728, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(24 * time.Hour), Poll: 2 * time.Second,
		Phase: mcptask.PhaseRunning, Worker: "worker", Attempt: 1, Tries: 1,
	}
}

// finish returns the end of a task.
func finish(r mcptask.Record) mcptask.Record {
	r.Phase, r.Worker, r.TerminalAt = mcptask.PhaseDone, "", time.Now()
	r.UpdatedAt, r.Outcome = r.TerminalAt, &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: make(json.RawMessage, 300)}
	return r
}

// liveOnce stores a task and its end.
func liveOnce(ctx context.Context, s mcptask.Store) error {
	r, err := s.Create(ctx, newTask(300), benchQuota)
	if err != nil {
		return err
	}
	_, err = s.Update(ctx, r, finish(r), benchQuota)
	return err
}

// bareTable is the hot table with its indexes and all bodies in it: what a program would write that needs
// to remember a call and its end.
const bareTable = `CREATE TABLE bare (
	seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, version INTEGER NOT NULL, principal BLOB NOT NULL, tool BLOB NOT NULL,
	phase INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL, expires INTEGER NOT NULL, worker BLOB NOT NULL,
	arguments BLOB, result BLOB
) STRICT;
CREATE INDEX bare_list ON bare (principal, created, id);
CREATE INDEX bare_created ON bare (created, id);
CREATE INDEX bare_expires ON bare (expires);
CREATE INDEX bare_worker ON bare (worker, tool) WHERE phase < 9;`

// bare writes with one statement a commit.
type bare struct {
	db             *sql.DB
	insert, update *sql.Stmt
}

func openBare(b *testing.B) *bare {
	b.Helper()
	db, err := openDatabase(filepath.Join(b.TempDir(), "bare.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA cache_size=-16000", bareTable} {
		if _, err := db.Exec(statement); err != nil {
			b.Fatal(err)
		}
	}
	p := &bare{db: db}
	if p.insert, err = db.Prepare("INSERT INTO bare VALUES (NULL, ?, 1, ?, ?, 1, ?, ?, ?, ?, ?, NULL)"); err != nil {
		b.Fatal(err)
	}
	if p.update, err = db.Prepare("UPDATE bare SET version = version + 1, phase = 9, updated = ?, worker = x'', result = ? WHERE id = ? AND version = 1"); err != nil {
		b.Fatal(err)
	}
	return p
}

func (p *bare) liveOnce() error {
	r := newTask(300)
	now := time.Now().UnixMicro()
	if _, err := p.insert.Exec([]byte(r.ID), []byte(r.Principal), []byte(r.Tool), now, now, now+86400e6, []byte(r.Worker), []byte(r.Arguments)); err != nil {
		return err
	}
	_, err := p.update.Exec(time.Now().UnixMicro(), make([]byte, 300), []byte(r.ID))
	return err
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "tasks.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// perSecond runs do in some goroutines, n times in all, and returns the rate.
func perSecond(b *testing.B, clients, n int, do func() error) float64 {
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
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkTaskLife creates and ends tasks, beside one INSERT and one UPDATE on a table of the same
// kind. The two take turns, because the speed of a disk changes. The ratio is that of the rates.
func BenchmarkTaskLife(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			s, floor := openBench(b), openBare(b)
			const turn = 256
			var store, bare time.Duration
			b.ResetTimer()
			for done := 0; done < b.N; done += turn {
				n := min(turn, b.N-done)
				store += time.Duration(float64(n) / perSecond(b, clients, n, func() error { return liveOnce(b.Context(), s) }) * 1e9)
				bare += time.Duration(float64(n) / perSecond(b, clients, n, floor.liveOnce) * 1e9)
			}
			b.ReportMetric(float64(b.N)/store.Seconds(), "tasks/s")
			b.ReportMetric(float64(b.N)/bare.Seconds(), "bare/s")
			b.ReportMetric(bare.Seconds()/store.Seconds(), "ratio")
		})
	}
}

// BenchmarkPoll reads one task of many again and again, beside the memory store.
func BenchmarkPoll(b *testing.B) {
	for _, size := range []int{300, 100_000} {
		for name, s := range map[string]mcptask.Store{"memory": mcptask.NewMemoryStore(), "sqlite": openBench(b)} {
			b.Run(fmt.Sprintf("arguments=%d/%s", size, name), func(b *testing.B) {
				var ids []string
				for range 16 {
					r, err := s.Create(b.Context(), newTask(size), mcptask.Quota{})
					if err != nil {
						b.Fatal(err)
					}
					ids = append(ids, r.ID)
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if _, err := s.Get(b.Context(), ids[i%len(ids)]); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "polls/s")
			})
		}
	}
}

// BenchmarkReport updates the status message of tasks from 16 goroutines. The rate should not
// depend on the size of the arguments.
func BenchmarkReport(b *testing.B) {
	for _, size := range []int{300, 100_000} {
		b.Run(fmt.Sprint("arguments=", size), func(b *testing.B) {
			s := openBench(b)
			const clients = 16
			records := make(chan mcptask.Record, clients)
			for range clients {
				r, err := s.Create(b.Context(), newTask(size), mcptask.Quota{})
				if err != nil {
					b.Fatal(err)
				}
				records <- r
			}
			b.ResetTimer()
			rate := perSecond(b, clients, b.N, func() error {
				r := <-records
				next := r
				next.StatusMessage, next.Progress.Done, next.UpdatedAt = fmt.Sprint("step ", r.Version), float64(r.Version), time.Now()
				next, err := s.Update(b.Context(), r, next, mcptask.Quota{})
				records <- next
				return err
			})
			b.ReportMetric(rate, "reports/s")
		})
	}
}
