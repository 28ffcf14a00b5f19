// Package durabletest measures stores in databases, and makes tasks for their tests. It is for tests only.
package durabletest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// quota is checked and never reached.
var quota = taskstore.Quota{
	Account: taskstore.Usage{Stored: 1e9, Unfinished: 1e9, Bytes: 1e15}, Server: taskstore.Usage{Stored: 1e9, Unfinished: 1e9, Bytes: 1e15},
}

// NewTask returns a running task as a server creates it, with arguments of some size.
func NewTask(size int) taskstore.Record {
	now := time.Now()
	return taskstore.Record{
		ID: rand.Text(), Principal: "user", Account: "user", Tool: "run_pipeline", Arguments: make(json.RawMessage, size),
		Revision: mcptask.Revision20260728, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(24 * time.Hour), Poll: 2 * time.Second,
		Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "worker"}, Attempt: 1, Tries: 1,
	}
}

// Finish returns a task as a server stores its end.
func Finish(r taskstore.Record) taskstore.Record {
	r.Phase, r.Claim.Worker, r.TerminalAt = taskstore.PhaseDone, "", time.Now()
	r.UpdatedAt, r.Outcome = r.TerminalAt, &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: make(json.RawMessage, 300)}
	return r
}

// LiveOnce stores a new task, and then its end.
func LiveOnce(ctx context.Context, s taskstore.Store) error {
	_, err := storeFinished(ctx, s, 300)
	return err
}

// storeFinished stores a new task with arguments of some size, and then its end. It returns the task's ID.
func storeFinished(ctx context.Context, s taskstore.Store, size int) (id string, err error) {
	r, err := s.Create(ctx, NewTask(size), quota)
	if err != nil {
		return "", err
	}
	_, err = s.Update(ctx, r, Finish(r), quota)
	return r.ID, err
}

// BenchmarkLives creates and ends tasks, beside the writes of a program that only remembers a call and its end: one
// INSERT and one UPDATE on a table of the same kind. It calls open for each number of clients. open returns a new
// store, and a function that does the same on a table.
func BenchmarkLives(b *testing.B, open func(b *testing.B) (s taskstore.Store, liveBare func() error)) {
	b.Helper()
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			s, liveBare := open(b)
			compare(b, clients, 64*min(clients, 8),
				contender{"tasks/s", func() error { return LiveOnce(b.Context(), s) }}, contender{"bare/s", liveBare})
		})
	}
}

// BenchmarkPolls reads tasks that run and tasks that have ended, beside the store in memory.
func BenchmarkPolls(b *testing.B, s taskstore.Store) {
	b.Helper()
	store := func(s taskstore.Store, size int, ended bool) (id string, err error) {
		if ended {
			return storeFinished(b.Context(), s, size)
		}
		r, err := s.Create(b.Context(), NewTask(size), quota)
		return r.ID, err
	}
	for _, size := range []int{300, 100_000} {
		for _, ended := range []bool{false, true} {
			b.Run(fmt.Sprintf("arguments=%d/ended=%v", size, ended), func(b *testing.B) {
				// poll returns a function that reads one of some tasks.
				poll := func(s taskstore.Store) func() error {
					var ids [16]string
					for i := range ids {
						var err error
						if ids[i], err = store(s, size, ended); err != nil {
							b.Fatal(err)
						}
					}
					var polls atomic.Uint64
					return func() error {
						_, err := s.Get(b.Context(), ids[polls.Add(1)%uint64(len(ids))])
						return err
					}
				}
				compare(b, 8, 1000, contender{"polls/s", poll(s)}, contender{"memory/s", poll(taskstore.NewMemory())})
			})
		}
	}
}

// BenchmarkReports updates the status messages of tasks with long arguments, beside those of tasks
// with short ones.
func BenchmarkReports(b *testing.B, s taskstore.Store) {
	b.Helper()
	const clients = 16
	// report returns a function that reports on one of some tasks.
	report := func(size int) func() error {
		tasks := make(chan taskstore.Record, clients)
		for range clients {
			r, err := s.Create(b.Context(), NewTask(size), quota)
			if err != nil {
				b.Fatal(err)
			}
			tasks <- r
		}
		return func() error {
			r := <-tasks
			next := r
			next.StatusMessage, next.Progress.Done, next.UpdatedAt = fmt.Sprint("step ", r.Version), float64(r.Version), time.Now()
			next, err := s.Update(b.Context(), r, next, quota)
			tasks <- next
			return err
		}
	}
	compare(b, clients, 256, contender{"long/s", report(100_000)}, contender{"short/s", report(300)})
}

// BenchmarkSteps stores steps of 200 bytes, each client those of a task of its own, beside the INSERT of such a row into
// a table of the same form. It calls open for each number of clients.
func BenchmarkSteps(b *testing.B, open func(b *testing.B) (s taskstore.Store, insertBare func(task int64, name, body []byte) error)) {
	b.Helper()
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			s, insertBare := open(b)
			tasks := make(chan taskstore.Record, clients)
			for range clients {
				r, err := s.Create(b.Context(), NewTask(300), quota)
				if err != nil {
					b.Fatal(err)
				}
				tasks <- r
			}
			store := func() error {
				r := <-tasks
				next, step := r, taskstore.Step{Name: fmt.Sprint("step ", r.Version), Kind: taskstore.StepDone, Value: make(json.RawMessage, 200), At: time.Now(), Attempt: 1}
				next.Nonce, next.UpdatedAt, next.StepBytes = rand.Text(), step.At, r.StepBytes+step.Size()
				next.Worked += time.Second
				next, err := s.Update(b.Context(), r, next, quota, step)
				tasks <- next
				return err
			}
			var rows atomic.Int64
			compare(b, clients, 64*min(clients, 8), contender{"steps/s", store}, contender{"bare/s", func() error {
				n := rows.Add(1)
				return insertBare(n%int64(clients), fmt.Append(nil, "step ", n), make([]byte, 220))
			}})
		})
	}
}

// contender is something to measure, and the unit of its rate.
type contender struct {
	unit string
	do   func() error
}

// BenchmarkWaiting lists waiting tasks: none of 10,000 that run, of one account, of 100 accounts, and of very many tasks,
// beside a list that finds nothing. It calls open for each number of tasks. open returns a new store with unfinished tasks of tool "tool" that have a
// worker. Their accounts are "user0", "user1" and so on.
func BenchmarkWaiting(b *testing.B, open func(b *testing.B, tasks, accounts int, worker string) taskstore.Store) {
	b.Helper()
	for _, c := range []struct {
		tasks, accounts int
		worker          string
	}{{10_000, 100, "holder"}, {10_000, 1, ""}, {10_000, 100, ""}, {1_000_000, 100, ""}} {
		if testing.Short() && c.tasks > 10_000 {
			continue
		}
		b.Run(fmt.Sprintf("tasks=%d/accounts=%d/waiting=%v", c.tasks, c.accounts, c.worker == ""), func(b *testing.B) {
			s := open(b, c.tasks, c.accounts, c.worker)
			for _, limit := range []int{1, 16, 64, 1000} {
				b.Run(fmt.Sprint("limit=", limit), func(b *testing.B) {
					compare(b, 1, 16, contender{"waiting/s", func() error {
						list, err := s.Waiting(b.Context(), []string{"tool"}, "user37", limit)
						if err == nil && (c.worker == "" && len(list) != limit || c.worker != "" && len(list) > 0) {
							err = fmt.Errorf("%d tasks at limit %d", len(list), limit)
						}
						return err
					}}, contender{"empty/s", func() error {
						_, err := s.List(b.Context(), "nobody", taskstore.Position{}, 1)
						return err
					}})
				})
			}
		})
	}
}

// compare measures two contenders, b.N times each. They take turns, because the speed of a disk
// changes. The ratio is the first one's rate in parts of the second one's.
func compare(b *testing.B, clients, turn int, first, second contender) {
	b.Helper()
	var firstTime, secondTime time.Duration
	b.ResetTimer()
	for done := 0; done < b.N; done += turn {
		n := min(turn, b.N-done)
		firstTime += measure(b, clients, n, first.do)
		secondTime += measure(b, clients, n, second.do)
	}
	b.ReportMetric(float64(b.N)/firstTime.Seconds(), first.unit)
	b.ReportMetric(float64(b.N)/secondTime.Seconds(), second.unit)
	b.ReportMetric(secondTime.Seconds()/firstTime.Seconds(), "ratio")
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
