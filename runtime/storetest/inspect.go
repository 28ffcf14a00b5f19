package storetest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// scanAll reads all records that a filter admits.
func (k *kit) scanAll(i taskstore.Inspector, filter taskstore.Filter, limit int) []taskstore.Record {
	k.Helper()
	var all []taskstore.Record
	for before := (taskstore.Position{}); ; {
		page, err := i.Scan(k.ctx, filter, before, limit)
		if err != nil || len(page) > limit {
			k.Fatalf("scan %+v: %d records at limit %d, %v", filter, len(page), limit, err)
		}
		if all = append(all, page...); len(page) < limit {
			return all
		}
		if len(all) > 100_000 {
			k.Fatalf("the scan of %+v does not end", filter)
		}
		last := page[len(page)-1]
		before = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}

// trimRecord removes the parts that may be missing in the records of List, Scan and Expire.
func trimRecord(r taskstore.Record) taskstore.Record {
	r.Arguments, r.Inputs = nil, nil
	if r.Outcome != nil {
		r.Outcome = &taskstore.Outcome{Kind: r.Outcome.Kind, IsError: r.Outcome.IsError}
	}
	return r
}

// trimRecords is trimRecord for a list.
func trimRecords(list []taskstore.Record) []taskstore.Record {
	var trimmed []taskstore.Record
	for _, r := range list {
		trimmed = append(trimmed, trimRecord(r))
	}
	return trimmed
}

func testInspector(k *kit) {
	inspector, ok := k.s.(taskstore.Inspector)
	if !ok {
		k.Skip("the store is not a taskstore.Inspector")
	}
	phases := []taskstore.Phase{taskstore.PhaseQueued, taskstore.PhaseRunning, taskstore.PhaseInputRequired, taskstore.PhaseDone}
	var want []taskstore.Record // newest first
	for i := range 24 {
		r := k.newFullRecord(fmt.Sprintf("t%02d", i*7%24))
		r.CreatedAt, r.Principal, r.IdempotencyKey = k.minutesAfter(-i/3), []string{"p", "", "q"}[i%3], ""
		r.Tool, r.Claim.Worker, r.Phase, r.Outcome = []string{"s", "t"}[i/3%2], []string{"", "w1", "w2", "w1"}[i/3%4], phases[i%4], nil
		r.StatusMessage = fmt.Sprint("half \x00 way \\'\xff\"? ", i)
		if r.Done() {
			r.Outcome = &taskstore.Outcome{Kind: []taskstore.OutcomeKind{taskstore.OutcomeResult, taskstore.OutcomeError, taskstore.OutcomeCancelled}[i%3], IsError: i%2 == 1 && i%3 == 0}
		}
		r.TerminalAt = time.Time{}
		if r.Done() {
			r.TerminalAt = k.minutesAfter(i % 7)
		}
		want = append(want, k.createRecord(r))
	}
	slices.SortFunc(want, func(a, b taskstore.Record) int {
		return -cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	yes, no := true, false
	filters := []taskstore.Filter{
		{}, {Principal: "p"}, {Principal: "nobody"}, {Tool: "s"}, {Worker: "w1"}, {Phase: taskstore.PhaseDone},
		{Workers: []string{"", "w2"}}, {Workers: []string{}}, {Workers: []string{"w1"}, Phase: taskstore.PhaseRunning}, {Waiting: true}, {Waiting: true, Tool: "s"},
		{NotWorkers: []string{"", "w2"}}, {NotWorkers: []string{}}, {NotWorkers: []string{"", "w1"}, Unfinished: true, OldestFirst: true}, {Workers: []string{"w1", "w2"}, NotWorkers: []string{"w2"}},
		{Phase: taskstore.PhaseRunning, Tool: "t"}, {Outcome: taskstore.OutcomeError}, {Outcome: taskstore.OutcomeCancelled, Phase: taskstore.PhaseQueued},
		{Principal: "p", Tool: "s", Worker: "w2", Phase: taskstore.PhaseInputRequired},
		{Unfinished: true}, {Unfinished: true, Tool: "s"}, {OldestFirst: true}, {OldestFirst: true, Phase: taskstore.PhaseInputRequired},
		{Message: "? 1"}, {Message: "%"}, {Message: "_"}, {Message: "WAY"}, {Message: "\x00 "}, {Message: "\xff"}, {Message: "\\'"}, {Message: `\'`},
		{Message: "? 1", Tool: "?", Principal: "?"}, {Tool: "' OR ''='"}, {Principal: "\xff\x00"}, {Worker: "w1' --"},
		{CreatedFrom: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}, {CreatedUntil: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{CreatedFrom: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, {CreatedUntil: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)},
		{CreatedFrom: time.UnixMicro(math.MinInt64)}, {CreatedFrom: time.UnixMicro(math.MaxInt64)}, {CreatedUntil: time.UnixMicro(math.MinInt64)},
		{CreatedUntil: time.UnixMicro(math.MaxInt64)}, {CreatedFrom: k.minutesAfter(-2), CreatedUntil: k.minutesAfter(-5)},
		{IDPrefix: "t1"}, {IDPrefix: "t07"}, {IDPrefix: "t"}, {IDPrefix: "t070"}, {IDPrefix: "u"}, {IDPrefix: "\xff"}, {IDPrefix: "t\x80"}, {IDPrefix: "t\xff\xff"}, {IDPrefix: "t1\xff"}, {IDPrefix: "t0", Phase: taskstore.PhaseDone},
		{IsError: &yes}, {IsError: &no}, {IsError: &no, Outcome: taskstore.OutcomeResult}, {IsError: &yes, Unfinished: true},
		{Failed: true}, {Failed: true, Tool: "t"}, {Failed: true, Outcome: taskstore.OutcomeResult}, {Failed: true, Unfinished: true},
		{EndedFrom: k.minutesAfter(3)}, {EndedFrom: time.UnixMicro(math.MinInt64)}, {EndedFrom: time.UnixMicro(math.MaxInt64)},
		{Failed: true, EndedFrom: k.minutesAfter(3)}, {Failed: true, EndedFrom: k.minutesAfter(1), OldestFirst: true},
		{Failed: true, EndedFrom: k.minutesAfter(1), CreatedFrom: k.minutesAfter(-5)},
		{Phase: "odd"}, {Outcome: "odd"}, {CreatedFrom: k.minutesAfter(-5)}, {CreatedUntil: k.minutesAfter(-5)},
		{CreatedFrom: k.minutesAfter(-6), CreatedUntil: k.minutesAfter(-2), Unfinished: true, OldestFirst: true},
	}
	for _, filter := range filters {
		var admitted []taskstore.Record
		for _, r := range want {
			if filter.Admits(&r) {
				admitted = append(admitted, trimRecord(r))
			}
		}
		if filter.OldestFirst {
			slices.Reverse(admitted)
		}
		for _, limit := range []int{1, 3, 24, 100} {
			got := k.scanAll(inspector, filter, limit)
			for i := range got {
				got[i] = trimRecord(got[i])
			}
			if d := diffRecords(got, admitted); d != "" {
				k.Errorf("scan %+v by %d: %d records, want %d: %s", filter, limit, len(got), len(admitted), d)
			}
		}
	}
	if none, err := inspector.Scan(k.ctx, taskstore.Filter{}, taskstore.Position{}, 0); err != nil || len(none) != 0 {
		k.Errorf("scanned at a limit of 0: %s, %v", describeRecords(none...), err)
	}
	k.wantCounts(inspector, want)
	k.wantFailed(inspector, want)
	last := want[0]
	k.deleteRecord(last.ID) // a position stays valid
	page, err := inspector.Scan(k.ctx, taskstore.Filter{}, taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}, 1)
	if err != nil || len(page) != 1 || page[0].ID != want[1].ID {
		k.Errorf("before the place of a deleted record: %s, %v", describeRecords(page...), err)
	}
	k.wantCounts(inspector, want[1:])
	k.wantFailed(inspector, want[1:])
	k.wantWorkers(inspector, want[1:])
}

// wantWorkers checks the leases before and after one of a worker.
func (k *kit) wantWorkers(inspector taskstore.Inspector, records []taskstore.Record) {
	k.Helper()
	check := func(when string, leased ...string) {
		k.Helper()
		want := map[string]int{}
		for _, worker := range leased {
			want[worker] = 0
		}
		for _, r := range records {
			worker := r.Claim.Worker
			if !slices.Contains(leased, worker) {
				worker = ""
			}
			if !r.Done() {
				want[worker]++
			}
		}
		got := map[string]int{}
		want["the clock"] = 0 // see readClock
		workers, err := inspector.Workers(k.ctx)
		for _, w := range workers {
			if (w.Worker == "") != w.Until.IsZero() {
				k.Errorf("%s: the lease of %q lasts until %v", when, w.Worker, w.Until)
			}
			got[w.Worker] += w.Unfinished
		}
		if d := diffRecords(got, want); err != nil || d != "" {
			k.Errorf("%s: the workers: %v, %s", when, err, d)
		}
	}
	check("without leases")
	for _, worker := range []string{"w1", "idle"} {
		if _, err := k.s.Beat(k.ctx, worker, time.Hour, nil); err != nil {
			k.Fatalf("beat of %s: %v", worker, err)
		}
	}
	check("with leases", "w1", "idle")
	if err := k.s.Release(k.ctx, "idle"); err != nil {
		k.Fatalf("release: %v", err)
	}
	check("after a release", "w1")
}

// wantCounts compares the counts of unfinished records.
func (k *kit) wantCounts(inspector taskstore.Inspector, records []taskstore.Record) {
	k.Helper()
	want, got := map[taskstore.Count]int{}, map[taskstore.Count]int{}
	for _, r := range records {
		if !r.Done() {
			want[taskstore.Count{Tool: r.Tool, Phase: r.Phase, Worker: r.Claim.Worker}]++
		}
	}
	counts, err := inspector.CountUnfinished(k.ctx)
	for _, c := range counts {
		got[taskstore.Count{Tool: c.Tool, Phase: c.Phase, Worker: c.Worker}] += c.Count
	}
	if d := diffRecords(got, want); err != nil || d != "" {
		k.Errorf("the counts of unfinished records: %v, %s", err, d)
	}
}

// wantFailed compares the counts of failed records, and then those of more than are counted.
func (k *kit) wantFailed(inspector taskstore.Inspector, records []taskstore.Record) {
	k.Helper()
	for _, since := range []time.Time{{}, k.minutesAfter(1), k.minutesAfter(3), k.minutesAfter(60)} {
		want, got := map[taskstore.Count]int{}, map[taskstore.Count]int{}
		for _, r := range records {
			if r.Failed() && !r.TerminalAt.Before(since) {
				want[taskstore.Count{Tool: r.Tool, Phase: taskstore.PhaseDone}]++
			}
		}
		counts, err := inspector.CountFailed(k.ctx, since)
		for _, c := range counts {
			got[taskstore.Count{Tool: c.Tool, Phase: c.Phase}] += c.Count
		}
		if d := diffRecords(got, want); err != nil || d != "" {
			k.Errorf("the counts of records that have failed since %v: %v, %s", since, err, d)
		}
	}
}

// testFailedBound checks that CountFailed counts the records that fail, and stops at its bound.
func testFailedBound(k *kit) {
	inspector, ok := k.s.(taskstore.Inspector)
	if !ok {
		k.Skip("the store is not a taskstore.Inspector")
	}
	count := func() (n int) {
		k.Helper()
		counts, err := inspector.CountFailed(k.ctx, k.minutesAfter(0))
		if err != nil {
			k.Fatalf("count the records that have failed: %v", err)
		}
		for _, c := range counts {
			n += c.Count
		}
		return n
	}
	// fail returns the record as it is once it has failed.
	fail := func(r taskstore.Record) taskstore.Record {
		r.Phase, r.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeResult, IsError: true}
		r.TerminalAt, r.Claim = k.minutesAfter(1), taskstore.Claim{}
		return r
	}
	before := count()
	r := k.createRecord(k.newRecord("fails", "p", k.minutesAfter(0)))
	if n := count(); n != before {
		k.Errorf("%d records have failed before one fails, want %d", n, before)
	}
	k.updateRecord(r, fail(r))
	if n := count(); n != before+1 {
		k.Errorf("%d records have failed after one has failed, want %d", n, before+1)
	}
	for i := range taskstore.MaxCountFailed {
		k.createRecord(fail(k.newRecord(fmt.Sprint("fails", i), "p", k.minutesAfter(0))))
	}
	if n := count(); n != taskstore.MaxCountFailed {
		k.Errorf("%d records are counted of more, want %d", n, taskstore.MaxCountFailed)
	}
}
