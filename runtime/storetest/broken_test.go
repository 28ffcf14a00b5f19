package storetest

import (
	"context"
	"errors"
	"flag"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// The methods of a store that change a record, and those that list records.
type (
	changeFunc = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error)
	listFunc   = func(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error)
	leaseFunc  = func(ctx context.Context, worker string, now, until time.Time, limit int) ([]mcptask.Record, error)
)

// broken is a memory store with one fault, which replaces some of the methods.
type broken struct {
	mcptask.Store
	mu             sync.Mutex
	create, update changeFunc
	get            func(ctx context.Context, id string) (mcptask.Record, error)
	list           listFunc
	delete         func(ctx context.Context, r mcptask.Record) error
	expire         func(ctx context.Context, now time.Time, limit int) ([]mcptask.Record, error)
	wait           func(ctx context.Context, id string, version int64) (mcptask.Record, error)
	lease          leaseFunc
	renew          func(ctx context.Context, worker string, until time.Time) error
	release        func(ctx context.Context, worker string) error
}

// newBroken returns a memory store without a fault yet.
func newBroken(t testing.TB) *broken {
	s := openMemory(t)
	return &broken{
		Store: s, create: s.Create, update: s.Update, get: s.Get, list: s.List, delete: s.Delete,
		expire: s.Expire, wait: s.Wait, lease: s.Lease, renew: s.Renew, release: s.Release,
	}
}

func (b *broken) Create(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	return b.create(ctx, r, quota)
}

func (b *broken) Get(ctx context.Context, id string) (mcptask.Record, error) { return b.get(ctx, id) }

func (b *broken) Update(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	return b.update(ctx, r, quota)
}

func (b *broken) List(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	return b.list(ctx, principal, after, limit)
}

func (b *broken) Delete(ctx context.Context, r mcptask.Record) error { return b.delete(ctx, r) }

func (b *broken) Expire(ctx context.Context, now time.Time, limit int) ([]mcptask.Record, error) {
	return b.expire(ctx, now, limit)
}

func (b *broken) Wait(ctx context.Context, id string, version int64) (mcptask.Record, error) {
	return b.wait(ctx, id, version)
}

func (b *broken) Lease(ctx context.Context, worker string, now, until time.Time, limit int) ([]mcptask.Record, error) {
	return b.lease(ctx, worker, now, until, limit)
}

func (b *broken) Renew(ctx context.Context, worker string, until time.Time) error {
	return b.renew(ctx, worker, until)
}

func (b *broken) Release(ctx context.Context, worker string) error { return b.release(ctx, worker) }

// storesOther is a fault: Create stores another record than it is given, or applies another quota.
func storesOther(change func(r *mcptask.Record, quota *mcptask.Quota)) func(b *broken) {
	return func(b *broken) {
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			change(&r, &quota)
			return b.Store.Create(ctx, r, quota)
		}
	}
}

// updatesQuota is a fault: Update applies another quota.
func updatesQuota(change func(r mcptask.Record, quota *mcptask.Quota)) func(b *broken) {
	return func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			change(r, &quota)
			return b.Store.Update(ctx, r, quota)
		}
	}
}

// waitsOn is a fault: Wait does not return with one of its errors.
func waitsOn(missed error) func(b *broken) {
	return func(b *broken) {
		b.wait = func(ctx context.Context, id string, version int64) (mcptask.Record, error) {
			r, err := b.Store.Wait(ctx, id, version)
			if errors.Is(err, missed) {
				<-ctx.Done()
				return r, ctx.Err()
			}
			return r, err
		}
	}
}

// confusesKeys is a fault: records have the same key if this function says so.
func confusesKeys(of func(r mcptask.Record) string) func(b *broken) {
	return func(b *broken) {
		keys := map[string]string{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			key := of(r)
			if id, ok := keys[key]; ok && r.IdempotencyKey != "" {
				if other, err := b.Store.Get(ctx, id); err == nil {
					return other, mcptask.ErrExists
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
		t.Run(f.name, func(t *testing.T) {
			stores := Stores{Open: func(t testing.TB) mcptask.Store {
				b := newBroken(t)
				f.fault(b)
				return b
			}}
			allowed := testTimeout
			if f.hangs {
				allowed = 500 * time.Millisecond
			}
			for _, name := range strings.Split(f.found, ",") {
				began := time.Now()
				failures := recorded(t, name, stores, allowed)
				if len(failures) == 0 {
					t.Errorf("%s did not find it", name)
					continue
				}
				t.Logf("%s: %.300s", name, failures[0])
				if !f.hangs && time.Since(began) > allowed {
					t.Errorf("%s found it only because its time was over: %q", name, failures)
				}
			}
		})
	}
}

// TestSoundStore checks that the tests find nothing in a sound store.
func TestSoundStore(t *testing.T) {
	for _, p := range promises {
		stores := Stores{Open: openMemory}
		want := 0
		if p.name == "all/shared" || p.name == "all/reopened" {
			want = 1 // skipped
		}
		if failures := recorded(t, p.name, stores, testTimeout); len(failures) != want {
			t.Errorf("%s: %q", p.name, failures)
		}
	}
}
