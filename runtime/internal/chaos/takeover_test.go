//go:build long && unix

package chaos

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestTakeover measures the time from the kill of a server until the handler of its task runs again. The lease is far
// longer. MCPTASK_KILLS says how often.
func TestTakeover(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "tasks.db") },
		"PostgreSQL": func(t *testing.T) string { return "postgres:" + pgtest.Database(t) },
	} {
		for what, replicas := range map[string]int{"by another server": 2, "by the same server, started again": 1} {
			t.Run(name+" "+what, func(t *testing.T) {
				measureTakeover(t, workerConfig{Store: open(t)}, replicas, countKills(t, 20))
			})
		}
	}
}

// measureTakeover kills the first of several servers again and again, and logs how long its task waited.
func measureTakeover(t *testing.T, config workerConfig, replicas, kills int) {
	t.Helper()
	config.Lease, config.SessionKey = taskstore.LastingLease-time.Minute, sessionKey
	f := newFleet(t, config, replicas, 0)
	f.startAll()
	l := &link{name: "p", revision: modern, principal: "p", record: f.site.record, http: &http.Client{}, choose: func() string { return f.site.crowd.urls[0] }}
	random := f.site.random()
	var took []time.Duration
	for range kills {
		made := l.create(t.Context(), ToolRestart, workInput{Nonce: "n", MS: int(time.Hour.Milliseconds())}, "", "")
		if made.Task == "" {
			t.Fatalf("no task: %s", made.Error)
		}
		f.awaitRun(made.Task, 1)
		time.Sleep(time.Duration(random.Int64N(int64(time.Second)))) // at any moment between two looks
		killed := now()
		f.end(f.workers[0], syscall.SIGKILL)
		if replicas == 1 {
			f.start(0)
		}
		took = append(took, f.awaitRun(made.Task, 2).Sub(killed))
		if replicas > 1 {
			f.start(0)
		}
		f.awaitAll()
		l.cancel(t.Context(), made.Task)
	}
	slices.Sort(took)
	t.Logf("%d kills: the handler ran again after %v, and %v at worst", len(took), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}

// TestTakeoverOfThousand measures the time from the kill of a server until the handlers of all its thousand tasks run again
// in another one.
func TestTakeoverOfThousand(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "tasks.db") },
		"PostgreSQL": func(t *testing.T) string { return "postgres:" + pgtest.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			const tasks, clients = 1000, 20
			config := workerConfig{Store: store(t), Lease: taskstore.LastingLease - time.Minute, SessionKey: sessionKey,
				Concurrency: 2 * tasks} // an account leaves a part of the slots to others
			f := newFleet(t, config, 2, 0)
			f.startAll()
			var calls sync.WaitGroup
			for i := range clients {
				calls.Go(func() {
					l := &link{name: fmt.Sprint("p", i), revision: modern, principal: "p", record: f.site.record, http: &http.Client{}, choose: func() string { return f.site.crowd.urls[0] }}
					for range tasks / clients {
						l.create(t.Context(), ToolRestart, workInput{Nonce: "n", MS: int(time.Hour.Milliseconds())}, "", "")
					}
				})
			}
			calls.Wait()
			f.awaitRuns(tasks, 1)
			killed := now()
			f.end(f.workers[0], syscall.SIGKILL)
			again := f.awaitRuns(tasks, 2)
			t.Logf("the first of %d handlers ran again after %v, and the last after %v", tasks,
				slices.MinFunc(again, time.Time.Compare).Sub(killed).Round(time.Millisecond), slices.MaxFunc(again, time.Time.Compare).Sub(killed).Round(time.Millisecond))
		})
	}
}

// awaitRuns waits until an attempt of a number of tasks runs, and returns when each began.
func (f *fleet) awaitRuns(tasks, attempt int) (began []time.Time) {
	f.t.Helper()
	for ; len(began) < tasks; time.Sleep(100 * time.Millisecond) {
		if f.t.Context().Err() != nil {
			f.t.Fatalf("attempt %d of %d tasks runs", attempt, len(began))
		}
		began = nil
		for _, r := range f.site.history(f.t).Runs {
			if r.Attempt == attempt && r.Moment == MomentStart {
				began = append(began, r.At)
			}
		}
	}
	return began
}

// awaitRun waits until an attempt of a task runs, and returns when it began.
func (f *fleet) awaitRun(task string, attempt int) time.Time {
	f.t.Helper()
	for f.t.Context().Err() == nil {
		for _, r := range f.site.history(f.t).Runs {
			if r.Task == task && r.Attempt == attempt && r.Moment == MomentStart {
				return r.At
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("attempt %d has not begun", attempt)
	return time.Time{}
}
