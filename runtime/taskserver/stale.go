package taskserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// staleEvery is how often a server looks for stale tasks, after a first time soon after its start. staleLog is how often
	// it logs them, unless their numbers have changed.
	staleEvery, staleLog = 5 * time.Minute, time.Hour
	// stalePage is how many tasks are read together, and stalePause the pause after them.
	stalePage  = 64
	stalePause = time.Second
	// mostStale bounds the tasks of one look: the oldest ones are looked at.
	mostStale = 4096
)

// StaleTasks counts unfinished tasks that do not fit a server, by tool.
type StaleTasks struct {
	// Unserved counts the tasks of tools that the server does not have and for which no worker is known: no worker
	// that lives has a task of the tool.
	Unserved map[string]int
	// Changed counts the tasks whose arguments no longer fit the input schema of their tool, unless it says
	// onchange=run.
	Changed map[string]int
}

// StaleTasks returns what the last look of the server has found. It looks half a minute after its start, and then every five
// minutes, at the 4,096 oldest unfinished tasks. It finds none if the store is no [taskstore.Inspector].
func (s *Server) StaleTasks() StaleTasks {
	if found := s.backend.stale.Load(); found != nil {
		return found.StaleTasks
	}
	return StaleTasks{}
}

// staleReasons is what a look has found.
type staleReasons struct {
	StaleTasks
	byTask map[string]string // by ID, in a sentence
	logged time.Time         // when these counts were last logged; zero if they were not
}

// Stale returns why a task does not fit the server, as of the last look; see [Server.StaleTasks]. It returns "" if it
// fits, or has ended.
func (b *Backend) Stale(r *taskstore.Record) string {
	found := b.stale.Load()
	if found == nil || r.Done() {
		return ""
	}
	return found.byTask[r.ID]
}

// lookForStale looks for stale tasks and logs how many there are.
func (b *Backend) lookForStale() time.Duration {
	found, err := b.findStale(b.closing)
	if err != nil {
		if b.closing.Err() == nil {
			b.logger.Warn("stored tasks not checked", "error", err)
		}
		return staleEvery
	}
	if former := b.stale.Load(); former != nil && reflect.DeepEqual(former.StaleTasks, found.StaleTasks) {
		found.logged = former.logged
	}
	isDue := len(found.byTask) > 0 && (found.logged.IsZero() || time.Since(found.logged) >= staleLog)
	if isDue {
		found.logged = time.Now()
	}
	b.stale.Store(found)
	if isDue {
		b.logger.Warn("unfinished tasks do not fit the tools of this server: list them with mcptask tasks --stale, or on the operator's page",
			"no_tool", total(found.Unserved), "tools", slices.Sorted(maps.Keys(found.Unserved)),
			"changed", total(found.Changed), "changed_tools", slices.Sorted(maps.Keys(found.Changed)))
	}
	return staleEvery
}

// total adds counts.
func total(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}

// findStale looks at the oldest unfinished tasks.
func (b *Backend) findStale(ctx context.Context) (*staleReasons, error) {
	found := &staleReasons{StaleTasks: StaleTasks{map[string]int{}, map[string]int{}}, byTask: map[string]string{}}
	inspector, t := b.store.(taskstore.Inspector), b.newTaskRetry()
	leases, err := callOnce(ctx, t, "Workers", inspector.Workers)
	if err != nil {
		return nil, err
	}
	isAlive := map[string]bool{}
	for _, lease := range leases {
		isAlive[lease.Worker] = lease.Worker != "" && lease.Until.After(b.Now()) && (b.engine == nil || lease.Worker != b.engine.Name())
	}
	isServed := map[string]bool{}
	unserved := map[string]string{} // tool by task
	filter := taskstore.Filter{Unfinished: true, OldestFirst: true}
	for after, n := (taskstore.Position{}), 0; n < mostStale; n += stalePage {
		page, err := callOnce(ctx, t, "Scan", func(ctx context.Context) ([]taskstore.Record, error) {
			return inspector.Scan(ctx, filter, after, stalePage)
		})
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			after = r.Position()
			switch tool, isHere := b.catalog.findTool(r.Tool); {
			case !isHere && isAlive[r.Claim.Worker]:
				isServed[r.Tool] = true
			case !isHere:
				unserved[r.ID] = r.Tool
			case tool.Spec.Policy.OnChange == mcptask.RunOnChange, r.Claim.State == taskstore.ClaimRunning && isAlive[r.Claim.Worker]:
			default:
				if err := b.findMisfit(ctx, t, r, tool, found); err != nil {
					return nil, err
				}
			}
		}
		if len(page) < stalePage || !t.pauseFor(ctx, stalePause) {
			break
		}
	}
	for id, tool := range unserved {
		if !isServed[tool] {
			found.Unserved[tool]++
			found.byTask[id] = fmt.Sprintf("no server is known to have its tool %q", tool)
		}
	}
	return found, nil
}

// findMisfit notes a task whose arguments do not fit its tool. A scan may have left them out.
func (b *Backend) findMisfit(ctx context.Context, t *storeRetry, r taskstore.Record, tool *registeredTool, found *staleReasons) error {
	whole, err := callOnce(ctx, t, "Get", func(ctx context.Context) (taskstore.Record, error) { return b.store.Get(ctx, r.ID) })
	switch {
	case isGone(err), errors.Is(err, taskstore.ErrUnreadable), err == nil && (whole.Done() || !whole.CreatedAt.Equal(r.CreatedAt)):
		return nil
	case err != nil:
		return err
	}
	if _, misfit := tool.bindStored(whole.Arguments); misfit != nil {
		found.Changed[r.Tool]++
		found.byTask[r.ID] = cutMessage(misfit.Message)
	}
	return nil
}
