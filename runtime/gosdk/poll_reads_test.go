package gosdk_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// readStore counts how often a record is read for a request.
type readStore struct {
	mcptask.Store

	reads atomic.Int64
}

// Get implements mcptask.Store.
func (s *readStore) Get(ctx context.Context, id string) (mcptask.Record, error) {
	if ctx.Value(http.ServerContextKey) != nil {
		s.reads.Add(1)
	}
	return s.Store.Get(ctx, id)
}

// A poll reads its task once: a store may be far away.
func TestPollReadsOnce(t *testing.T) {
	for revision, create := range map[string]func(url string) (http.Header, string){
		mcptask.Revision20260728: func(url string) (http.Header, string) {
			id := createModern(t, url)
			return modernHeaders("tasks/get", id), modernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		},
		mcptask.Revision20251125: func(url string) (http.Header, string) {
			headers := legacyHeaders(t, url)
			var created struct {
				Task struct{ TaskID string } `json:"task"`
			}
			post(t, url, headers, legacyBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}`)).result(t, &created)
			return headers, legacyBody("tasks/get", fmt.Sprintf(`"taskId":%q`, created.Task.TaskID))
		},
	} {
		t.Run(revision, func(t *testing.T) {
			store := &readStore{Store: mcptask.NewMemoryStore()}
			defer func() { _ = store.Close() }()
			url, _ := serve(t, mcptask.Options{Store: store})
			headers, body := create(url)
			before := store.reads.Load()
			var task struct{ TaskID string }
			if post(t, url, headers, body).result(t, &task); task.TaskID == "" {
				t.Fatal("no task")
			}
			if reads := store.reads.Load() - before; reads != 1 {
				t.Errorf("a poll has read the task %d times", reads)
			}
		})
	}
}
