package storetest

import (
	"context"
	"flag"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The methods of a store that change a record, and those that list records.
type (
	createFunc = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error)
	updateFunc = func(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error)
	feedFunc   = func(ctx context.Context) iter.Seq2[taskstore.Change, error]
	listFunc   = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error)
	waitFunc   = func(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error)
	leaseFunc  = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error)
)

// broken is a memory store with one fault, which replaces some of the methods.
type broken struct {
	taskstore.Store
	aside   *setAside
	mu      sync.Mutex
	create  createFunc
	update  updateFunc
	steps   func(ctx context.Context, id string) ([]taskstore.Step, error)
	get     func(ctx context.Context, id string) (taskstore.Record, error)
	list    listFunc
	delete  func(ctx context.Context, r taskstore.Record) error
	expire  func(ctx context.Context, limit int) ([]taskstore.Record, error)
	changes feedFunc
	waiting waitFunc
	lease   leaseFunc
	beat    func(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error)
	release func(ctx context.Context, worker string) error
	close   func() error
	scan    func(ctx context.Context, filter taskstore.Filter, before taskstore.Position, limit int) ([]taskstore.Record, error)
	count   func(ctx context.Context) ([]taskstore.Count, error)
	failed  func(ctx context.Context, since time.Time) ([]taskstore.Count, error)
	workers func(ctx context.Context) ([]taskstore.WorkerLease, error)
	heads   func(ctx context.Context, id string) ([]taskstore.StepSummary, error)
}

// newBroken returns a memory store without a fault yet.
func newBroken(t testing.TB) *broken {
	s := openMemory(t)
	i := s.(taskstore.Inspector)
	aside := &setAside{Store: s, aside: map[string]taskstore.Record{}}
	return &broken{
		Store: s, aside: aside, create: aside.Create, update: s.Update, steps: s.Steps, get: aside.Get, list: s.List, delete: s.Delete, expire: aside.Expire,
		changes: s.Changes, waiting: s.Waiting, lease: s.Lease, beat: s.Beat, release: s.Release, close: s.Close, scan: i.Scan, count: i.CountUnfinished,
		failed: i.CountFailed, workers: i.Workers, heads: i.ListSteps,
	}
}

func (b *broken) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	return b.create(ctx, r, quota)
}

func (b *broken) Get(ctx context.Context, id string) (taskstore.Record, error) { return b.get(ctx, id) }

func (b *broken) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	return b.update(ctx, from, to, quota, steps...)
}

func (b *broken) Steps(ctx context.Context, id string) ([]taskstore.Step, error) {
	return b.steps(ctx, id)
}

func (b *broken) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	return b.list(ctx, principal, after, limit)
}

func (b *broken) Delete(ctx context.Context, r taskstore.Record) error { return b.delete(ctx, r) }

func (b *broken) Expire(ctx context.Context, limit int) ([]taskstore.Record, error) {
	return b.expire(ctx, limit)
}

func (b *broken) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return b.changes(ctx)
}

func (b *broken) Waiting(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
	return b.waiting(ctx, tools, after, limit)
}

func (b *broken) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
	return b.lease(ctx, worker, lease, tools, limit)
}

func (b *broken) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	return b.beat(ctx, worker, lease, held)
}

func (b *broken) Release(ctx context.Context, worker string) error { return b.release(ctx, worker) }

func (b *broken) Close() error { return b.close() }

func (b *broken) Scan(ctx context.Context, filter taskstore.Filter, before taskstore.Position, limit int) ([]taskstore.Record, error) {
	return b.scan(ctx, filter, before, limit)
}

func (b *broken) CountUnfinished(ctx context.Context) ([]taskstore.Count, error) { return b.count(ctx) }

func (b *broken) CountFailed(ctx context.Context, since time.Time) ([]taskstore.Count, error) {
	return b.failed(ctx, since)
}

func (b *broken) Workers(ctx context.Context) ([]taskstore.WorkerLease, error) { return b.workers(ctx) }

func (b *broken) ListSteps(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
	return b.heads(ctx, id)
}

// changesFeed is a fault: the feed has other items. The function returns the items of the feed for one change.
func changesFeed(change func(c taskstore.Change) []taskstore.Change) func(b *broken) {
	return func(b *broken) {
		b.changes = func(ctx context.Context) iter.Seq2[taskstore.Change, error] {
			return func(yield func(taskstore.Change, error) bool) {
				for c, err := range b.Store.Changes(ctx) {
					for _, item := range change(c) {
						if !yield(item, err) {
							return
						}
					}
				}
			}
		}
	}
}

// storesOther is a fault: Create stores another record than it is given, or applies another quota.
func storesOther(change func(r *taskstore.Record, quota *taskstore.Quota)) func(b *broken) {
	return func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			change(&r, &quota)
			return b.Store.Create(ctx, r, quota)
		}
	}
}

// keepsSteps is a fault: the store does not get the steps of updates. put gets them instead, by their names, with the
// error of the update and the steps that the task has.
func keepsSteps(put func(stored, steps map[string]taskstore.Step, err error)) func(b *broken) {
	return func(b *broken) {
		all := map[string]map[string]taskstore.Step{} // by ID
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			stored, err := b.aside.Create(ctx, r, quota)
			b.mu.Lock()
			defer b.mu.Unlock()
			if err == nil {
				delete(all, r.ID)
			}
			return stored, err
		}
		b.update = func(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			to, err := b.Store.Update(ctx, from, to, quota)
			named := map[string]taskstore.Step{}
			for _, step := range steps {
				named[step.Name] = step
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if all[from.ID] == nil {
				all[from.ID] = map[string]taskstore.Step{}
			}
			put(all[from.ID], named, err)
			return to, err
		}
		b.steps = func(ctx context.Context, id string) ([]taskstore.Step, error) {
			if _, err := b.Store.Get(ctx, id); err != nil {
				return nil, taskstore.ErrNoRecord
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			steps := slices.Collect(maps.Values(all[id]))
			taskstore.SortSteps(steps)
			return steps, nil
		}
	}
}

// copySteps stores steps unless their update has failed.
func copySteps(stored, steps map[string]taskstore.Step, err error) {
	if err == nil {
		maps.Copy(stored, steps)
	}
}

// changesSteps is a fault: Steps returns other steps.
func changesSteps(change func(steps []taskstore.Step)) func(b *broken) {
	return func(b *broken) {
		b.steps = func(ctx context.Context, id string) ([]taskstore.Step, error) {
			steps, err := b.Store.Steps(ctx, id)
			change(steps)
			return steps, err
		}
	}
}

// changesWaiting is a fault: Waiting returns another list. The function gets a list of all tasks that wait, and returns
// it before it is cut at the limit.
func changesWaiting(change func(b *broken, list []taskstore.Waiting) []taskstore.Waiting) func(b *broken) {
	return func(b *broken) {
		b.waiting = func(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
			list, err := b.Store.Waiting(ctx, tools, after, 1000)
			list = change(b, list)
			return list[:min(len(list), limit)], err
		}
	}
}

// updatesQuota is a fault: Update applies another quota.
func updatesQuota(change func(r taskstore.Record, quota *taskstore.Quota)) func(b *broken) {
	return func(b *broken) {
		b.update = func(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			change(to, &quota)
			return b.Store.Update(ctx, from, to, quota, steps...)
		}
	}
}

// confusesKeys is a fault: records have the same key if this function says so.
func confusesKeys(of func(r taskstore.Record) string) func(b *broken) {
	return func(b *broken) {
		keys := map[string]string{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			key := of(r)
			if id, ok := keys[key]; ok && r.IdempotencyKey != "" {
				if other, err := b.Store.Get(ctx, id); err == nil {
					return other, taskstore.ErrExists
				}
			}
			keys[key] = r.ID
			return b.Store.Create(ctx, r, quota)
		}
	}
}

// TestBrokenStores checks that the tests find each fault.
func TestBrokenStores(t *testing.T) {
	// With -short too, 100 random programs of about 30 steps run: rapid divides these numbers then.
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "0s", "rapid.seed": "1", "rapid.checks": "500", "rapid.steps": "60"} {
		f := flag.Lookup(name)
		former := f.Value.String()
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Value.Set(former) }) // a former value is valid
	}
	for _, f := range faults {
		bubble.Run(t, f.name, func(t *testing.T) {
			stores := inBubble(func(t testing.TB) taskstore.Store {
				b := newBroken(t)
				f.fault(b)
				return b
			})
			for _, name := range strings.Split(f.found, ",") {
				began := time.Now()
				failures := recorded(t, name, stores)
				for seed := 2; len(failures) == 0 && name == "all/random programs" && seed < 20; seed++ {
					// rapid ends after a day, which passes quickly in a bubble
					if err := flag.Set("rapid.seed", strconv.Itoa(seed)); err != nil {
						t.Fatal(err)
					}
					failures = recorded(t, name, stores)
				}
				if len(failures) == 0 {
					t.Errorf("%s did not find it", name)
					continue
				}
				t.Logf("%s: %.300s", name, failures[0])
				// A random history goes on after a failure, and may then wait until its time is over.
				foundEarly := strings.HasPrefix(name, "all/random") && !strings.Contains(failures[0], "the feed ended")
				if !f.hangs && !foundEarly && time.Since(began) >= bubbleTimeout {
					t.Errorf("%s found it only because its time was over: %q", name, failures)
				}
			}
		})
	}
}

// TestEveryPromiseIsBroken checks that each promise finds a fault.
func TestEveryPromiseIsBroken(t *testing.T) {
	for _, p := range promises {
		if !slices.ContainsFunc(faults, func(f fault) bool { return slices.Contains(strings.Split(f.found, ","), p.name) }) &&
			p.name != "all/shared" && p.name != "all/reopened" && !strings.HasPrefix(p.name, "Sessions/") { // a memory store cannot
			t.Errorf("no fault breaks %s", p.name)
		}
	}
}
