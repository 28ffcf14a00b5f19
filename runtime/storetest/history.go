package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// testHistories runs random calls on few records in many goroutines, and holds
// what each of them sees against what all the others have done before it began.
func testHistories(k *kit) {
	const goroutines, calls = 8, 150
	h := &history{k: k, lives: map[string]*life{}, births: map[string]*birth{}}
	for _, id := range []string{"t0", "t1", "t2"} {
		h.births[id] = &birth{turn: make(chan struct{}, 1)}
	}
	each(goroutines, func(i int) {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		s := k.way(i)
		for n := range calls {
			id := fmt.Sprint("t", random.IntN(3))
			switch random.IntN(10) {
			case 0, 1:
				h.create(s, id, fmt.Sprintf("%d-%d", i, n))
			case 2:
				h.delete(s, id)
			case 3:
				h.lease(s, fmt.Sprint("w", i))
			case 4:
				h.wait(s, id)
			case 5, 6:
				h.read(s, id)
			default:
				h.update(s, id, fmt.Sprintf("%d-%d", i, n))
			}
		}
	})
	for id, b := range h.births {
		if _, err := k.s.Get(k.ctx, id); (err == nil) != (b.alive != "") {
			k.Errorf("%s in the end: %v", id, err)
		}
	}
	for name, l := range h.lives {
		for version := int64(2); version <= l.newest; version++ {
			if l.writers[version] != 1 {
				k.Errorf("version %d of %s has %d writers", version, name, l.writers[version])
			}
		}
	}
}

// history is what has certainly happened.
type history struct {
	k      *kit
	mu     sync.Mutex
	lives  map[string]*life  // by name
	births map[string]*birth // by ID
}

// birth is which life an ID has.
type birth struct {
	turn  chan struct{} // whose creation or deletion it is
	alive string        // its name, "" without one
}

// life is one record from its creation to its deletion.
type life struct {
	newest  int64 // version that somebody has seen or written
	over    bool
	content map[int64]string
	writers map[int64]int
}

// before notes which versions a call that begins now may no longer see.
func (h *history) before() map[string]life {
	h.mu.Lock()
	defer h.mu.Unlock()
	floors := map[string]life{}
	for name, l := range h.lives {
		floors[name] = *l
	}
	return floors
}

// name tells the lives of one ID apart, by what no Update changes: one that is
// late may well meet its version in another life.
func name(r mcptask.Record) string { return r.ID + " " + r.Tool }

// saw takes a record that a call returned which began with the floors.
func (h *history) saw(what string, floors map[string]life, r mcptask.Record, wrote bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lives[name(r)]
	if l == nil { // its Create has not returned yet
		l = &life{content: map[int64]string{}, writers: map[int64]int{}}
		h.lives[name(r)] = l
	}
	if floor := floors[name(r)]; r.Version < floor.newest || floor.over || wrote && r.Version == floor.newest {
		h.k.Errorf("%s returned version %d of %s, which had reached version %d (over: %v) before it began",
			what, r.Version, name(r), floor.newest, floor.over)
	}
	content := r.StatusMessage + " of " + r.Worker
	if known, ok := l.content[r.Version]; ok && known != content {
		h.k.Errorf("%s returned %q as version %d of %s, which was %q", what, content, r.Version, name(r), known)
	}
	l.content[r.Version] = content
	if wrote {
		l.writers[r.Version]++
	}
	l.newest = max(l.newest, r.Version)
}

// failed checks the error of a call.
func (h *history) failed(what string, err error, allowed ...error) bool {
	if err == nil {
		return false
	}
	for _, a := range allowed {
		if errors.Is(err, a) {
			return true
		}
	}
	h.k.Errorf("%s: %v", what, err)
	return true
}

// create makes a life. One ID's creations and deletions are made one after the
// other, so that it is certain which life a deletion ends; all else goes on.
func (h *history) create(s mcptask.Store, id, unique string) {
	b := h.births[id]
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	r := record(id, "p", epoch)
	r.Tool, r.StatusMessage = unique, "created"
	floors := h.before()
	r, err := s.Create(h.k.ctx, r, mcptask.Quota{})
	if h.failed("Create", err, mcptask.ErrExists) {
		if b.alive == "" {
			h.k.Errorf("Create of %s, which was not there: %v", id, err)
		}
		return
	}
	if b.alive != "" {
		h.k.Errorf("%s was created while it was there", id)
	}
	h.saw("Create", floors, r, false)
	b.alive = name(r)
}

func (h *history) delete(s mcptask.Store, id string) {
	b := h.births[id]
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	err := mcptask.ErrConflict
	for errors.Is(err, mcptask.ErrConflict) { // updates go on
		var r mcptask.Record
		if r, err = s.Get(h.k.ctx, id); err == nil {
			err = s.Delete(h.k.ctx, r)
		}
	}
	if h.failed("Delete", err, mcptask.ErrNoRecord) {
		if b.alive != "" {
			h.k.Errorf("Delete did not find %s, which was there", id)
		}
		return
	}
	if b.alive == "" {
		h.k.Errorf("%s was deleted twice", id)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives[b.alive].over = true
	b.alive = ""
}

func (h *history) read(s mcptask.Store, id string) {
	floors := h.before()
	if r, err := s.Get(h.k.ctx, id); !h.failed("Get", err, mcptask.ErrNoRecord) {
		h.saw("Get", floors, r, false)
	}
}

func (h *history) update(s mcptask.Store, id, unique string) {
	floors := h.before()
	r, err := s.Get(h.k.ctx, id)
	if h.failed("Get", err, mcptask.ErrNoRecord) {
		return
	}
	h.saw("Get", floors, r, false)
	r.StatusMessage = unique
	floors, version := h.before(), r.Version
	if r, err = s.Update(h.k.ctx, r, mcptask.Quota{}); !h.failed("Update", err, mcptask.ErrNoRecord, mcptask.ErrConflict) {
		h.saw("Update", floors, r, true)
		if r.Version != version+1 {
			h.k.Errorf("an update of version %d made version %d", version, r.Version)
		}
	}
}

func (h *history) wait(s mcptask.Store, id string) {
	floors := h.before()
	r, err := s.Get(h.k.ctx, id)
	if h.failed("Get", err, mcptask.ErrNoRecord) {
		return
	}
	h.saw("Get", floors, r, false)
	ctx, cancel := context.WithTimeout(h.k.ctx, 5*time.Millisecond)
	defer cancel()
	floors = h.before()
	version := r.Version
	if r, err = s.Wait(ctx, id, version); !h.failed("Wait", err, mcptask.ErrNoRecord, context.DeadlineExceeded) {
		h.saw("Wait", floors, r, false)
		if r.Version <= version {
			h.k.Errorf("Wait for more than version %d returned %d", version, r.Version)
		}
	}
}

func (h *history) lease(s mcptask.Store, worker string) {
	floors := h.before()
	taken, err := s.Lease(h.k.ctx, worker, minutes(10), minutes(5), 2)
	if h.failed("Lease", err) {
		return
	}
	for _, r := range taken {
		h.saw("Lease", floors, r, true)
	}
}
