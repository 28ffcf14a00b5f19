package edgetest

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
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

// TestPollReadsOnce checks that a poll reads its task once, because a store may be far away.
func TestPollReadsOnce(t *testing.T) {
	for revision, create := range map[string]func(url string) (http.Header, string){
		mcptask.Revision20260728: func(url string) (http.Header, string) {
			id := wiretest.CreateModern(t, url)
			return wiretest.ModernHeaders("tasks/get", id), wiretest.ModernBody("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		},
		mcptask.Revision20251125: func(url string) (http.Header, string) {
			headers := wiretest.LegacyHeaders(t, url)
			var created struct {
				Task struct{ TaskID string } `json:"task"`
			}
			wiretest.Post(t, url, headers, wiretest.LegacyBody("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}`)).Result(t, &created)
			return headers, wiretest.LegacyBody("tasks/get", fmt.Sprintf(`"taskId":%q`, created.Task.TaskID))
		},
	} {
		t.Run(revision, func(t *testing.T) {
			store := &readStore{Store: mcptask.NewMemoryStore()}
			defer func() { _ = store.Close() }()
			url, _ := wiretest.Serve(t, mcptask.Options{Store: store})
			headers, body := create(url)
			before := store.reads.Load()
			var task struct{ TaskID string }
			if wiretest.Post(t, url, headers, body).Result(t, &task); task.TaskID == "" {
				t.Fatal("no task")
			}
			if reads := store.reads.Load() - before; reads != 1 {
				t.Errorf("a poll has read the task %d times", reads)
			}
		})
	}
}
