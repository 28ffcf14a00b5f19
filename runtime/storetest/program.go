package storetest

import (
	"errors"

	"pgregory.net/rapid"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// testPrograms makes random calls on the store and on the model, one after another, and compares
// the answers. Names and times come from small sets, so that calls affect the same records.
func testPrograms(k *kit) {
	rapid.Check(k, func(t *rapid.T) {
		p := program{k: k, t: t, m: model{}}
		defer p.clearStore()
		t.Repeat(map[string]func(*rapid.T){
			"":       func(t *rapid.T) { p.get(someIDs.Draw(t, "read")) },
			"create": p.create,
			"update": p.update,
			"list":   p.list,
			"delete": p.delete,
			"expire": p.expire,
			"wait":   p.wait,
			"lease":  p.lease,
			"renew":  p.renew,
		})
		for _, id := range ids {
			p.get(id)
		}
	})
}

// program is one random program.
type program struct {
	k *kit
	t *rapid.T
	m model
	n int // calls so far
}

// Small sets of values.
var (
	ids            = []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	someIDs        = rapid.SampledFrom(ids)
	somePrincipals = rapid.SampledFrom([]string{"p", "q", ""})
	someAccounts   = rapid.SampledFrom([]string{"x", "y"})
	someTools      = rapid.SampledFrom([]string{"s", "t"})
	someKeys       = rapid.SampledFrom([]string{"", "", "k", "l"})
	someWorkers    = rapid.SampledFrom([]string{"w1", "w2", ""})
	somePhases     = rapid.SampledFrom([]mcptask.Phase{mcptask.PhaseQueued, mcptask.PhaseRunning, mcptask.PhaseInputRequired, mcptask.PhaseDone})
	someMinutes    = rapid.Map(rapid.IntRange(0, 5), minutesAfter)
	someLimits     = rapid.IntRange(1, 4)
)

// nextStore alternates between the two ways to the store.
func (p *program) nextStore() mcptask.Store {
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
	want, wantErr := p.m.get(id)
	got, err := p.nextStore().Get(p.k.ctx, id)
	p.compareAnswers("get "+id, got, err, want, wantErr)
}

// clearStore empties the store for the next program.
func (p *program) clearStore() {
	for _, id := range ids {
		r, err := p.k.s.Get(p.k.ctx, id)
		if err == nil {
			err = p.k.s.Delete(p.k.ctx, r)
		}
		if err != nil && !errors.Is(err, mcptask.ErrNoRecord) {
			p.k.Errorf("delete: %v", err)
		}
	}
}

func (p *program) create(t *rapid.T) {
	r := newRecord(someIDs.Draw(t, "id"), somePrincipals.Draw(t, "principal"), someMinutes.Draw(t, "created"))
	r.Account, r.Tool, r.IdempotencyKey = someAccounts.Draw(t, "account"), someTools.Draw(t, "tool"), someKeys.Draw(t, "key")
	r.Phase = somePhases.Draw(t, "phase")
	r.Worker, r.LeaseUntil, r.ExpiresAt = someWorkers.Draw(t, "worker"), someMinutes.Draw(t, "lease"), someMinutes.Draw(t, "expires")
	quota := p.drawQuota(t)
	want, wantErr := p.m.create(r, quota)
	got, err := p.nextStore().Create(p.k.ctx, r, quota)
	p.compareAnswers("create", got, err, want, wantErr)
	if errors.Is(err, mcptask.ErrExists) {
		if got.Version != want.Version {
			t.Fatalf("create: ErrExists with version %d, want %d", got.Version, want.Version)
		}
		if want.Version > 0 {
			p.compareAnswers("create by its key", got, nil, want, nil)
		}
	}
}

// drawQuota draws a quota for one of the scopes.
func (p *program) drawQuota(t *rapid.T) mcptask.Quota {
	bound := mcptask.Usage{Stored: rapid.IntRange(0, 4).Draw(t, "stored"), Unfinished: rapid.IntRange(0, 3).Draw(t, "unfinished"),
		Bytes: rapid.SampledFrom([]int64{0, 0, 80, 160, 240}).Draw(t, "bytes")}
	return rapid.SampledFrom([]mcptask.Quota{{Account: bound}, {Anonymous: bound}, {Server: bound}}).Draw(t, "quota")
}

func (p *program) update(t *rapid.T) {
	id := someIDs.Draw(t, "id")
	r, ok := p.m[id]
	if !ok {
		r = newRecord(id, "p", epoch)
	}
	r.Version += rapid.SampledFrom([]int64{0, 0, 0, 0, -1, 1}).Draw(t, "off by")
	r.Phase, r.StatusMessage = somePhases.Draw(t, "phase"), rapid.StringN(0, 3, -1).Draw(t, "message")
	r.Worker, r.LeaseUntil, r.ExpiresAt = someWorkers.Draw(t, "worker"), someMinutes.Draw(t, "lease"), someMinutes.Draw(t, "expires")
	if rapid.Bool().Draw(t, "other owner") {
		r.Principal, r.Account, r.Tool, r.CreatedAt = somePrincipals.Draw(t, "principal"), someAccounts.Draw(t, "account"), someTools.Draw(t, "tool"), someMinutes.Draw(t, "created")
		r.IdempotencyKey = someKeys.Draw(t, "key")
	}
	quota := p.drawQuota(t)
	want, wantErr := p.m.update(r, quota)
	got, err := p.nextStore().Update(p.k.ctx, r, quota)
	p.compareAnswers("update", got, err, want, wantErr)
}

func (p *program) list(t *rapid.T) {
	principal, limit := somePrincipals.Draw(t, "principal"), someLimits.Draw(t, "limit")
	after := mcptask.Position{CreatedAt: someMinutes.Draw(t, "after"), ID: someIDs.Draw(t, "after ID")}
	if rapid.Bool().Draw(t, "from the start") {
		after = mcptask.Position{}
	}
	got, err := p.nextStore().List(p.k.ctx, principal, after, limit)
	p.compareAnswers("list", got, err, p.m.list(principal, after, limit), nil)
}

func (p *program) delete(t *rapid.T) {
	id := someIDs.Draw(t, "id")
	r, ok := p.m[id]
	if !ok {
		r = newRecord(id, "p", epoch)
	}
	r.Version += rapid.SampledFrom([]int64{0, 0, 0, -1, 1}).Draw(t, "off by")
	if rapid.Bool().Draw(t, "made at another time") {
		r.CreatedAt = someMinutes.Draw(t, "created")
	}
	p.compareAnswers("delete", nil, p.nextStore().Delete(p.k.ctx, r), nil, p.m.delete(r))
}

// expire accepts any of the expired records, because the order is not specified.
func (p *program) expire(t *rapid.T) {
	now, limit := someMinutes.Draw(t, "now"), someLimits.Draw(t, "limit")
	over := p.m.expired(now)
	gone, err := p.nextStore().Expire(p.k.ctx, now, limit)
	if err != nil || len(gone) != min(len(over), limit) {
		t.Fatalf("%d of %d expired at limit %d: %v", len(gone), len(over), limit, err)
	}
	for _, r := range gone {
		want, wantErr := p.m.get(r.ID)
		p.compareAnswers("expired", r, wantErr, want, nil)
		if r.ExpiresAt.After(now) {
			t.Fatalf("%s expired before %v", r.ID, r.ExpiresAt)
		}
		delete(p.m, r.ID)
	}
}

// wait waits for an existing version. With one goroutine, any other wait would not end.
func (p *program) wait(t *rapid.T) {
	id := someIDs.Draw(t, "id")
	want, wantErr := p.m.get(id)
	got, err := p.nextStore().Wait(p.k.ctx, id, want.Version-1)
	p.compareAnswers("wait", got, err, want, wantErr)
}

// lease accepts any of the available records.
func (p *program) lease(t *rapid.T) {
	worker, now, until := someWorkers.Draw(t, "worker"), someMinutes.Draw(t, "now"), someMinutes.Draw(t, "until")
	limit := someLimits.Draw(t, "limit")
	orphans := p.m.orphans(worker, now)
	taken, err := p.nextStore().Lease(p.k.ctx, worker, now, until, limit)
	if err != nil || len(taken) != min(len(orphans), limit) {
		t.Fatalf("%d of %d taken at limit %d: %v", len(taken), len(orphans), limit, err)
	}
	for _, r := range taken {
		want, ok := p.m[r.ID]
		if !ok || want.Done() || want.Worker == worker || !want.LeaseUntil.Before(now) {
			t.Fatalf("%s was not available: %+v", r.ID, want)
		}
		want.Worker, want.LeaseUntil, want.Version = worker, until, want.Version+1
		p.compareAnswers("leased", r, nil, want, nil)
		p.m[r.ID] = want
	}
}

func (p *program) renew(t *rapid.T) {
	worker := someWorkers.Draw(t, "worker")
	if rapid.Bool().Draw(t, "release") {
		// The time at which a released lease ended is unspecified, but it is in the past.
		p.compareAnswers("release", nil, p.nextStore().Release(p.k.ctx, worker), nil, nil)
		for id, r := range p.m {
			if r.Done() || r.Worker != worker {
				continue
			}
			got, err := p.nextStore().Get(p.k.ctx, id)
			if err != nil || !got.LeaseUntil.Before(epoch) {
				t.Fatalf("released until %v: %v", got.LeaseUntil, err)
			}
			r.LeaseUntil = got.LeaseUntil
			p.m[id] = r
		}
		return
	}
	until := someMinutes.Draw(t, "until")
	p.m.setLeases(worker, until)
	p.compareAnswers("renew", nil, p.nextStore().Renew(p.k.ctx, worker, until), nil, nil)
}
