package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// elsewhere lets other goroutines run in the middle of what should be one step.
func elsewhere() {
	for range 3 {
		runtime.Gosched()
	}
	time.Sleep(50 * time.Microsecond)
}

// force updates a record, whatever its version is.
func force(ctx context.Context, s mcptask.Store, r mcptask.Record) (mcptask.Record, error) {
	for {
		now, err := s.Get(ctx, r.ID)
		if err != nil {
			return r, err
		}
		r.Version = now.Version
		if r, err = s.Update(ctx, r, mcptask.Quota{}); !errors.Is(err, mcptask.ErrConflict) {
			return r, err
		}
	}
}

// faults lists stores that break a promise, with the tests that must find each. A fault that makes
// calls hang is found when the test's time is over.
var faults = []struct {
	name  string
	found string // names of promises, separated by commas
	hangs bool
	fault func(b *broken)
}{
	{"a waiter looks before it listens", "Wait/no lost wake-up", true, func(b *broken) {
		changed := make(chan struct{})
		b.wait = func(ctx context.Context, id string, version int64) (mcptask.Record, error) {
			for {
				if r, err := b.Store.Get(ctx, id); err != nil || r.Version > version {
					return r, err
				}
				elsewhere()
				b.mu.Lock()
				c := changed
				b.mu.Unlock()
				select {
				case <-c:
				case <-ctx.Done():
					return mcptask.Record{}, ctx.Err()
				}
			}
		}
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			r, err := b.Store.Update(ctx, r, quota)
			b.mu.Lock()
			close(changed)
			changed = make(chan struct{})
			b.mu.Unlock()
			return r, err
		}
	}},
	{"only one of many waiters wakes", "Wait/what is new,Wait/thousands", true, func(b *broken) {
		type waiters struct {
			count     atomic.Int32
			forgotten context.Context // is done once all but the first wait in vain
			forget    func()
		}
		all := map[string]*waiters{}
		of := func(id string) *waiters {
			b.mu.Lock()
			defer b.mu.Unlock()
			if all[id] == nil {
				all[id] = new(waiters)
				all[id].forgotten, all[id].forget = context.WithCancel(context.Background())
			}
			return all[id]
		}
		b.wait = func(ctx context.Context, id string, version int64) (mcptask.Record, error) {
			w := of(id)
			if w.count.Add(1) > 1 {
				if r, err := b.Store.Get(ctx, id); err == nil && r.Version <= version {
					w.forget()
					<-ctx.Done()
					return mcptask.Record{}, ctx.Err()
				}
			}
			return b.Store.Wait(ctx, id, version)
		}
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			select {
			case <-of(r.ID).forgotten.Done():
			case <-ctx.Done():
			}
			return b.Store.Update(ctx, r, quota)
		}
	}},
	{"a deletion wakes no waiter", "Wait/gone", true, waitsOn(mcptask.ErrNoRecord)},
	{"a closed store keeps its waiters", "Close/waiting calls", true, waitsOn(mcptask.ErrServerClosed)},
	{"a cancelled wait returns no error", "Wait/called off", false, func(b *broken) {
		b.wait = func(ctx context.Context, id string, version int64) (mcptask.Record, error) {
			r, err := b.Store.Wait(ctx, id, version)
			if isContext(err) {
				return b.Store.Get(context.WithoutCancel(ctx), id)
			}
			return r, err
		}
	}},
	{"the last writer wins", "Update/compare and set,Update/one winner,Lease/fencing,all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			return force(ctx, b.Store, r)
		}
	}},
	{"compare and set in two steps", "Update/one winner,all/random histories", false, func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			now, err := b.Store.Get(ctx, r.ID)
			if err != nil {
				return r, err
			}
			if now.Version != r.Version {
				return r, mcptask.ErrConflict
			}
			elsewhere()
			return force(ctx, b.Store, r)
		}
	}},
	{"an update restores a deleted record", "Update/compare and set,all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			stored, err := b.Store.Update(ctx, r, quota)
			if errors.Is(err, mcptask.ErrNoRecord) {
				return b.Store.Create(ctx, r, mcptask.Quota{})
			}
			return stored, err
		}
	}},
	{"an update takes a new tool", "Update/what never changes,all/random programs", false, func(b *broken) {
		tools := map[string]string{}
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			stored, err := b.Store.Update(ctx, r, quota)
			if err == nil {
				stored.Tool = r.Tool
				tools[r.ID] = r.Tool
			}
			return stored, err
		}
		b.get = func(ctx context.Context, id string) (mcptask.Record, error) {
			r, err := b.Store.Get(ctx, id)
			if tool := tools[id]; err == nil && tool != "" {
				r.Tool = tool
			}
			return r, err
		}
	}},
	{"a reader sees parts of two versions", "Update/whole records", false, func(b *broken) {
		b.get = func(ctx context.Context, id string) (mcptask.Record, error) {
			former, err := b.Store.Get(ctx, id)
			if err != nil {
				return former, err
			}
			next, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			_, _ = b.Store.Wait(next, id, former.Version) // there may be none
			r, err := b.Store.Get(ctx, id)
			r.StatusMessage = former.StatusMessage
			return r, err
		}
	}},
	{"reads lag behind", "all/random histories,all/random programs", false, func(b *broken) {
		seen := map[string]mcptask.Record{}
		b.get = func(ctx context.Context, id string) (mcptask.Record, error) {
			r, err := b.Store.Get(ctx, id)
			if err != nil {
				return r, err
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			former, ok := seen[id]
			seen[id] = r
			if ok && former.CreatedAt.Equal(r.CreatedAt) {
				return former, nil
			}
			return r, nil
		}
	}},
	{"a page begins with the last record of the one before", "List/pages,all/random programs", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
			if after.ID != "" {
				after.ID = after.ID[:len(after.ID)-1]
			}
			return b.Store.List(ctx, principal, after, limit)
		}
	}},
	{"a page leaves its first record out", "List/pages,List/under change", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
			page, err := b.Store.List(ctx, principal, after, limit+1)
			if after.ID == "" || len(page) <= limit {
				return page[:min(len(page), limit)], err
			}
			return page[1:], err
		}
	}},
	{"pages by number", "List/under change", false, func(b *broken) {
		places := map[mcptask.Position]int{}
		b.list = func(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			after.CreatedAt = after.CreatedAt.UTC()
			from := places[after]
			page, err := b.Store.List(ctx, principal, mcptask.Position{}, from+limit)
			page = page[min(from, len(page)):]
			if len(page) > 0 {
				last := page[len(page)-1]
				places[mcptask.Position{CreatedAt: last.CreatedAt.UTC(), ID: last.ID}] = from + len(page)
			}
			return page, err
		}
	}},
	{"the ID does not order", "List/pages", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
			page, err := b.Store.List(ctx, principal, after, limit)
			slices.Reverse(page)
			slices.SortStableFunc(page, func(a, b mcptask.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
			return page, err
		}
	}},
	{"principals are padded", "List/one principal", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
			return b.Store.List(ctx, strings.TrimSpace(principal), after, limit)
		}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			r.Principal = strings.TrimSpace(r.Principal)
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"one more than the quota", "Create/quota,Create/quota in a race,all/random programs", false, storesOther(func(_ *mcptask.Record, quota *mcptask.Quota) {
		if quota.Account.Unfinished > 0 {
			quota.Account.Unfinished++
		}
	})},
	{"count and create in two steps", "Create/quota in a race", false, func(b *broken) {
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			all, err := b.Store.List(ctx, r.Principal, mcptask.Position{}, 1000)
			if err != nil {
				return r, err
			}
			unfinished := 0
			for _, other := range all {
				if !other.Done() {
					unfinished++
				}
			}
			if bound := quota.Account.Unfinished; bound > 0 && unfinished >= bound && !r.Done() {
				return r, &mcptask.QuotaError{Scope: mcptask.ScopeAccount, Err: mcptask.ErrQuotaUnfinished}
			}
			elsewhere()
			quota.Account.Unfinished = 0
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"a finished record counts as unfinished", "Create/quota", false, func(b *broken) {
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			got, err := b.Store.Create(ctx, r, quotaOf(quota.Account.Unfinished, 0))
			if errors.Is(err, mcptask.ErrQuotaStored) {
				err = &mcptask.QuotaError{Scope: mcptask.ScopeAccount, Err: mcptask.ErrQuotaUnfinished}
			}
			return got, err
		}
	}},
	{"count the server's records and create in two steps", "Create/quota in a race", false, func(b *broken) {
		stored := map[string]bool{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			b.mu.Lock()
			n := 0
			for id := range stored {
				if _, err := b.Store.Get(ctx, id); err == nil {
					n++
				}
			}
			b.mu.Unlock()
			if bound := quota.Server.Unfinished; bound > 0 && n >= bound {
				return r, &mcptask.QuotaError{Scope: mcptask.ScopeServer, Err: mcptask.ErrQuotaUnfinished}
			}
			elsewhere()
			quota.Server = mcptask.Usage{}
			r, err := b.Store.Create(ctx, r, quota)
			b.mu.Lock()
			stored[r.ID] = true
			b.mu.Unlock()
			return r, err
		}
	}},
	{"the anonymous quota is ignored", "Create/quota of scopes,all/random programs", false, storesOther(func(_ *mcptask.Record, quota *mcptask.Quota) {
		quota.Anonymous = mcptask.Usage{}
	})},
	{"the server's quota is ignored", "Create/quota of scopes,all/random programs", false, storesOther(func(_ *mcptask.Record, quota *mcptask.Quota) {
		quota.Server = mcptask.Usage{}
	})},
	{"principals count among the anonymous", "Create/quota of scopes,all/random programs", false, func(b *broken) {
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			if quota.Server == (mcptask.Usage{}) {
				quota.Server, quota.Anonymous = quota.Anonymous, mcptask.Usage{}
			}
			r, err := b.Store.Create(ctx, r, quota)
			if full := (*mcptask.QuotaError)(nil); errors.As(err, &full) {
				err = &mcptask.QuotaError{Scope: mcptask.ScopeAnonymous, Err: full.Err}
			}
			return r, err
		}
	}},
	{"the error does not name the scope", "Create/quota of scopes,Update/quota of bytes", false, func(b *broken) {
		plain := func(change changeFunc) changeFunc {
			return func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
				r, err := change(ctx, r, quota)
				if isQuota(err) {
					err = errors.Unwrap(err)
				}
				return r, err
			}
		}
		b.create, b.update = plain(b.create), plain(b.update)
	}},
	{"deleted bytes still count", "Create/quota of scopes", false, func(b *broken) {
		var ever int64
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			if ever += r.Size(); quota.Server.Bytes > 0 && ever > quota.Server.Bytes {
				return r, &mcptask.QuotaError{Scope: mcptask.ScopeServer, Err: mcptask.ErrQuotaBytes}
			}
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"a record may grow beyond the quota", "Update/quota of bytes,Update/quota of bytes in a race,all/random programs", false, updatesQuota(func(_ mcptask.Record, quota *mcptask.Quota) { *quota = mcptask.Quota{} })},
	{"a result does not count", "Update/quota of bytes", false, updatesQuota(func(r mcptask.Record, quota *mcptask.Quota) {
		if r.Outcome != nil {
			*quota = mcptask.Quota{}
		}
	})},
	{"a full scope refuses every update", "Update/quota of bytes", false, func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			if quota.Server.Bytes == 1 {
				return r, &mcptask.QuotaError{Scope: mcptask.ScopeServer, Err: mcptask.ErrQuotaBytes}
			}
			return b.Store.Update(ctx, r, quota)
		}
	}},
	{"add the bytes and write in two steps", "Update/quota of bytes in a race", false, func(b *broken) {
		sizes := map[string]int64{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			sizes[r.ID] = r.Size()
			return b.Store.Create(ctx, r, quota)
		}
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			b.mu.Lock()
			bytes, grows := r.Size(), r.Size() > sizes[r.ID]
			for id, size := range sizes {
				if id != r.ID {
					bytes += size
				}
			}
			b.mu.Unlock()
			if bound := max(quota.Server.Bytes, quota.Anonymous.Bytes); grows && bytes > bound {
				return r, &mcptask.QuotaError{Scope: mcptask.ScopeServer, Err: mcptask.ErrQuotaBytes}
			}
			elsewhere()
			r, err := b.Store.Update(ctx, r, mcptask.Quota{})
			b.mu.Lock()
			sizes[r.ID] = r.Size()
			b.mu.Unlock()
			return r, err
		}
	}},
	{"a refused create leaves its key", "Create/quota", false, func(b *broken) {
		left := map[string]bool{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			if left[r.IdempotencyKey] && r.IdempotencyKey != "" {
				return r, mcptask.ErrExists
			}
			got, err := b.Store.Create(ctx, r, quota)
			left[r.IdempotencyKey] = isQuota(err)
			return got, err
		}
	}},
	{"keys are shared between principals", "Create/keys,all/random programs", false, confusesKeys(func(r mcptask.Record) string { return r.Tool + "\x00" + r.IdempotencyKey })},
	{"the parts of a key are joined without a separator", "Create/keys", false, confusesKeys(func(r mcptask.Record) string { return r.Principal + r.Tool + r.IdempotencyKey })},
	{"a key outlives its record", "Create/keys", false, func(b *broken) {
		keys := map[[3]string]bool{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			key := [3]string{r.Principal, r.Tool, r.IdempotencyKey}
			got, err := b.Store.Create(ctx, r, quota)
			if err == nil && keys[key] && r.IdempotencyKey != "" {
				err = mcptask.ErrExists
			}
			keys[key] = true
			return got, err
		}
	}},
	{"look up the key and create in two steps", "Create/keys in a race", false, func(b *broken) {
		keys := map[string]string{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			key := r.IdempotencyKey
			b.mu.Lock()
			id, ok := keys[key]
			b.mu.Unlock()
			if ok {
				other, err := b.Store.Get(ctx, id)
				if err == nil {
					err = mcptask.ErrExists
				}
				return other, err
			}
			elsewhere()
			r.IdempotencyKey = ""
			got, err := b.Store.Create(ctx, r, quota)
			b.mu.Lock()
			keys[key] = r.ID
			b.mu.Unlock()
			return got, err
		}
	}},
	{"a record with a known ID replaces the other", "Create/get and delete", false, func(b *broken) {
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			if old, err := b.Store.Get(ctx, r.ID); err == nil {
				_ = b.Store.Delete(ctx, old)
			}
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"a record is deleted by its ID alone", "Delete/what was seen,all/random programs", false, func(b *broken) {
		b.delete = func(ctx context.Context, r mcptask.Record) error {
			now, err := b.Store.Get(ctx, r.ID)
			if err != nil {
				return err
			}
			return b.Store.Delete(ctx, now)
		}
	}},
	{"a record is deleted by a version of another record with its ID", "Delete/what was seen,all/random programs", false, func(b *broken) {
		b.delete = func(ctx context.Context, r mcptask.Record) error {
			if now, err := b.Store.Get(ctx, r.ID); err == nil && now.Version == r.Version {
				r = now
			}
			return b.Store.Delete(ctx, r)
		}
	}},
	{"a returned record is shared with the store", "Get/a copy", false, func(b *broken) {
		cache := map[string]mcptask.Record{}
		b.get = func(ctx context.Context, id string) (mcptask.Record, error) {
			r, err := b.Store.Get(ctx, id)
			if known, ok := cache[id]; ok && err == nil && known.Version == r.Version {
				return known, nil
			}
			cache[id] = r
			return r, err
		}
	}},
	{"times are kept to the millisecond", "Get/what was stored,Create/get and delete", false, storesOther(func(r *mcptask.Record, _ *mcptask.Quota) {
		r.UpdatedAt = r.UpdatedAt.Truncate(time.Millisecond)
	})},
	{"text is made UTF-8", "Get/what was stored", false, storesOther(func(r *mcptask.Record, _ *mcptask.Quota) {
		r.StatusMessage = strings.ToValidUTF8(r.StatusMessage, "\ufffd")
	})},
	{"text ends at NUL", "Get/what was stored", false, storesOther(func(r *mcptask.Record, _ *mcptask.Quota) {
		r.Revision, _, _ = strings.Cut(r.Revision, "\x00")
	})},
	{"JSON is written anew", "Get/what was stored", false, storesOther(func(r *mcptask.Record, _ *mcptask.Quota) {
		var compact bytes.Buffer
		if json.Compact(&compact, r.Arguments) == nil {
			r.Arguments = compact.Bytes()
		}
	})},
	{"nil becomes null", "Get/what was stored", false, storesOther(func(r *mcptask.Record, _ *mcptask.Quota) {
		if r.Arguments == nil {
			r.Arguments = json.RawMessage("null")
		}
	})},
	{"a task expires after its moment", "Expire/batches,all/random programs", false, func(b *broken) {
		b.expire = func(ctx context.Context, now time.Time, limit int) ([]mcptask.Record, error) {
			return b.Store.Expire(ctx, now.Add(-time.Microsecond), limit)
		}
	}},
	{"batches of one more", "Expire/batches", false, func(b *broken) {
		b.expire = func(ctx context.Context, now time.Time, limit int) ([]mcptask.Record, error) {
			return b.Store.Expire(ctx, now, limit+1)
		}
	}},
	{"select and delete in two steps", "Expire/in a race", false, func(b *broken) {
		stored := map[string]bool{}
		b.create = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			stored[r.ID] = true
			return b.Store.Create(ctx, r, quota)
		}
		b.expire = func(ctx context.Context, now time.Time, limit int) ([]mcptask.Record, error) {
			var gone []mcptask.Record
			for _, id := range slices.Sorted(maps.Keys(stored)) {
				if r, err := b.Store.Get(ctx, id); err == nil && !r.ExpiresAt.After(now) && len(gone) < limit {
					gone = append(gone, r)
				}
			}
			elsewhere()
			for _, r := range gone {
				_ = b.Store.Delete(ctx, r)
			}
			return gone, nil
		}
	}},
	{"a lease is taken at its last moment", "Lease/fencing,all/random programs", false, func(b *broken) {
		b.lease = func(ctx context.Context, worker string, now, until time.Time, limit int) ([]mcptask.Record, error) {
			return b.Store.Lease(ctx, worker, now.Add(time.Microsecond), until, limit)
		}
	}},
	{"a lease without fencing", "Lease/fencing", false, func(b *broken) {
		former := map[string]int64{}
		b.lease = func(ctx context.Context, worker string, now, until time.Time, limit int) ([]mcptask.Record, error) {
			taken, err := b.Store.Lease(ctx, worker, now, until, limit)
			for _, r := range taken {
				former[r.ID] = r.Version - 1
			}
			return taken, err
		}
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			if former[r.ID] == r.Version {
				return force(ctx, b.Store, r)
			}
			return b.Store.Update(ctx, r, quota)
		}
	}},
	{"an orphan goes to two workers", "Lease/in a race,all/random histories", false, func(b *broken) {
		var last []mcptask.Record
		b.lease = func(ctx context.Context, worker string, now, until time.Time, limit int) ([]mcptask.Record, error) {
			taken, err := b.Store.Lease(ctx, worker, now, until, limit)
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(taken) > 0 && len(last) > 0 {
				taken[0] = last[0]
				taken[0].Worker = worker
			}
			last = taken
			return taken, err
		}
	}},
	{"a renewal affects all workers", "Lease/renew and release,Lease/fencing,all/random programs", false, func(b *broken) {
		b.renew = func(ctx context.Context, worker string, until time.Time) error {
			return errors.Join(b.Store.Renew(ctx, "w1", until), b.Store.Renew(ctx, "w2", until), b.Store.Renew(ctx, "w9", until))
		}
	}},
	{"a release does nothing", "Lease/renew and release,all/random programs", false, func(b *broken) {
		b.release = func(context.Context, string) error { return nil }
	}},
	{"an update undoes a renewal", "Lease/under update,all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			stored, err := b.Store.Update(ctx, r, quota)
			if err == nil && !stored.Done() {
				err = b.Store.Renew(ctx, r.Worker, r.LeaseUntil)
			}
			return stored, err
		}
	}},
	{"an update that fails for its context is done", "all/ended context", false, func(b *broken) {
		b.update = func(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
			stored, err := b.Store.Update(ctx, r, quota)
			if err == nil {
				err = ctx.Err()
			}
			return stored, err
		}
	}},
}
