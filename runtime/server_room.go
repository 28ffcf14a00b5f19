package mcptask

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// Anonymous callers share their limits with strangers. If the tasks that strangers have finished fill the store, the
// oldest of them make room for new ones: otherwise one caller could lock all others out until the ttl of its tasks ends.

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
	places map[string]Position
}

// writeWithRoom makes a write of the record r to the store. If the ended tasks of anonymous callers leave no room for it, it
// drops the oldest of them and makes the write again.
func (s *Server) writeWithRoom(ctx context.Context, r *Record, write func() (Record, error)) (stored Record, err error) {
	for range dropRounds {
		rounds := s.room.rounds.Load()
		if stored, err = write(); err == nil {
			return stored, nil
		}
		key, mayGo := chooseDrops(r, err)
		if mayGo == nil || !s.makeRoom(ctx, rounds, key, mayGo) {
			return stored, err
		}
	}
	return write()
}

// chooseDrops returns a function that admits the tasks that may be dropped after a write of r has failed, and a key for
// them. mayGo is nil if none may be dropped. Only tasks of anonymous callers that cannot be told apart make room for each
// other. A session can be told apart, so it is refused if its own account is full.
func chooseDrops(r *Record, err error) (key string, mayGo func(*Record) bool) {
	var full *QuotaError
	if r.Principal != "" || !errors.As(err, &full) || errors.Is(err, ErrQuotaUnfinished) {
		return "", nil
	}
	switch caller := r.asCaller(); {
	case full.Scope == ScopeAnonymous:
		return "", func(*Record) bool { return true }
	case full.Scope == ScopeAddress:
		return keyOfAddress(caller.Address), func(other *Record) bool { return other.Address() == caller.Address }
	case full.Scope == ScopeAccount && caller.Session == "" && !caller.Local:
		return "account " + r.Account, func(other *Record) bool { return other.Account == r.Account }
	}
	return "", nil
}

// makeRoom drops the tasks that ended first among those that mayGo admits. It reports whether there may be room now.
// rounds is the count before the write that found no room. If another write has made room since, makeRoom drops nothing.
func (s *Server) makeRoom(ctx context.Context, rounds int64, key string, mayGo func(*Record) bool) bool {
	s.room.turn.Lock()
	defer s.room.turn.Unlock()
	if s.room.rounds.Load() != rounds {
		return true
	}
	t := s.newRequestRetry()
	dropped := 0
	for _, r := range s.findDrops(ctx, t, key, mayGo) {
		if err := s.deleteStored(ctx, t, r); err == nil || isGone(err) {
			dropped++
		} else if !errors.Is(err, ErrConflict) {
			break
		}
	}
	if dropped == 0 {
		return false
	}
	s.room.rounds.Add(1)
	s.Notice(slog.LevelWarn, "ended tasks of anonymous callers dropped, to make room for new ones", "count", dropped)
	return true
}

// findDrops returns up to dropBatch ended tasks, ordered by when they ended. It looks at a part of the list of anonymous
// callers' tasks, which begins with the oldest. If none of them may go, the next search goes on from there.
func (s *Server) findDrops(ctx context.Context, t *storeRetry, key string, mayGo func(*Record) bool) []Record {
	place := s.room.places[key]
	defer func() {
		if delete(s.room.places, key); place != (Position{}) {
			if s.room.places == nil || len(s.room.places) >= maxDropPlaces {
				s.room.places = map[string]Position{}
			}
			s.room.places[key] = place
		}
	}()
	for range dropPages {
		page, err := callStore(ctx, t, "List", func(ctx context.Context) ([]Record, error) {
			return s.store.List(ctx, "", place, dropPage)
		})
		if err != nil {
			return nil
		}
		found := slices.Clone(page)
		found = slices.DeleteFunc(found, func(r Record) bool { return !r.Done() || !mayGo(&r) })
		if len(found) > 0 {
			slices.SortStableFunc(found, func(a, b Record) int { return a.TerminalAt.Compare(b.TerminalAt) })
			return found[:min(len(found), dropBatch)]
		}
		switch {
		case len(page) == dropPage:
			place = page[len(page)-1].listPosition()
		case place == Position{}:
			return nil
		default: // those at the beginning may have ended meanwhile
			place = Position{}
		}
	}
	return nil
}
