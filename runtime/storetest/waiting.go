package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// waitingOf returns what Waiting must return of some records.
func waitingOf(records []taskstore.Record, tools []string, after string, limit int) []taskstore.Waiting {
	tasks := map[string][]taskstore.Waiting{} // by account
	var behind, before []string
	for _, r := range records {
		if r.Done() || r.Claim.Worker != "" || !slices.Contains(tools, r.Tool) {
			continue
		}
		if _, ok := tasks[r.Account]; !ok && r.Account > after {
			behind = append(behind, r.Account)
		} else if !ok {
			before = append(before, r.Account)
		}
		tasks[r.Account] = append(tasks[r.Account], taskstore.Waiting{ID: r.ID, Account: r.Account, Principal: r.Principal, Tool: r.Tool, CreatedAt: r.CreatedAt})
	}
	slices.Sort(behind)
	slices.Sort(before)
	var list []taskstore.Waiting
	for turn := 0; turn < len(records); turn++ {
		for _, account := range slices.Concat(behind, before) {
			of := tasks[account]
			slices.SortFunc(of, func(a, b taskstore.Waiting) int {
				return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
			})
			if turn < len(of) {
				list = append(list, of[turn])
			}
		}
	}
	return list[:min(len(list), limit)]
}

// wantWaiting checks which of the records of a tool wait, in turns from the first account, with both handles.
func (k *kit) wantWaiting(what string, want ...string) {
	k.Helper()
	for _, s := range []taskstore.Store{k.s, k.other} {
		k.wantWaitingOf(what, s, []string{"tool"}, "", 50, want...)
	}
}

func (k *kit) wantWaitingOf(what string, s taskstore.Store, tools []string, after string, limit int, want ...string) {
	k.Helper()
	list, err := s.Waiting(k.ctx, tools, after, limit)
	var got []string
	for _, w := range list {
		got = append(got, w.ID)
	}
	if err != nil || !slices.Equal(got, want) {
		k.Errorf("%s: of the tools %q wait %q at limit %d, want %q: %v", what, tools, got, limit, want, err)
	}
}

// createWaiting stores a record without a worker.
func (k *kit) createWaiting(id string, phase taskstore.Phase, minutes int) taskstore.Record {
	k.Helper()
	r := k.newRecord(id, "p", k.minutesAfter(minutes))
	r.Phase, r.Claim, r.ExpiresAt = phase, taskstore.Claim{State: taskstore.ClaimRunning}, k.minutesAfter(60)
	return k.createRecord(r)
}

// moveRecord gives a record to a worker, or to none.
func (k *kit) moveRecord(id, worker string) taskstore.Record {
	k.Helper()
	from := k.getRecord(id)
	to := from
	to.Claim.Worker = worker
	return k.updateRecord(from, to)
}

func testWaiting(k *kit) {
	k.wantWaiting("an empty store")
	feeds := []*follower{k.follow(k.s), k.follow(k.other)}
	wantNews := func(c taskstore.Change) {
		k.Helper()
		for _, f := range feeds {
			f.want(c)
		}
	}
	for i, phase := range []taskstore.Phase{taskstore.PhaseQueued, taskstore.PhaseRunning, taskstore.PhaseInputRequired} {
		r := k.createWaiting(string(phase), phase, i)
		wantNews(taskstore.Change{ID: r.ID, Version: 1, Phase: phase, Free: true})
	}
	foreign := k.newRecord("foreign", "p", k.minutesAfter(-1))
	foreign.Tool, foreign.Claim.Worker = "another tool", ""
	k.createRecord(foreign)
	k.createFor("w1", "held")
	k.createRecord(finishRecord(k.newRecord("done", "p", k.minutesAfter(-2))))
	all := []string{"queued", "running", "input_required"}
	k.wantWaiting("records without a worker", all...)
	k.wantWaiting("again", all...)
	both := []string{"tool", "another tool"}
	for _, c := range []struct {
		tools []string
		limit int
		want  []string
	}{
		{both, 0, nil}, {both, 1, []string{"foreign"}}, {both, 3, []string{"foreign", "queued", "running"}}, {both, 4, append([]string{"foreign"}, all...)},
		{[]string{"tool", "tool", "another tool", "tool"}, 1000, append([]string{"foreign"}, all...)}, {[]string{"another tool"}, 50, []string{"foreign"}},
		{nil, 50, nil}, {[]string{}, 50, nil}, {[]string{"unknown", "Tool", "too", "tool ", "tool\x00", "", "\xff"}, 50, nil},
	} {
		k.wantWaitingOf("a limit, or tools", k.s, c.tools, "", c.limit, c.want...)
	}

	// Leases have nothing to do with it.
	k.beat(k.s, "w1", all...)
	if err := k.s.Release(k.ctx, "w1"); err != nil {
		k.Errorf("release: %v", err)
	}
	k.takeLeases("w2", "held")
	k.wantWaiting("after a lease", all...)

	k.moveRecord("running", "w3")
	wantNews(taskstore.Change{ID: "running", Version: 2, Phase: taskstore.PhaseRunning})
	k.wantWaiting("a record has got a worker", "queued", "input_required")
	k.moveRecord("running", "")
	wantNews(taskstore.Change{ID: "running", Version: 3, Phase: taskstore.PhaseRunning, Free: true})
	k.moveRecord("held", "")
	k.wantWaiting("records are handed back", "held", "queued", "running", "input_required")
	r := k.getRecord("queued")
	k.updateRecord(r, finishRecord(r))
	k.wantWaiting("a record has ended", "held", "running", "input_required")
	k.deleteRecord("held")
	r = k.getRecord("input_required")
	expired := r
	expired.ExpiresAt = k.minutesAfter(-1)
	k.updateRecord(r, expired)
	k.expireRecords(5, 1)
	k.wantWaiting("records were deleted, or have expired", "running")
}

func testTurns(k *kit) {
	var long [3000]byte // more than an index of PostgreSQL allows
	random := rand.New(rand.NewPCG(1, 1))
	for i := range long {
		long[i] = byte(random.IntN(256))
	}
	accounts := []string{"", "a", "a\x00", "a\x00b", "a\xff", "b", "\xff", "\xff\xff", "é", everyByte(), "x" + string(long[:]), "x" + string(long[:600]), "y" + string(long[:])}
	tools := []string{"s", "t\x00\xff", "t"}
	var records []taskstore.Record
	for i := range 60 {
		r := k.newRecord(fmt.Sprintf("t%02d\x00\xff", i*37%60), "p", k.epoch.Add(time.Duration(i/4*7%15)*time.Microsecond)) // some at the same time
		r.Account, r.Tool, r.Claim.Worker = accounts[i*i%(i%len(accounts)+1)], tools[i*i%7%3], ""
		if i%9 == 5 {
			r.Claim.Worker = "w1"
		}
		records = append(records, k.createRecord(r))
	}
	n := 0
	for _, of := range [][]string{tools, {"s"}, {"t", "t\x00\xff"}, {"t", "unknown", "t", "t\x00"}} {
		for _, after := range append(accounts, "\x00", "a\x00a", "c", "\xff\xff\xff") {
			for _, limit := range []int{1, 2, 7, 20, 100} {
				n++
				got, err := k.pickStore(n).Waiting(k.ctx, of, after, limit)
				if want := waitingOf(records, of, after, limit); err != nil || diffRecords(got, want) != "" {
					k.Fatalf("of the tools %q wait behind %.20q at limit %d: %v\n%s", of, after, limit, err, diffRecords(got, want))
				}
			}
		}
	}
}

// testWaitingRace lets several workers take each task. It is the same for all: the first one that waits.
func testWaitingRace(k *kit) {
	const tasks, workers = 8, 6
	for i := range tasks {
		k.createWaiting(fmt.Sprint("t", i), taskstore.PhaseQueued, i)
	}
	for i := range tasks {
		var read [workers]taskstore.Record
		for worker := range workers {
			list, err := k.pickStore(worker).Waiting(k.ctx, []string{"tool"}, "", tasks)
			if err != nil || len(list) != tasks-i || list[0].ID != fmt.Sprint("t", i) {
				k.Fatalf("%d tasks wait after %d of %d were taken: %+v, %v", len(list), i, tasks, list, err)
			}
			read[worker] = k.getRecord(list[0].ID)
		}
		var taken atomic.Int32
		runConcurrently(workers, func(worker int) {
			to := read[worker]
			to.Claim.Worker = fmt.Sprint("w", worker)
			switch _, err := k.pickStore(worker).Update(k.ctx, read[worker], to, taskstore.Quota{}); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, taskstore.ErrConflict):
				k.Errorf("update: %v", err)
			}
		})
		if n := taken.Load(); n != 1 {
			k.Errorf("%d workers have taken %s", n, read[0].ID)
		}
	}
	k.wantWaiting("all were taken")
}
