//go:build unix

package chaos

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestQueues checks that tasks that wait for a slot run at any server of a store.
func TestQueues(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		shareQueue(t, "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		shareQueue(t, "postgres:"+pgtest.Database(t))
	})
}

// shareQueue makes tasks at one of two servers with four slots each. It ends some, and kills the server.
func shareQueue(t *testing.T, store string) {
	t.Helper()
	const slots = 4
	// The lease is so long that nothing waits for its end.
	f := newFleet(t, workerConfig{Store: store, SessionKey: sessionKey, Concurrency: slots, Lease: taskstore.LastingLease - time.Minute}, 2, 0)
	f.startAll()
	url := f.site.crowd.urls[0]
	l := &link{name: "p", revision: modern, principal: "p", record: f.site.record, http: &http.Client{}, choose: func() string { return url }}
	create := func(tasks int) (made []string) {
		for range tasks {
			o := l.create(t.Context(), ToolRestart, workInput{Nonce: "n", MS: int(time.Hour.Milliseconds())}, "", "")
			if o.Task == "" {
				t.Fatalf("no task: %s", o.Error)
			}
			made = append(made, o.Task)
		}
		return made
	}
	first := now()
	tasks := create(2*slots + 1)
	last := tasks[2*slots]
	began := f.awaitBegin(tasks, 2*slots)
	count, took := map[string]int{}, time.Duration(0)
	for _, r := range began {
		count[r.Process]++
		took = max(took, r.At.Sub(first))
	}
	t.Logf("%d tasks ran after %v", len(began), took.Round(time.Millisecond))
	if _, ok := began[last]; ok || count[f.workers[0].name] != slots || count[f.workers[1].name] != slots {
		t.Errorf("the tasks %q run as %+v, want %d at each server", tasks, began, slots)
	}
	if seen := l.get(t.Context(), last); seen.View == nil || !strings.HasPrefix(seen.View.Message, "Waits for a free slot") {
		t.Errorf("the last task is %+v", seen)
	}
	l.cancel(t.Context(), tasks[0])
	f.awaitBegin([]string{last}, 1)

	waiting := create(slots)
	f.end(f.workers[0], syscall.SIGKILL)
	url = f.site.crowd.urls[1]
	for _, task := range tasks {
		l.cancel(t.Context(), task)
	}
	for _, r := range f.awaitBegin(waiting, slots) {
		if r.Process != f.workers[1].name || r.Attempt != 1 {
			t.Errorf("a task that waited runs as %+v", r)
		}
	}
}

// awaitBegin waits until a number of tasks have begun to run, and returns their first runs.
func (f *fleet) awaitBegin(tasks []string, number int) (began map[string]Run) {
	f.t.Helper()
	for first := time.Now(); len(began) < number; time.Sleep(10 * time.Millisecond) {
		if time.Since(first) > f.settleWithin() {
			f.t.Fatalf("%d of %d tasks run", len(began), number)
		}
		began = map[string]Run{}
		for _, r := range f.site.history(f.t).Runs {
			if r.Moment == MomentStart && r.Attempt == 1 && slices.Contains(tasks, r.Task) {
				began[r.Task] = r
			}
		}
	}
	return began
}
