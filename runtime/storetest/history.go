package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// testHistories makes random calls on a few records from many goroutines. It compares the result of each call with the
// calls that were completed before it began. Followers read the feeds.
func testHistories(k *kit) {
	const goroutines, calls = 8, 150
	h := &history{k: k, lives: map[string]*life{}, births: map[string]*birth{}}
	for _, id := range []string{"t0", "t1", "t2"} {
		h.births[id] = &birth{turn: make(chan struct{}, 1)}
	}
	followers := []*follower{k.follow(k.s), k.follow(k.other)}
	var left atomic.Int32
	left.Store(goroutines)
	runConcurrently(goroutines+len(followers), func(i int) {
		if i >= goroutines {
			followers[i-goroutines].readHistory()
			return
		}
		defer func() {
			if left.Add(-1) == 0 {
				k.createFor("", endOfHistory)
			}
		}()
		random := rand.New(rand.NewPCG(uint64(i), 1))
		s := k.pickStore(i)
		for n := range calls {
			id := fmt.Sprint("t", random.IntN(3))
			switch random.IntN(10) {
			case 0, 1:
				h.create(s, id, fmt.Sprintf("%d-%d", i, n))
			case 2:
				h.delete(s, id)
			case 3:
				h.lease(s, fmt.Sprint("w", i))
			case 4, 5, 6:
				h.read(s, id)
			default:
				h.update(s, id, fmt.Sprintf("%d-%d", i, n))
			}
		}
	})
	for id, b := range h.births {
		r, err := k.s.Get(k.ctx, id)
		if (err == nil) != (b.alive != "") {
			k.Errorf("%s in the end: %v", id, err)
		}
		if err == nil { // one more version shows whether a feed has lost the last one
			r = k.updateRecord(r, r)
		} else {
			r = k.createFor("", id)
		}
		for _, f := range followers {
			f.want(changeTo(r))
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

// endOfHistory is a record that is created after all others.
const endOfHistory = "end"

// readHistory reads a feed until the end of the history.
func (f *follower) readHistory() {
	for {
		c, ok := f.read()
		if !ok || c.ID == endOfHistory {
			return
		}
		if c.Missed {
			if _, err := f.s.Get(f.k.ctx, endOfHistory); err == nil {
				return
			}
		}
	}
}

// history records the events that have certainly happened.
type history struct {
	k      *kit
	mu     sync.Mutex
	lives  map[string]*life  // by name
	births map[string]*birth // by ID
}

// birth tracks which life an ID currently has.
type birth struct {
	turn  chan struct{} // held by the call that creates or deletes
	alive string        // the name of the life; empty if there is none
}

// life is a record from its creation to its deletion.
type life struct {
	newest  int64 // the newest version that was read or written
	over    bool
	content map[int64]string
	writers map[int64]int
}

// copyFloors returns the state of all lives. A call that begins now must not see less.
func (h *history) copyFloors() map[string]life {
	h.mu.Lock()
	defer h.mu.Unlock()
	floors := map[string]life{}
	for name, l := range h.lives {
		floors[name] = *l
	}
	return floors
}

// lifeName distinguishes the lives of an ID by a field that Update does not change. A late update
// may find its version in another life.
func lifeName(r taskstore.Record) string { return r.ID + " " + r.Trace }

// observeRecord checks a record that a call returned. floors is the state before the call.
func (h *history) observeRecord(what string, floors map[string]life, r taskstore.Record, wrote bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lives[lifeName(r)]
	if l == nil { // its Create has not returned yet
		l = &life{content: map[int64]string{}, writers: map[int64]int{}}
		h.lives[lifeName(r)] = l
	}
	if floor := floors[lifeName(r)]; r.Version < floor.newest || floor.over || wrote && r.Version == floor.newest {
		h.k.Errorf("%s returned version %d of %s, which had reached version %d (over: %v) before it began",
			what, r.Version, lifeName(r), floor.newest, floor.over)
	}
	content := r.StatusMessage + " of " + r.Claim.Worker
	if known, ok := l.content[r.Version]; ok && known != content {
		h.k.Errorf("%s returned %q as version %d of %s, which was %q", what, content, r.Version, lifeName(r), known)
	}
	l.content[r.Version] = content
	if wrote {
		l.writers[r.Version]++
	}
	l.newest = max(l.newest, r.Version)
}

// checkError reports an error that is not allowed. It returns whether the call failed.
func (h *history) checkError(what string, err error, allowed ...error) bool {
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

// create starts a life. Creations and deletions of one ID take turns, so that it is certain which
// life a deletion ends. Other calls do not wait.
func (h *history) create(s taskstore.Store, id, unique string) {
	b := h.births[id]
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	r := h.k.newRecord(id, "p", h.k.epoch)
	r.Nonce, r.Trace, r.StatusMessage = unique, unique, "created"
	floors := h.copyFloors()
	r, err := s.Create(h.k.ctx, r, taskstore.Quota{})
	if h.checkError("Create", err, taskstore.ErrExists) {
		if b.alive == "" {
			h.k.Errorf("Create of %s failed although it did not exist: %v", id, err)
		}
		return
	}
	if b.alive != "" {
		h.k.Errorf("%s was created although it existed", id)
	}
	h.observeRecord("Create", floors, r, false)
	b.alive = lifeName(r)
}

func (h *history) delete(s taskstore.Store, id string) {
	b := h.births[id]
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	err := taskstore.ErrConflict
	for errors.Is(err, taskstore.ErrConflict) { // other goroutines update the record
		var r taskstore.Record
		if r, err = s.Get(h.k.ctx, id); err == nil {
			err = s.Delete(h.k.ctx, r)
		}
	}
	if h.checkError("Delete", err, taskstore.ErrNoRecord) {
		if b.alive != "" {
			h.k.Errorf("Delete did not find %s, which exists", id)
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

func (h *history) read(s taskstore.Store, id string) {
	floors := h.copyFloors()
	if r, err := s.Get(h.k.ctx, id); !h.checkError("Get", err, taskstore.ErrNoRecord) {
		h.observeRecord("Get", floors, r, false)
	}
}

func (h *history) update(s taskstore.Store, id, unique string) {
	floors := h.copyFloors()
	r, err := s.Get(h.k.ctx, id)
	if h.checkError("Get", err, taskstore.ErrNoRecord) {
		return
	}
	h.observeRecord("Get", floors, r, false)
	change := r
	change.Nonce, change.StatusMessage = unique, unique
	floors, version := h.copyFloors(), r.Version
	if r, err = s.Update(h.k.ctx, r, change, taskstore.Quota{}); !h.checkError("Update", err, taskstore.ErrNoRecord, taskstore.ErrConflict) {
		h.observeRecord("Update", floors, r, true)
		if r.Version != version+1 {
			h.k.Errorf("an update of version %d made version %d", version, r.Version)
		}
	}
}

func (h *history) lease(s taskstore.Store, worker string) {
	floors := h.copyFloors()
	taken, err := s.Lease(h.k.ctx, worker, leaseTime, []string{"tool"}, 2)
	if h.checkError("Lease", err) {
		return
	}
	h.checkError("Release", s.Release(h.k.ctx, worker)) // so that others can lease
	for _, r := range taken {
		h.observeRecord("Lease", floors, r, true)
	}
}
