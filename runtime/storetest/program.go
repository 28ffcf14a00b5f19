package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// testPrograms makes random calls on the store and on the model, one after another, and compares
// the answers. Names and times come from small sets, so that calls affect the same records.
func testPrograms(k *kit) {
	n := 0
	rapid.Check(k, func(t *rapid.T) {
		n++ // no tombstone or lease of one program may affect the next
		p := program{k: k, t: t, name: fmt.Sprint(n, "-"), start: k.readClock().UTC().Truncate(time.Microsecond), feed: k.follow(k.pickStore(n))}
		p.m = newModel(p.start)
		defer p.feed.stop()
		defer p.clearStore()
		steps := map[string]func(*rapid.T){
			"":        func(t *rapid.T) { p.get(p.id(t)) },
			"create":  p.create,
			"update":  p.update,
			"list":    p.list,
			"delete":  p.delete,
			"expire":  p.expire,
			"waiting": p.waiting,
			"lease":   p.lease,
			"beat":    p.beat,
			"release": p.release,
		}
		if k.stores.Advance != nil {
			steps["advance"] = p.advance
		}
		if inspector, ok := k.s.(taskstore.Inspector); ok {
			steps["scan"] = func(t *rapid.T) { p.scan(t, inspector) }
		}
		t.Repeat(steps)
		for _, letter := range letters {
			p.get(p.name + letter)
		}
		var want []taskstore.Change
		for _, changes := range p.m.changes {
			want = append(want, changes...)
		}
		p.feed.want(want...)
	})
}

// program is one random program.
type program struct {
	k     *kit
	t     *rapid.T
	m     *model
	feed  *follower
	name  string // begins the names of its records and workers
	start time.Time
	n     int // calls so far
}

// programStep is how far the clock is moved in a step. All moments of a program lie in the middle
// of steps, so that it does not matter how long the program takes.
const programStep = 2 * time.Minute

// Small sets of values.
var (
	letters        = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	somePrincipals = rapid.SampledFrom([]string{"p", "q", ""})
	someAccounts   = rapid.SampledFrom([]string{"x", "y", "address h", "address h session x"})
	someTools      = rapid.SampledFrom([]string{"s", "t"})
	someKeys       = rapid.SampledFrom([]string{"", "", "k", "l"})
	somePhases     = rapid.SampledFrom([]taskstore.Phase{taskstore.PhaseQueued, taskstore.PhaseRunning, taskstore.PhaseInputRequired, taskstore.PhaseDone})
	someClaims     = rapid.SampledFrom([]taskstore.ClaimState{taskstore.ClaimWaiting, taskstore.ClaimRunning})
	someLimits     = rapid.IntRange(1, 4)
)

func (p *program) id(t *rapid.T) string {
	return p.name + rapid.SampledFrom(letters).Draw(t, "id")
}

func (p *program) worker(t *rapid.T) string {
	return p.name + rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(t, "worker")
}

// time draws a moment around the model's time.
func (p *program) time(t *rapid.T) time.Time {
	return p.m.now.Add(time.Duration(rapid.IntRange(-2, 3).Draw(t, "time"))*programStep + programStep/2)
}

func (p *program) tools(t *rapid.T) []string {
	return rapid.SampledFrom([][]string{{"s", "t"}, {"s", "t"}, {"t"}, nil}).Draw(t, "tools")
}

// leaseTime draws the length of a lease.
func (p *program) leaseTime(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 3).Draw(t, "lease"))*programStep + programStep/2
}

// change draws new values for the fields that an update may change.
func (p *program) change(t *rapid.T, r *taskstore.Record) {
	r.Phase, r.StatusMessage, r.ExpiresAt = somePhases.Draw(t, "phase"), rapid.StringN(0, 3, -1).Draw(t, "message"), p.time(t)
	// Each write has another name, or none.
	r.Nonce = rapid.SampledFrom([]string{"", fmt.Sprint(p.name, "write ", p.n)}).Draw(t, "nonce")
	r.Claim = taskstore.Claim{Worker: p.worker(t), State: someClaims.Draw(t, "claim"), Nonce: r.Nonce}
	if rapid.IntRange(0, 3).Draw(t, "no worker") == 0 {
		r.Claim.Worker = ""
	}
	r.Progress.Done = float64(rapid.IntRange(0, 3).Draw(t, "progress"))
	if r.Outcome = nil; r.Done() {
		r.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(rapid.SampledFrom([]string{"1", "[2]"}).Draw(t, "result"))}
	}
}

// nextStore alternates between the two ways to the store.
func (p *program) nextStore() taskstore.Store {
	p.n++
	return p.k.pickStore(p.n)
}

// compareAnswers compares an answer with the model's.
func (p *program) compareAnswers(what string, got any, err error, want any, wantErr error) {
	p.t.Helper()
	if wantErr == nil && err != nil || !errors.Is(err, wantErr) {
		p.t.Fatalf("%s: the error is %v, want %v", what, err, wantErr)
	}
	if wantErr != nil {
		return
	}
	if d := diffRecords(got, want); d != "" {
		p.t.Fatalf("%s: %s", what, d)
	}
}

// get reads a record, whether it exists or not.
func (p *program) get(id string) {
	s := p.nextStore()
	wantSteps, wantErr := p.m.stepsOf(id)
	steps, err := s.Steps(p.k.ctx, id)
	p.compareAnswers("steps of "+id, steps, err, wantSteps, wantErr)
	want, wantErr := p.m.get(id)
	got, err := s.Get(p.k.ctx, id)
	p.compareAnswers("get "+id, got, err, want, wantErr)
	if errors.Is(err, taskstore.ErrRecordExpired) != errors.Is(wantErr, taskstore.ErrRecordExpired) {
		p.t.Fatalf("get %s: the error is %v, want %v", id, err, wantErr)
	}
	if errors.Is(err, taskstore.ErrRecordExpired) {
		p.compareAnswers("get what has expired", got, nil, want, nil)
	}
}

// clearStore empties the store for the next program.
func (p *program) clearStore() {
	for _, letter := range letters {
		r, err := p.k.s.Get(p.k.ctx, p.name+letter)
		if err == nil {
			err = p.k.s.Delete(p.k.ctx, r)
		}
		if err != nil && !errors.Is(err, taskstore.ErrNoRecord) {
			p.k.Errorf("delete: %v", err)
		}
	}
}

func (p *program) create(t *rapid.T) {
	r := p.k.newRecord(p.id(t), somePrincipals.Draw(t, "principal"), p.time(t))
	p.change(t, &r)
	r.Account, r.Tool, r.IdempotencyKey = someAccounts.Draw(t, "account"), someTools.Draw(t, "tool"), someKeys.Draw(t, "key")
	quota := p.drawQuota(t)
	want, wantErr := p.m.create(r, quota)
	got, err := p.nextStore().Create(p.k.ctx, r, quota)
	p.compareAnswers("create", got, err, want, wantErr)
	if errors.Is(err, taskstore.ErrExists) {
		if got.Version != want.Version {
			t.Fatalf("create: ErrExists with version %d, want %d", got.Version, want.Version)
		}
		if want.Version > 0 {
			p.compareAnswers("create by its key", got, nil, want, nil)
		}
	}
}

// drawQuota draws a quota for one of the scopes.
func (p *program) drawQuota(t *rapid.T) taskstore.Quota {
	bound := taskstore.Usage{Stored: rapid.IntRange(0, 4).Draw(t, "stored"), Unfinished: rapid.IntRange(0, 3).Draw(t, "unfinished"),
		Bytes: rapid.SampledFrom([]int64{0, 0, 80, 160, 400, 700}).Draw(t, "bytes")}
	return rapid.SampledFrom([]taskstore.Quota{{Account: bound}, {Address: bound}, {Anonymous: bound}, {Server: bound}}).Draw(t, "quota")
}

// record returns a stored record, or one that is not stored.
func (p *program) record(t *rapid.T) taskstore.Record {
	id := p.id(t)
	r, ok := p.m.records[id]
	if !ok {
		r = p.k.newRecord(id, "p", p.start)
	}
	r.Version += rapid.SampledFrom([]int64{0, 0, 0, 0, -1, 1}).Draw(t, "off by")
	return r
}

func (p *program) update(t *rapid.T) {
	from := p.record(t)
	to := from
	p.change(t, &to)
	if rapid.Bool().Draw(t, "fixed fields") {
		to.Principal, to.Account, to.Tool, to.CreatedAt = somePrincipals.Draw(t, "principal"), someAccounts.Draw(t, "account"), someTools.Draw(t, "tool"), p.time(t)
		to.IdempotencyKey, to.Arguments, to.Poll, to.Trace = someKeys.Draw(t, "key"), []byte(`{"new":true}`), time.Hour, "new"
	}
	var steps []taskstore.Step
	for i := range rapid.IntRange(0, 2).Draw(t, "steps") {
		steps = append(steps, p.k.newStep(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "step"), fmt.Sprint(p.n), i))
		to.StepBytes++
	}
	quota := p.drawQuota(t)
	want, wantErr := p.m.update(from, to, quota, steps)
	got, err := p.nextStore().Update(p.k.ctx, from, to, quota, steps...)
	p.compareAnswers("update", got, err, want, wantErr)
}

func (p *program) list(t *rapid.T) {
	principal, limit := somePrincipals.Draw(t, "principal"), someLimits.Draw(t, "limit")
	after := taskstore.Position{CreatedAt: p.time(t), ID: p.id(t)}
	switch r := p.record(t); rapid.IntRange(0, 3).Draw(t, "from") {
	case 0:
		after = taskstore.Position{}
	case 1, 2:
		principal, after = r.Principal, taskstore.Position{CreatedAt: r.CreatedAt, ID: r.ID}
	}
	got, err := p.nextStore().List(p.k.ctx, principal, after, limit)
	p.compareAnswers("list", trimRecords(got), err, trimRecords(p.m.list(principal, after, limit)), nil)
}

func (p *program) delete(t *rapid.T) {
	r := p.record(t)
	if rapid.Bool().Draw(t, "made at another time") {
		r.CreatedAt = p.time(t)
	}
	p.compareAnswers("delete", nil, p.nextStore().Delete(p.k.ctx, r), nil, p.m.delete(r))
}

// expire accepts any of the expired records, because the order is not specified.
func (p *program) expire(t *rapid.T) {
	limit := someLimits.Draw(t, "limit")
	over := p.m.expired()
	gone, err := p.nextStore().Expire(p.k.ctx, limit)
	if err != nil || len(gone) != min(len(over), limit) {
		t.Fatalf("%d of %d expired at limit %d: %v", len(gone), len(over), limit, err)
	}
	for _, r := range gone {
		want, wantErr := p.m.get(r.ID)
		p.compareAnswers("expired", trimRecord(r), wantErr, trimRecord(want), nil)
		if r.ExpiresAt.After(p.m.now) {
			t.Fatalf("%s expired before %v", r.ID, r.ExpiresAt)
		}
		p.m.expire(want)
	}
}

func (p *program) waiting(t *rapid.T) {
	tools, after, limit := p.tools(t), someAccounts.Draw(t, "after"), someLimits.Draw(t, "limit")
	got, err := p.nextStore().Waiting(p.k.ctx, tools, after, limit)
	p.compareAnswers("waiting", got, err, p.m.waiting(tools, after, limit), nil)
}

// lease accepts any of the available records.
func (p *program) lease(t *rapid.T) {
	worker, lease, limit := p.worker(t), p.leaseTime(t), someLimits.Draw(t, "limit")
	tools := p.tools(t)
	orphans := p.m.orphans(worker, tools)
	taken, err := p.nextStore().Lease(p.k.ctx, worker, lease, tools, limit)
	if err != nil || len(taken) != min(len(orphans), limit) {
		t.Fatalf("%d of %d taken at limit %d: %v", len(taken), len(orphans), limit, err)
	}
	for _, r := range taken {
		if !slices.Contains(recordIDs(orphans), r.ID) {
			t.Fatalf("%s was not available: %+v", r.ID, p.m.records[r.ID])
		}
		want := p.m.records[r.ID]
		want.Claim.Worker = worker
		p.compareAnswers("leased", r, nil, p.m.put(want), nil)
	}
	end := p.m.now.Add(lease)
	if former := p.m.leases[worker]; len(taken) == 0 || former.After(end) { // it is open when the lease ends
		_, err := p.nextStore().Beat(p.k.ctx, worker, lease, nil)
		p.compareAnswers("beat", nil, err, nil, nil)
	}
	p.m.leases[worker] = end
}

func (p *program) beat(t *rapid.T) {
	worker, lease := p.worker(t), p.leaseTime(t)
	var held []string
	for _, letter := range rapid.SliceOfNDistinct(rapid.SampledFrom(letters), 0, 4, rapid.ID).Draw(t, "held") {
		held = append(held, p.name+letter)
	}
	beat, err := p.nextStore().Beat(p.k.ctx, worker, lease, held)
	slices.Sort(beat.Lost)
	p.compareAnswers("beat", beat.Lost, err, p.m.lost(worker, held), nil)
	if beat.Now.Before(p.m.now) || beat.Now.After(p.m.now.Add(programStep/2)) {
		t.Fatalf("beat: the store's time is %v, want %v", beat.Now, p.m.now)
	}
	p.m.leases[worker] = p.m.now.Add(lease)
}

func (p *program) release(t *rapid.T) {
	worker := p.worker(t)
	delete(p.m.leases, worker)
	p.compareAnswers("release", nil, p.nextStore().Release(p.k.ctx, worker), nil, nil)
}

// advance moves the clock by a step, or seldom beyond the tombstones.
func (p *program) advance(t *rapid.T) {
	d := programStep
	if rapid.IntRange(0, 15).Draw(t, "far") == 7 {
		d = taskstore.TombstoneFor
	}
	p.k.advanceClock(d)
	p.m.now = p.m.now.Add(d)
}

// scan compares the records of an operator's view.
func (p *program) scan(t *rapid.T, inspector taskstore.Inspector) {
	var filter taskstore.Filter
	switch rapid.IntRange(0, 4).Draw(t, "filter") {
	case 0:
		filter.Principal = "p"
	case 1:
		filter.Tool, filter.Phase = someTools.Draw(t, "tool"), somePhases.Draw(t, "phase")
	case 2:
		filter.Worker = p.worker(t)
	case 3:
		filter.Outcome = taskstore.OutcomeResult
	}
	filter.Unfinished, filter.OldestFirst = rapid.Bool().Draw(t, "unfinished"), rapid.Bool().Draw(t, "oldest first")
	want := p.m.filter(func(r taskstore.Record) bool { return filter.Admits(&r) })
	slices.SortFunc(want, func(a, b taskstore.Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	if !filter.OldestFirst {
		slices.Reverse(want)
	}
	got := p.k.scanAll(inspector, filter, someLimits.Draw(t, "limit"))
	for i := range got {
		got[i] = trimRecord(got[i])
	}
	for i := range want {
		want[i] = trimRecord(want[i])
	}
	p.compareAnswers("scan", got, nil, want, nil)
}
