package taskserver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/account"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Anonymous callers share their limits with strangers. If the tasks that strangers have finished fill the store, the
// oldest of them make room for new ones: otherwise one caller could lock all others out until the ttl of its tasks
// ends.

const (
	// dropBatch is how many tasks are dropped at once, so that the next writes find room too.
	dropBatch = 16
	// dropRounds is how often one write may make room. A big result may need more than one batch.
	dropRounds = 8
	// dropPage is how many tasks are read at once. dropPages is how many pages are read if none of their tasks may go.
	dropPage  = 128
	dropPages = 8
	// maxDropPlaces bounds how many places in lists are kept.
	maxDropPlaces = 1024
)

// room is the state of the search for tasks to drop.
type room struct {
	rounds atomic.Int64 // how often tasks were dropped
	turn   sync.Mutex   // held while a write makes room
	// places has the positions from which searches go on, by the key of chooseDrops. turn guards it.
	places map[string]taskstore.Position
}

// writeWithRoom makes a write of the record r to the store. If the ended tasks of anonymous callers leave no room for
// it, it drops the oldest of them and makes the write again.
func (b *Backend) writeWithRoom(ctx context.Context, r *taskstore.Record, write func() (taskstore.Record, error)) (stored taskstore.Record, err error) {
	for range dropRounds {
		rounds := b.room.rounds.Load()
		if stored, err = write(); err == nil {
			return stored, nil
		}
		key, mayGo := chooseDrops(r, err)
		if mayGo == nil || !b.makeRoom(ctx, rounds, key, mayGo) {
			return stored, err
		}
	}
	return write()
}

// chooseDrops returns a function that admits the tasks that may be dropped after a write of r has failed, and a key for
// them. mayGo is nil if none may be dropped. Only tasks of anonymous callers that cannot be told apart make room for
// each other. A session can be told apart, so it is refused if its own account is full.
func chooseDrops(r *taskstore.Record, err error) (key string, mayGo func(*taskstore.Record) bool) {
	var full *taskstore.QuotaError
	if r.Principal != "" || !errors.As(err, &full) || errors.Is(err, taskstore.ErrQuotaUnfinished) {
		return "", nil
	}
	switch caller := callerOf(r); {
	case full.Scope == taskstore.ScopeAnonymous:
		return "", func(*taskstore.Record) bool { return true }
	case full.Scope == taskstore.ScopeAddress:
		return account.KeyOfAddress(caller.Address), func(other *taskstore.Record) bool { return other.Address() == caller.Address }
	case full.Scope == taskstore.ScopeAccount && caller.Session == "" && !caller.Local:
		return "account " + r.Account, func(other *taskstore.Record) bool { return other.Account == r.Account }
	}
	return "", nil
}

// makeRoom drops the tasks that ended first among those that mayGo admits. It reports whether there may be room now.
// rounds is the count before the write that found no room. If another write has made room since, makeRoom drops
// nothing.
func (b *Backend) makeRoom(ctx context.Context, rounds int64, key string, mayGo func(*taskstore.Record) bool) bool {
	b.room.turn.Lock()
	defer b.room.turn.Unlock()
	if b.room.rounds.Load() != rounds {
		return true
	}
	t := b.newRequestRetry()
	dropped := 0
	for _, r := range b.findDrops(ctx, t, key, mayGo) {
		if err := b.deleteStored(ctx, t, r); err == nil || isGone(err) {
			dropped++
		} else if !errors.Is(err, taskstore.ErrConflict) {
			break
		}
	}
	if dropped == 0 {
		return false
	}
	b.room.rounds.Add(1)
	b.Notice(slog.LevelWarn, "ended tasks of anonymous callers dropped, to make room for new ones", "count", dropped)
	return true
}

// findDrops returns up to dropBatch ended tasks, ordered by when they ended. It looks at a part of the list of
// anonymous callers' tasks, which begins with the oldest. If none of them may go, the next search goes on from there.
func (b *Backend) findDrops(ctx context.Context, t *storeRetry, key string, mayGo func(*taskstore.Record) bool) []taskstore.Record {
	place := b.room.places[key]
	defer func() {
		if delete(b.room.places, key); place != (taskstore.Position{}) {
			if b.room.places == nil || len(b.room.places) >= maxDropPlaces {
				b.room.places = map[string]taskstore.Position{}
			}
			b.room.places[key] = place
		}
	}()
	for range dropPages {
		page, err := callStore(ctx, t, "List", func(ctx context.Context) ([]taskstore.Record, error) {
			return b.store.List(ctx, "", place, dropPage)
		})
		if err != nil {
			return nil
		}
		found := slices.Clone(page)
		found = slices.DeleteFunc(found, func(r taskstore.Record) bool { return !r.Done() || !mayGo(&r) })
		if len(found) > 0 {
			slices.SortStableFunc(found, func(a, b taskstore.Record) int { return a.TerminalAt.Compare(b.TerminalAt) })
			return found[:min(len(found), dropBatch)]
		}
		switch {
		case len(page) == dropPage:
			place = page[len(page)-1].Position()
		case place == taskstore.Position{}:
			return nil
		default: // those at the beginning may have ended meanwhile
			place = taskstore.Position{}
		}
	}
	return nil
}
