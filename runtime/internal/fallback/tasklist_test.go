package fallback

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// countingStore counts the pages that are read.
type countingStore struct {
	taskstore.Store
	pages int
}

func (s *countingStore) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	s.pages++
	return s.Store.List(ctx, principal, after, limit)
}

// TestFindRecent lists tasks of a caller who has many. The newest are found, and the oldest if there are not too many
// between, with a bounded number of reads.
func TestFindRecent(t *testing.T) {
	const day = 24 * time.Hour
	every := func(n int, step, first time.Duration) (ages []time.Duration) {
		for i := range n {
			ages = append(ages, first+time.Duration(i)*step)
		}
		return ages
	}
	for name, test := range map[string]struct {
		old, recent []time.Duration // the ages of tasks that have ended long ago, and of late
		want        int             // how many of the recent ones are found, or 10 and more
		more        bool
		pages       int // read at most
	}{
		"none":             {nil, nil, 0, false, 1},
		"few":              {every(20, time.Hour, 2*time.Hour), every(9, day, 0), 9, false, 1},
		"many recent":      {every(1500, time.Second, 2*time.Hour), every(1500, time.Second, time.Second), 10, true, 5},
		"one is very old":  {every(600, time.Minute, 2*time.Hour), []time.Duration{time.Minute, 20 * day}, 2, false, 30},
		"too many between": {every(3000, time.Second, 2*time.Hour), []time.Duration{time.Minute, 20 * day}, 1, true, mostPages},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				time.Sleep(30 * day)
				store, now := &countingStore{Store: taskstore.NewMemory()}, time.Now()
				add := func(age time.Duration, ended time.Time) string {
					id := fmt.Sprintf("%v-%v", age, ended.Unix())
					r := taskstore.Record{ID: id, Principal: "p", Tool: "work", Phase: taskstore.PhaseDone, Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeCancelled},
						CreatedAt: now.Add(-age), TerminalAt: ended, ExpiresAt: now.Add(day)}
					if _, err := store.Create(t.Context(), r, taskstore.Quota{}); err != nil {
						t.Fatal(err)
					}
					return id
				}
				for _, age := range test.old {
					add(age, now.Add(-2*time.Hour))
				}
				var want []string
				for _, age := range test.recent {
					want = append(want, add(age, now))
				}
				policy := mcptask.Policy{Task: mcptask.TaskOptional}
				work := mcptask.NewTool(mcptask.ToolSpec{Name: "work", InputSchema: mcptask.NoArguments, Policy: policy},
					func(context.Context, *mcptask.Task, struct{}) (struct{}, error) { return struct{}{}, nil })
				server, err := taskserver.New(taskserver.Options{Store: store}, mcptask.Tools{Service: "S", Impl: 1, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{work}})
				if err != nil {
					t.Fatal(err)
				}
				defer server.Close()
				h := helper{set: listSets(server.Backend())[0], caller: taskserver.Caller{Principal: "p"}}
				found, more, err := h.findRecent(t.Context())
				var got []string
				for _, r := range found {
					got = append(got, r.ID)
				}
				if err != nil || more != test.more || !slices.Equal(got, want[:test.want]) || store.pages > test.pages {
					t.Errorf("%v, %v, %v with %d pages, want %v", got, more, err, store.pages, want[:test.want])
				}
			})
		})
	}
}
