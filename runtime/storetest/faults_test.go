package storetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// elsewhere lets other goroutines run in the middle of a call that should be one step.
func elsewhere() {
	for range 3 {
		runtime.Gosched()
	}
	time.Sleep(50 * time.Microsecond)
}

// force updates a record, whatever its version is.
func force(ctx context.Context, s taskstore.Store, r taskstore.Record) (taskstore.Record, error) {
	for {
		now, err := s.Get(ctx, r.ID)
		if err != nil {
			return r, err
		}
		if stored, err := s.Update(ctx, now, r, taskstore.Quota{}); !errors.Is(err, taskstore.ErrConflict) {
			return stored, err
		}
	}
}

type fault struct {
	name  string
	found string // names of promises, separated by commas
	hangs bool
	fault func(b *broken)
}

// faults lists stores that break a promise, with the tests that must find each. A fault that makes
// calls hang is found when the test's time is over.
var faults = []fault{
	{"the last writer wins", "Update/compare and set,Update/one winner,Waiting/in a race,Lease/fencing,all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			return force(ctx, b.Store, r)
		}
	}},
	{"a create again is refused", "Create/again,Update/lost answers", false, func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			if _, err := b.aside.Get(ctx, r.ID); err == nil && r.IdempotencyKey == "" {
				return taskstore.Record{}, taskstore.ErrExists
			}
			return b.aside.Create(ctx, r, quota)
		}
	}},
	{"an update again is a conflict", "Update/again,Update/lost answers", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			if now, err := b.Store.Get(ctx, r.ID); err == nil && now.Version == from.Version+1 {
				return r, taskstore.ErrConflict
			}
			return b.Store.Update(ctx, from, r, quota, steps...)
		}
	}},
	{"an update again makes a version", "Update/again,Update/lost answers", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			if now, err := b.Store.Get(ctx, r.ID); err == nil && now.Version == from.Version+1 && now.Nonce == r.Nonce && r.Nonce != "" {
				from = now
			}
			return b.Store.Update(ctx, from, r, quota, steps...)
		}
	}},
	{"an update stores no steps", "Update/steps,Update/steps again,Update/steps in a race,all/ended context,all/random programs", false,
		keepsSteps(func(stored, steps map[string]taskstore.Step, err error) {})},
	{"an update that fails stores its steps", "Update/steps,Update/steps again,Update/steps in a race,all/random programs", false,
		keepsSteps(func(stored, steps map[string]taskstore.Step, err error) { maps.Copy(stored, steps) })},
	{"an update again stores its steps", "Update/steps again", false, keepsSteps(copySteps)},
	{"a step does not replace another", "Update/steps,Update/steps in a race,all/random programs", false,
		keepsSteps(func(stored, steps map[string]taskstore.Step, err error) {
			former := maps.Clone(stored)
			copySteps(stored, steps, err)
			maps.Copy(stored, former)
		})},
	{"an update with steps forgets the others", "Update/steps,Update/steps again,Update/steps in a race,all/random programs", false,
		keepsSteps(func(stored, steps map[string]taskstore.Step, err error) {
			if err == nil && len(steps) > 0 {
				clear(stored)
			}
			copySteps(stored, steps, err)
		})},
	{"a new record has the steps of a former one", "Update/steps,all/random programs", false, func(b *broken) {
		keepsSteps(copySteps)(b)
		b.create = b.aside.Create
	}},
	{"an update that fails for its context stores its steps", "all/ended context", false, func(b *broken) {
		keepsSteps(func(stored, steps map[string]taskstore.Step, _ error) { maps.Copy(stored, steps) })(b)
		update := b.update
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			if ctx.Err() != nil {
				from.Version--
			}
			stored, err := update(ctx, from, r, quota, steps...)
			return stored, cmp.Or(ctx.Err(), err)
		}
	}},
	{"steps come by their names", "Update/steps,Update/steps in a race", false, changesSteps(func(steps []taskstore.Step) {
		slices.SortFunc(steps, func(a, b taskstore.Step) int { return strings.Compare(a.Name, b.Name) })
	})},
	{"steps of the same time come in any order", "Update/steps", false, changesSteps(func(steps []taskstore.Step) {
		slices.SortFunc(steps, func(a, b taskstore.Step) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(b.Name, a.Name)) })
	})},
	{"the times of steps are rounded", "Update/steps,Update/steps again", false, changesSteps(func(steps []taskstore.Step) {
		for i := range steps {
			steps[i].At = steps[i].At.Truncate(time.Millisecond)
		}
	})},
	{"the names of steps end at NUL", "Update/steps", false, changesSteps(func(steps []taskstore.Step) {
		for i := range steps {
			steps[i].Name, _, _ = strings.Cut(steps[i].Name, "\x00")
		}
	})},
	{"the values of steps are other JSON", "Update/steps", false, changesSteps(func(steps []taskstore.Step) {
		for i := range steps {
			steps[i].Value = bytes.TrimSpace(steps[i].Value)
		}
	})},
	{"a missing record has no steps", "Update/steps,all/random programs", false, func(b *broken) {
		b.steps = func(ctx context.Context, id string) ([]taskstore.Step, error) {
			steps, _ := b.Store.Steps(ctx, id)
			return steps, nil
		}
	}},
	{"a list of steps has the sizes of what is stored", "Update/steps", false, func(b *broken) {
		heads := b.heads
		b.heads = func(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
			list, err := heads(ctx, id)
			for i := range list {
				list[i].ValueSize++
			}
			return list, err
		}
	}},
	{"compare and set in two steps", "Update/one winner,all/random histories", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			now, err := b.Store.Get(ctx, r.ID)
			if err != nil {
				return r, err
			}
			if now.Version != from.Version {
				return r, taskstore.ErrConflict
			}
			elsewhere()
			return force(ctx, b.Store, r)
		}
	}},
	{"an update restores a deleted record", "Update/compare and set,all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			stored, err := b.Store.Update(ctx, from, r, quota, steps...)
			if errors.Is(err, taskstore.ErrNoRecord) {
				return b.Store.Create(ctx, from, taskstore.Quota{})
			}
			return stored, err
		}
	}},
	{"an update takes a new tool", "Update/what never changes,all/random programs", false, func(b *broken) {
		tools := map[string]string{}
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			stored, err := b.Store.Update(ctx, from, r, quota, steps...)
			if err == nil {
				stored.Tool = r.Tool
				tools[r.ID] = r.Tool
			}
			return stored, err
		}
		b.get = func(ctx context.Context, id string) (taskstore.Record, error) {
			r, err := b.Store.Get(ctx, id)
			if tool := tools[id]; err == nil && tool != "" {
				r.Tool = tool
			}
			return r, err
		}
	}},
	{"a reader sees parts of two versions", "Update/whole records", false, func(b *broken) {
		b.get = func(ctx context.Context, id string) (taskstore.Record, error) {
			former, err := b.Store.Get(ctx, id)
			if err != nil {
				return former, err
			}
			elsewhere() // perhaps there is a next version
			r, err := b.Store.Get(ctx, id)
			r.StatusMessage = former.StatusMessage
			return r, err
		}
	}},
	{"reads lag behind", "all/random histories,all/random programs", false, func(b *broken) {
		seen := map[string]taskstore.Record{}
		b.get = func(ctx context.Context, id string) (taskstore.Record, error) {
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
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			if after.ID != "" {
				after.ID = after.ID[:len(after.ID)-1]
			}
			return b.Store.List(ctx, principal, after, limit)
		}
	}},
	{"a page leaves its first record out", "List/pages,List/under change", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			page, err := b.Store.List(ctx, principal, after, limit+1)
			if after.ID == "" || len(page) <= limit {
				return page[:min(len(page), limit)], err
			}
			return page[1:], err
		}
	}},
	{"pages by number", "List/under change", false, func(b *broken) {
		places := map[taskstore.Position]int{}
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			after.CreatedAt = after.CreatedAt.UTC()
			from := places[after]
			page, err := b.Store.List(ctx, principal, taskstore.Position{}, from+limit)
			page = page[min(from, len(page)):]
			if len(page) > 0 {
				last := page[len(page)-1]
				places[taskstore.Position{CreatedAt: last.CreatedAt.UTC(), ID: last.ID}] = from + len(page)
			}
			return page, err
		}
	}},
	{"the ID does not order", "List/pages", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			page, err := b.Store.List(ctx, principal, after, limit)
			slices.Reverse(page)
			slices.SortStableFunc(page, func(a, b taskstore.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
			return page, err
		}
	}},
	{"principals are padded", "List/one principal", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			return b.Store.List(ctx, strings.TrimSpace(principal), after, limit)
		}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			r.Principal = strings.TrimSpace(r.Principal)
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"one more than the quota", "Create/quota,Create/quota in a race,all/random programs", false, storesOther(func(_ *taskstore.Record, quota *taskstore.Quota) {
		if quota.Account.Unfinished > 0 {
			quota.Account.Unfinished++
		}
	})},
	{"count and create in two steps", "Create/quota in a race", false, func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			all, err := b.Store.List(ctx, r.Principal, taskstore.Position{}, 1000)
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
				return r, &taskstore.QuotaError{Scope: taskstore.ScopeAccount, Err: taskstore.ErrQuotaUnfinished}
			}
			elsewhere()
			quota.Account.Unfinished = 0
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"a finished record counts as unfinished", "Create/quota", false, func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			got, err := b.Store.Create(ctx, r, quotaOf(quota.Account.Unfinished, 0))
			if errors.Is(err, taskstore.ErrQuotaStored) {
				err = &taskstore.QuotaError{Scope: taskstore.ScopeAccount, Err: taskstore.ErrQuotaUnfinished}
			}
			return got, err
		}
	}},
	{"count the server's records and create in two steps", "Create/quota in a race", false, func(b *broken) {
		stored := map[string]bool{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			b.mu.Lock()
			n := 0
			for id := range stored {
				if _, err := b.Store.Get(ctx, id); err == nil {
					n++
				}
			}
			b.mu.Unlock()
			if bound := quota.Server.Unfinished; bound > 0 && n >= bound {
				return r, &taskstore.QuotaError{Scope: taskstore.ScopeServer, Err: taskstore.ErrQuotaUnfinished}
			}
			elsewhere()
			quota.Server = taskstore.Usage{}
			r, err := b.Store.Create(ctx, r, quota)
			b.mu.Lock()
			stored[r.ID] = true
			b.mu.Unlock()
			return r, err
		}
	}},
	{"the anonymous quota is ignored", "Create/quota of scopes,all/random programs", false, storesOther(func(_ *taskstore.Record, quota *taskstore.Quota) {
		quota.Anonymous = taskstore.Usage{}
	})},
	{"the server's quota is ignored", "Create/quota of scopes,all/random programs", false, storesOther(func(_ *taskstore.Record, quota *taskstore.Quota) {
		quota.Server = taskstore.Usage{}
	})},
	{"principals count among the anonymous", "Create/quota of scopes,all/random programs", false, func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			if quota.Server == (taskstore.Usage{}) {
				quota.Server, quota.Anonymous = quota.Anonymous, taskstore.Usage{}
			}
			r, err := b.Store.Create(ctx, r, quota)
			if full := (*taskstore.QuotaError)(nil); errors.As(err, &full) {
				err = &taskstore.QuotaError{Scope: taskstore.ScopeAnonymous, Err: full.Err}
			}
			return r, err
		}
	}},
	{"the error does not name the scope", "Create/quota of scopes,Update/quota of bytes", false, func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			r, err := b.Store.Create(ctx, r, quota)
			if isQuota(err) {
				err = errors.Unwrap(err)
			}
			return r, err
		}
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			r, err := b.Store.Update(ctx, from, r, quota, steps...)
			if isQuota(err) {
				err = errors.Unwrap(err)
			}
			return r, err
		}
	}},
	{"deleted bytes still count", "Create/quota of scopes", false, func(b *broken) {
		var ever int64
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			if ever += r.Size(); quota.Server.Bytes > 0 && ever > quota.Server.Bytes {
				return r, &taskstore.QuotaError{Scope: taskstore.ScopeServer, Err: taskstore.ErrQuotaBytes}
			}
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"a record may grow beyond the quota", "Update/quota of bytes,Update/quota of bytes in a race,all/random programs", false, updatesQuota(func(_ taskstore.Record, quota *taskstore.Quota) { *quota = taskstore.Quota{} })},
	{"a result does not count", "Update/quota of bytes", false, updatesQuota(func(r taskstore.Record, quota *taskstore.Quota) {
		if r.Outcome != nil {
			*quota = taskstore.Quota{}
		}
	})},
	{"a full scope refuses every update", "Update/quota of bytes", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			if quota.Server.Bytes == 1 {
				return r, &taskstore.QuotaError{Scope: taskstore.ScopeServer, Err: taskstore.ErrQuotaBytes}
			}
			return b.Store.Update(ctx, from, r, quota, steps...)
		}
	}},
	{"add the bytes and write in two steps", "Update/quota of bytes in a race", false, func(b *broken) {
		sizes := map[string]int64{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			sizes[r.ID] = r.Size()
			return b.Store.Create(ctx, r, quota)
		}
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			b.mu.Lock()
			bytes, grows := r.Size(), r.Size() > sizes[r.ID]
			for id, size := range sizes {
				if id != r.ID {
					bytes += size
				}
			}
			b.mu.Unlock()
			if bound := max(quota.Server.Bytes, quota.Anonymous.Bytes); grows && bytes > bound {
				return r, &taskstore.QuotaError{Scope: taskstore.ScopeServer, Err: taskstore.ErrQuotaBytes}
			}
			elsewhere()
			r, err := b.Store.Update(ctx, from, r, taskstore.Quota{}, steps...)
			b.mu.Lock()
			sizes[r.ID] = r.Size()
			b.mu.Unlock()
			return r, err
		}
	}},
	{"a refused create leaves its key", "Create/quota", false, func(b *broken) {
		left := map[string]bool{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			if left[r.IdempotencyKey] && r.IdempotencyKey != "" {
				return r, taskstore.ErrExists
			}
			got, err := b.Store.Create(ctx, r, quota)
			left[r.IdempotencyKey] = isQuota(err)
			return got, err
		}
	}},
	{"keys are shared between principals", "Create/keys,all/random programs", false, confusesKeys(func(r taskstore.Record) string { return r.Tool + "\x00" + r.IdempotencyKey })},
	{"the parts of a key are joined without a separator", "Create/keys", false, confusesKeys(func(r taskstore.Record) string { return r.Principal + r.Tool + r.IdempotencyKey })},
	{"a key outlives its record", "Create/keys", false, func(b *broken) {
		keys := map[[3]string]bool{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			key := [3]string{r.Principal, r.Tool, r.IdempotencyKey}
			got, err := b.Store.Create(ctx, r, quota)
			if err == nil && keys[key] && r.IdempotencyKey != "" {
				err = taskstore.ErrExists
			}
			keys[key] = true
			return got, err
		}
	}},
	{"look up the key and create in two steps", "Create/keys in a race", false, func(b *broken) {
		keys := map[string]string{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			key := r.IdempotencyKey
			b.mu.Lock()
			id, ok := keys[key]
			b.mu.Unlock()
			if ok {
				other, err := b.Store.Get(ctx, id)
				if err == nil {
					err = taskstore.ErrExists
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
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			if old, err := b.Store.Get(ctx, r.ID); err == nil {
				_ = b.Store.Delete(ctx, old)
			}
			return b.Store.Create(ctx, r, quota)
		}
	}},
	{"a record is deleted by its ID alone", "Delete/what was seen,all/random programs", false, func(b *broken) {
		b.delete = func(ctx context.Context, r taskstore.Record) error {
			now, err := b.Store.Get(ctx, r.ID)
			if err != nil {
				return err
			}
			return b.Store.Delete(ctx, now)
		}
	}},
	{"a record is deleted by a version of another record with its ID", "Delete/what was seen,all/random programs", false, func(b *broken) {
		b.delete = func(ctx context.Context, r taskstore.Record) error {
			if now, err := b.Store.Get(ctx, r.ID); err == nil && now.Version == r.Version {
				r = now
			}
			return b.Store.Delete(ctx, r)
		}
	}},
	{"a returned record is shared with the store", "Get/a copy", false, func(b *broken) {
		cache := map[string]taskstore.Record{}
		b.get = func(ctx context.Context, id string) (taskstore.Record, error) {
			r, err := b.Store.Get(ctx, id)
			if known, ok := cache[id]; ok && err == nil && known.Version == r.Version {
				return known, nil
			}
			cache[id] = r
			return r, err
		}
	}},
	{"times are kept to the millisecond", "Get/what was stored,Create/get and delete", false, storesOther(func(r *taskstore.Record, _ *taskstore.Quota) {
		r.UpdatedAt = r.UpdatedAt.Truncate(time.Millisecond)
	})},
	{"text is made UTF-8", "Get/what was stored", false, storesOther(func(r *taskstore.Record, _ *taskstore.Quota) {
		r.StatusMessage = strings.ToValidUTF8(r.StatusMessage, "\ufffd")
	})},
	{"text ends at NUL", "Get/what was stored", false, storesOther(func(r *taskstore.Record, _ *taskstore.Quota) {
		r.Revision, _, _ = strings.Cut(r.Revision, "\x00")
	})},
	{"JSON is written anew", "Get/what was stored", false, storesOther(func(r *taskstore.Record, _ *taskstore.Quota) {
		var compact bytes.Buffer
		if json.Compact(&compact, r.Arguments) == nil {
			r.Arguments = compact.Bytes()
		}
	})},
	{"nil becomes null", "Get/what was stored", false, storesOther(func(r *taskstore.Record, _ *taskstore.Quota) {
		if r.Arguments == nil {
			r.Arguments = json.RawMessage("null")
		}
	})},
	{"batches of one more", "Expire/batches", false, func(b *broken) {
		b.expire = func(ctx context.Context, limit int) ([]taskstore.Record, error) { return b.Store.Expire(ctx, limit+1) }
	}},
	{"select and delete in two steps", "Expire/in a race", false, func(b *broken) {
		stored := map[string]bool{}
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			stored[r.ID] = true
			return b.Store.Create(ctx, r, quota)
		}
		b.expire = func(ctx context.Context, limit int) ([]taskstore.Record, error) {
			now := time.Now()
			var gone []taskstore.Record
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
	{"the limit of a list of waiting tasks is one more", "Waiting/whose,Waiting/turns,all/random programs", false, func(b *broken) {
		b.waiting = func(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
			return b.Store.Waiting(ctx, tools, after, limit+1)
		}
	}},
	{"the tasks of any tool wait", "Waiting/whose,Waiting/turns,all/random programs", false, func(b *broken) {
		b.waiting = func(ctx context.Context, _ []string, after string, limit int) ([]taskstore.Waiting, error) {
			return b.Store.Waiting(ctx, []string{"tool", "another tool", "s", "t", "t\x00\xff"}, after, limit)
		}
	}},
	{"a tool that is named twice counts twice", "Waiting/whose,Waiting/turns", false, func(b *broken) {
		b.waiting = func(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
			var all []taskstore.Waiting
			for _, tool := range tools {
				list, err := b.Store.Waiting(ctx, []string{tool}, after, limit)
				if err != nil {
					return nil, err
				}
				all = append(all, list...)
			}
			return taskstore.SortTurns(all, after, limit), nil
		}
	}},
	{"only queued tasks wait", "Waiting/whose,all/random programs", false, changesWaiting(func(b *broken, list []taskstore.Waiting) []taskstore.Waiting {
		return slices.DeleteFunc(list, func(w taskstore.Waiting) bool {
			r, err := b.Store.Get(context.Background(), w.ID)
			return err == nil && r.Phase != taskstore.PhaseQueued
		})
	})},
	{"a task that was listed does not wait", "Waiting/whose,Waiting/turns,Waiting/in a race,all/random programs", false, func(b *broken) {
		listed := map[string]bool{}
		changesWaiting(func(_ *broken, list []taskstore.Waiting) []taskstore.Waiting {
			list = slices.DeleteFunc(list, func(w taskstore.Waiting) bool { return listed[w.ID] })
			for _, w := range list {
				listed[w.ID] = true
			}
			return list
		})(b)
	}},
	{"a task that had a worker does not wait", "Waiting/whose,all/random programs", false, changesWaiting(func(b *broken, list []taskstore.Waiting) []taskstore.Waiting {
		return slices.DeleteFunc(list, func(w taskstore.Waiting) bool {
			r, err := b.Store.Get(context.Background(), w.ID)
			return err == nil && r.Version > 1
		})
	})},
	{"a task that has got a worker waits until it ends", "Waiting/whose,Waiting/in a race,all/random programs", false, func(b *broken) {
		var former []taskstore.Waiting
		b.waiting = func(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
			list, err := b.Store.Waiting(ctx, tools, after, 1000)
			former = slices.DeleteFunc(former, func(w taskstore.Waiting) bool {
				r, err := b.Store.Get(ctx, w.ID)
				return err != nil || r.Done() || !slices.Contains(tools, w.Tool) || slices.Contains(list, w)
			})
			former = append(former, list...)
			return taskstore.SortTurns(slices.Clone(former), after, limit), err
		}
	}},
	{"the oldest tasks come first, without turns", "Waiting/turns,all/random programs", false, changesWaiting(func(_ *broken, list []taskstore.Waiting) []taskstore.Waiting {
		slices.SortStableFunc(list, func(a, b taskstore.Waiting) int { return a.CreatedAt.Compare(b.CreatedAt) })
		return list
	})},
	{"the newest task of an account comes first", "Waiting/whose,Waiting/turns,Waiting/in a race,all/random programs", false, changesWaiting(func(_ *broken, list []taskstore.Waiting) []taskstore.Waiting {
		slices.Reverse(list)
		return list
	})},
	{"tasks of the same time wait in any order", "Waiting/turns,all/random programs", false, changesWaiting(func(_ *broken, list []taskstore.Waiting) []taskstore.Waiting {
		for i := range list {
			for j := range list[:i] {
				if list[i].Account == list[j].Account && list[i].CreatedAt.Equal(list[j].CreatedAt) {
					list[i], list[j] = list[j], list[i]
				}
			}
		}
		return list
	})},
	{"turns begin with the first account", "Waiting/turns,all/random programs", false, func(b *broken) {
		b.waiting = func(ctx context.Context, tools []string, _ string, limit int) ([]taskstore.Waiting, error) {
			return b.Store.Waiting(ctx, tools, "", limit)
		}
	}},
	{"turns end with the last account", "Waiting/turns,all/random programs", false, func(b *broken) {
		b.waiting = func(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
			list, err := b.Store.Waiting(ctx, tools, after, 1000)
			list = slices.DeleteFunc(list, func(w taskstore.Waiting) bool { return w.Account <= after })
			return list[:min(len(list), limit)], err
		}
	}},
	{"the accounts of waiting tasks end at NUL", "Waiting/turns", false, changesWaiting(func(_ *broken, list []taskstore.Waiting) []taskstore.Waiting {
		for i := range list {
			list[i].Account, _, _ = strings.Cut(list[i].Account, "\x00")
		}
		return list
	})},
	{"a lease takes tasks that wait", "Waiting/whose,Lease/whose,all/random programs", false, func(b *broken) {
		b.lease = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
			taken, err := b.Store.Lease(ctx, worker, lease, tools, limit)
			list, _ := b.Store.Waiting(ctx, tools, "", limit-len(taken))
			for _, w := range list {
				if r, err := b.Store.Get(ctx, w.ID); err == nil {
					to := r
					to.Claim.Worker = worker
					if to, err = b.Store.Update(ctx, r, to, taskstore.Quota{}); err == nil {
						taken = append(taken, to)
					}
				}
			}
			return taken, err
		}
	}},
	{"the feed does not say that a task waits", "Waiting/whose,all/random programs", false, changesFeed(func(c taskstore.Change) []taskstore.Change {
		c.Free = c.Free && c.ID == ""
		return []taskstore.Change{c}
	})},
	{"a lease without fencing", "Lease/fencing", false, func(b *broken) {
		former := map[string]int64{}
		b.lease = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
			taken, err := b.Store.Lease(ctx, worker, lease, tools, limit)
			for _, r := range taken {
				former[r.ID] = r.Version - 1
			}
			return taken, err
		}
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			if former[r.ID] == from.Version {
				return force(ctx, b.Store, r)
			}
			return b.Store.Update(ctx, from, r, quota, steps...)
		}
	}},
	{"an orphan goes to two workers", "Lease/in a race,all/random histories", false, func(b *broken) {
		var last []taskstore.Record
		b.lease = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
			taken, err := b.Store.Lease(ctx, worker, lease, tools, limit)
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(taken) > 0 && len(last) > 0 {
				taken[0] = last[0]
				taken[0].Claim.Worker = worker
			}
			last = taken
			return taken, err
		}
	}},
	{"a lease takes any tool", "Lease/whose,all/random programs", false, func(b *broken) {
		b.lease = func(ctx context.Context, worker string, lease time.Duration, _ []string, limit int) ([]taskstore.Record, error) {
			return b.Store.Lease(ctx, worker, lease, []string{"tool", "another tool", "s", "t"}, limit)
		}
	}},
	{"a lease is judged by the times of records", "Lease/clocks", false, func(b *broken) {
		b.lease = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
			page, err := b.Store.List(ctx, "p", taskstore.Position{}, 100)
			if err != nil {
				return nil, err
			}
			for _, r := range page {
				if time.Since(r.UpdatedAt) > 30*time.Second {
					_ = b.Store.Release(ctx, r.Claim.Worker)
				}
			}
			return b.Store.Lease(ctx, worker, lease, tools, limit)
		}
	}},
	{"a lease ends at once", "Lease/whose,Lease/fencing,Beat/all records,all/random programs", false, func(b *broken) {
		b.beat = func(ctx context.Context, worker string, _ time.Duration, held []string) (taskstore.Heartbeat, error) {
			return b.Store.Beat(ctx, worker, 0, held)
		}
	}},
	{"a beat makes versions", "Beat/all records,Changes/every version", false, func(b *broken) {
		b.beat = func(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
			for _, id := range held {
				if r, err := b.Store.Get(ctx, id); err == nil {
					_, _ = b.Store.Update(ctx, r, r, taskstore.Quota{})
				}
			}
			return b.Store.Beat(ctx, worker, lease, held)
		}
	}},
	{"a beat does not tell of lost records", "Beat/lost,all/random programs", false, func(b *broken) {
		b.beat = func(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
			beat, err := b.Store.Beat(ctx, worker, lease, held)
			beat.Lost = nil
			return beat, err
		}
	}},
	{"a release does nothing", "Release/at once,all/random programs", true, func(b *broken) {
		b.release = func(context.Context, string) error { return nil }
	}},
	{"a release says nothing", "Release/at once", true, changesFeed(func(c taskstore.Change) []taskstore.Change {
		if c.Free {
			return nil
		}
		return []taskstore.Change{c}
	})},
	{"an expired record leaves no tombstone", "Expire/tombstones,all/random programs", false, func(b *broken) {
		b.get = func(ctx context.Context, id string) (taskstore.Record, error) {
			r, err := b.Store.Get(ctx, id)
			if errors.Is(err, taskstore.ErrRecordExpired) {
				return taskstore.Record{}, taskstore.ErrNoRecord
			}
			return r, err
		}
	}},
	{"a record expires by another clock", "Expire/the store's clock,Expire/batches", false, func(b *broken) {
		b.create = func(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
			expiry := r.ExpiresAt
			r.ExpiresAt = expiry.Add(5 * time.Minute)
			r, err := b.Store.Create(ctx, r, quota)
			r.ExpiresAt = expiry
			return r, err
		}
	}},
	{"a feed loses a change", "Changes/every version,Changes/nothing lost,Changes/many readers,all/random programs,all/random histories", true, changesFeed(func(c taskstore.Change) []taskstore.Change {
		if c.Version == 2 || c.ID == "t7" || c.ID == "ping-pong" && c.Version == 50 {
			return nil
		}
		return []taskstore.Change{c}
	})},
	{"a feed has no deletions", "Changes/every version,Changes/many readers,all/random programs", true, changesFeed(func(c taskstore.Change) []taskstore.Change {
		if c.ID != "" && c.Version == 0 {
			return nil
		}
		return []taskstore.Change{c}
	})},
	{"a feed changes the order", "Changes/nothing lost,all/random histories", true, func(b *broken) {
		held := map[string]taskstore.Change{}
		changesFeed(func(c taskstore.Change) []taskstore.Change {
			b.mu.Lock()
			defer b.mu.Unlock()
			if former, ok := held[c.ID]; ok {
				delete(held, c.ID)
				return []taskstore.Change{c, former}
			}
			if c.Version%5 == 2 {
				held[c.ID] = c
				return nil
			}
			return []taskstore.Change{c}
		})(b)
	}},
	{"a slow reader loses changes without being told", "Changes/a slow reader", true, func(b *broken) {
		missed := 0
		changesFeed(func(c taskstore.Change) []taskstore.Change {
			b.mu.Lock()
			defer b.mu.Unlock()
			if c.Missed {
				if missed++; missed > 2 {
					return nil
				}
			}
			return []taskstore.Change{c}
		})(b)
	}},
	{"a feed does not say where it begins", "Changes/every version,Changes/nothing lost,Changes/many readers,Changes/a slow reader,Changes/the end," +
		"all/random programs,all/random histories", false, changesFeed(func(c taskstore.Change) []taskstore.Change {
		if c.Missed {
			return nil
		}
		return []taskstore.Change{c}
	})},
	{"an update forgets the name of the write", "all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			to.Nonce = from.Nonce
			return b.Store.Update(ctx, from, to, quota, steps...)
		}
	}},
	{"an update forgets the state of the claim", "all/random programs", false, func(b *broken) {
		b.update = func(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			to.Claim.State = from.Claim.State
			return b.Store.Update(ctx, from, to, quota, steps...)
		}
	}},
	{"a lease forgets the state of the claim", "all/random programs", false, func(b *broken) {
		b.lease = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
			taken, err := b.Store.Lease(ctx, worker, lease, tools, limit)
			for i := range taken {
				taken[i].Claim.State = taskstore.ClaimWaiting
			}
			return taken, err
		}
	}},
	{"a feed outlives its store", "Changes/the end", true, func(b *broken) {
		b.close = func() error { return nil }
	}},
	{"a feed ends with an error", "Changes/the end", false, func(b *broken) {
		b.changes = func(ctx context.Context) iter.Seq2[taskstore.Change, error] {
			return func(yield func(taskstore.Change, error) bool) {
				for c, err := range b.Store.Changes(ctx) {
					if !yield(c, err) {
						return
					}
				}
				yield(taskstore.Change{}, context.Canceled)
			}
		}
	}},
	{"a closed store creates", "Close/the end", false, func(b *broken) {
		b.close = func() error { return nil }
	}},
	{"a scan begins with the oldest", "Inspector/scan and count,all/random programs", false, func(b *broken) {
		scan := b.scan
		b.scan = func(ctx context.Context, filter taskstore.Filter, before taskstore.Position, limit int) ([]taskstore.Record, error) {
			page, err := scan(ctx, filter, before, limit)
			slices.Reverse(page)
			return page, err
		}
	}},
	{"finished records are counted", "Inspector/scan and count", false, func(b *broken) {
		count := b.count
		b.count = func(ctx context.Context) ([]taskstore.Count, error) {
			counts, err := count(ctx)
			return append(counts, taskstore.Count{Tool: "s", Phase: taskstore.PhaseDone, Count: 1}), err
		}
	}},
	{"failed records are counted whenever they have ended", "Inspector/scan and count", false, func(b *broken) {
		failed := b.failed
		b.failed = func(ctx context.Context, _ time.Time) ([]taskstore.Count, error) { return failed(ctx, time.Time{}) }
	}},
	{"failed records are counted without end", "Inspector/failed", false, func(b *broken) {
		b.failed = func(ctx context.Context, since time.Time) ([]taskstore.Count, error) {
			all, err := b.Store.(taskstore.Inspector).Scan(ctx, taskstore.Filter{Failed: true, EndedFrom: since}, taskstore.Position{}, 1<<20)
			return []taskstore.Count{{Tool: "t", Phase: taskstore.PhaseDone, Count: len(all)}}, err
		}
	}},
	{"a filter for failed records admits all", "Inspector/scan and count", false, func(b *broken) {
		scan := b.scan
		b.scan = func(ctx context.Context, filter taskstore.Filter, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			filter.Failed = false
			return scan(ctx, filter, after, limit)
		}
	}},
	{"the tasks without a worker are no worker's", "Inspector/scan and count", false, func(b *broken) {
		workers := b.workers
		b.workers = func(ctx context.Context) ([]taskstore.WorkerLease, error) {
			list, err := workers(ctx)
			return slices.DeleteFunc(list, func(w taskstore.WorkerLease) bool { return w.Worker == "" }), err
		}
	}},
	{"a filter does not turn the order around", "Inspector/scan and count", false, func(b *broken) {
		scan := b.scan
		b.scan = func(ctx context.Context, filter taskstore.Filter, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			filter.OldestFirst = false
			return scan(ctx, filter, after, limit)
		}
	}},
	{"a filter for a message admits all", "Inspector/scan and count", false, func(b *broken) {
		scan := b.scan
		b.scan = func(ctx context.Context, filter taskstore.Filter, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			filter.Message = ""
			return scan(ctx, filter, after, limit)
		}
	}},
	{"an outcome is written again", "Update/what never changes", false, func(b *broken) {
		outcomes := map[string]*taskstore.Outcome{}
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			stored, err := b.Store.Update(ctx, from, r, quota, steps...)
			if err == nil {
				outcomes[r.ID], stored.Outcome = r.Outcome, r.Outcome
			}
			return stored, err
		}
	}},
	{"a record that cannot be read fails a list", "all/unreadable records", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			page, err := b.aside.listAside(ctx, principal, after, limit)
			if slices.ContainsFunc(page, func(r taskstore.Record) bool { _, err := b.get(ctx, r.ID); return err != nil }) {
				return nil, taskstore.ErrUnreadable
			}
			return page, err
		}
	}},
	{"records that cannot be read end a list", "all/unreadable records", false, func(b *broken) {
		b.list = func(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
			page, err := b.aside.listAside(ctx, principal, after, limit)
			return slices.DeleteFunc(page, func(r taskstore.Record) bool { _, err := b.get(ctx, r.ID); return err != nil }), err
		}
	}},
	{"a record that cannot be read fails a lease", "all/unreadable records", false, func(b *broken) {
		b.lease = func(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
			if len(b.aside.aside) > 0 {
				return nil, taskstore.ErrUnreadable
			}
			return b.Store.Lease(ctx, worker, lease, tools, limit)
		}
	}},
	{"a record that cannot be read is gone", "all/unreadable records", false, func(b *broken) { b.get = b.Store.Get }},
	{"the key of a record that cannot be read is free", "all/unreadable records", false, func(b *broken) { b.create = b.Store.Create }},
	{"a record that cannot be read stays forever", "all/unreadable records", false, func(b *broken) { b.expire = b.Store.Expire }},
	{"a record that cannot be read expires at once", "all/unreadable records", false, func(b *broken) {
		b.expire = func(ctx context.Context, limit int) ([]taskstore.Record, error) {
			for id, r := range b.aside.aside {
				r.ExpiresAt = time.Now()
				b.aside.aside[id] = r
			}
			return b.aside.Expire(ctx, limit)
		}
	}},
	{"an update that fails for its context is done", "all/ended context", false, func(b *broken) {
		b.update = func(ctx context.Context, from, r taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
			stored, err := b.Store.Update(ctx, from, r, quota, steps...)
			if err == nil {
				err = ctx.Err()
			}
			return stored, err
		}
	}},
}
