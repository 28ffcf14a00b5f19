package storetest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// damaged is the state of a test of one way to damage records.
type damaged struct {
	*kit
	way, tool, principal string
	// reader is a handle that was opened after the damage, if the store can be shared.
	reader taskstore.Store
	// was are the records, by ID, as they were before the damage.
	was map[string]taskstore.Record
	ids []string
	// undo has the functions that undo the damage, by the ID of a damaged record.
	undo map[string]func()
}

func testUnreadable(k *kit) {
	if len(k.stores.Damage) == 0 {
		k.Skip("no record can be damaged: Stores.Damage is empty")
	}
	for _, way := range slices.Sorted(maps.Keys(k.stores.Damage)) {
		d := &damaged{kit: k, way: way, tool: "tool of " + way, principal: "p of " + way, was: map[string]taskstore.Record{}, undo: map[string]func(){}}
		d.createAll()
		feed := k.follow(k.other)
		for _, i := range []int{0, 1, 2, 7, 8, 9, 10, 15} { // at both ends, in a row, and of both kinds
			d.undo[d.ids[i]] = k.stores.Damage[way](k.TB, k.s, d.ids[i])
		}
		d.reader = k.s
		if k.stores.Share != nil {
			d.reader = k.closeAtEnd(k.stores.Share(k.TB, k.s))
		}
		d.checkGet()
		d.checkList()
		d.checkInspector()
		d.checkCreate(feed)
		d.checkWaiting()
		d.checkLease()
		d.checkExpire()
	}
}

// createAll stores 16 records of a worker without a lease. Every fourth waits instead, every fourth has ended, and every
// third has expired.
func (d *damaged) createAll() {
	for i := range 16 {
		r := d.newFullRecord(fmt.Sprintf("%s-%02d", d.way, i))
		r.Principal, r.Account, r.Tool, r.Claim.Worker = d.principal, "account of "+d.way, d.tool, "former of "+d.way
		r.CreatedAt = d.minutesAfter(i - 30)
		r.ExpiresAt = d.minutesAfter(60)
		if i%3 == 0 {
			r.ExpiresAt = d.minutesAfter(-1)
		}
		if i%4 != 3 {
			r.Phase, r.Outcome, r.TerminalAt = taskstore.PhaseInputRequired, nil, r.CreatedAt
		}
		if i%4 == 2 {
			r.Claim.Worker = ""
		}
		d.was[r.ID], d.ids = d.createRecord(r), append(d.ids, r.ID)
	}
}

// isDamaged reports whether a record was damaged.
func (d *damaged) isDamaged(id string) bool { return d.undo[id] != nil }

// readable returns the IDs of the records that were not damaged, and that are admitted, in the order of
// their creation.
func (d *damaged) readable(admits func(r taskstore.Record) bool) []string {
	return slices.DeleteFunc(slices.Clone(d.ids), func(id string) bool { return d.isDamaged(id) || !admits(d.was[id]) })
}

func (d *damaged) checkGet() {
	for _, id := range d.ids {
		got, err := d.reader.Get(d.ctx, id)
		if !d.isDamaged(id) {
			d.wantRecord(d.way+": a record beside", got, d.was[id])
			continue
		}
		d.wantError(d.way+": get", err, taskstore.ErrUnreadable)
		d.wantRecord(d.way+": what Get returns", got, taskstore.Record{ID: id, Principal: d.principal})
	}
}

// checkPages checks a list that was read in pages of a limit. A list may have a damaged record if it does
// not need the damaged part.
func (d *damaged) checkPages(what string, limit int, want []string, read func(after taskstore.Position) ([]taskstore.Record, error)) {
	d.Helper()
	var ids []string
	for after := (taskstore.Position{}); len(ids) <= len(d.ids); {
		page, err := read(after)
		if err != nil || len(page) > limit {
			d.Errorf("%s: %s at limit %d: %d records, %v", d.way, what, limit, len(page), err)
			return
		}
		for _, r := range page {
			if !d.isDamaged(r.ID) {
				d.wantRecord(d.way+": "+what, trimRecord(r), trimRecord(d.was[r.ID]))
				ids = append(ids, r.ID)
			}
		}
		if len(page) < limit {
			break
		}
		last := page[len(page)-1]
		after = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
	if !slices.Equal(ids, want) {
		d.Errorf("%s: %s at limit %d: %q, want %q", d.way, what, limit, ids, want)
	}
}

func (d *damaged) checkList() {
	want := d.readable(func(taskstore.Record) bool { return true })
	for _, limit := range []int{1, 2, 3, 8, 16, 50} {
		d.checkPages("List", limit, want, func(after taskstore.Position) ([]taskstore.Record, error) {
			return d.reader.List(d.ctx, d.principal, after, limit)
		})
	}
}

func (d *damaged) checkInspector() {
	inspector, ok := d.reader.(taskstore.Inspector)
	if !ok {
		return
	}
	for _, filter := range []taskstore.Filter{{Tool: d.tool}, {Principal: d.principal, OldestFirst: true}, {Tool: d.tool, Unfinished: true}, {IDPrefix: d.way + "-"}} {
		want := d.readable(func(r taskstore.Record) bool { return filter.Admits(&r) })
		if !filter.OldestFirst {
			slices.Reverse(want)
		}
		for _, limit := range []int{1, 3, 50} {
			d.checkPages(fmt.Sprintf("Scan %+v", filter), limit, want, func(after taskstore.Position) ([]taskstore.Record, error) {
				return inspector.Scan(d.ctx, filter, after, limit)
			})
		}
	}
	counts, err := inspector.CountUnfinished(d.ctx)
	n := 0
	for _, c := range counts {
		if c.Tool == d.tool && c.Phase == taskstore.PhaseInputRequired {
			n += c.Count
		}
	}
	least := len(d.readable(func(r taskstore.Record) bool { return !r.Done() }))
	if err != nil || n < least || n > least+len(d.undo) {
		d.Errorf("%s: %d records are counted as unfinished, want %d and up to %d more: %v", d.way, n, least, len(d.undo), err)
	}
	if _, err := inspector.Workers(d.ctx); err != nil {
		d.Errorf("%s: workers: %v", d.way, err)
	}
}

// checkCreate checks new records beside damaged ones, and that the feed goes on.
func (d *damaged) checkCreate(feed *follower) {
	newRecord := func(id, key string) taskstore.Record {
		r := d.newRecord(id, d.principal, d.epoch)
		r.Account, r.Tool, r.IdempotencyKey = "account of "+d.way, d.tool, key
		return r
	}
	create := func(r taskstore.Record, quota taskstore.Quota) error {
		_, err := d.reader.Create(d.ctx, r, quota)
		return err
	}
	id := d.way + " new"
	for _, taken := range d.ids {
		want := taskstore.ErrExists
		if d.isDamaged(taken) {
			want = taskstore.ErrUnreadable
		}
		d.wantError(d.way+": a key that is taken", create(newRecord(id, d.was[taken].IdempotencyKey), taskstore.Quota{}), want)
		d.wantError(d.way+": an ID that is taken", create(newRecord(taken, ""), taskstore.Quota{}), taskstore.ErrExists)
	}
	d.wantAbsent(id)
	d.wantError(d.way+": a quota", create(newRecord(id, ""), quotaOf(len(d.ids), 0)), taskstore.ErrQuotaStored)
	d.wantError(d.way+": a new record", create(newRecord(id, ""), quotaOf(len(d.ids)+1, 0)), nil)
	feed.want(taskstore.Change{ID: id, Version: 1, Phase: taskstore.PhaseQueued})
	d.deleteRecord(id)
	feed.want(taskstore.Change{ID: id})
	if _, err := d.reader.Beat(d.ctx, "w of "+d.way, leaseTime, d.ids); err != nil {
		d.Errorf("%s: beat: %v", d.way, err)
	}
	if err := d.reader.Release(d.ctx, ""); err != nil {
		d.Errorf("%s: release: %v", d.way, err)
	}
}

// checkWaiting checks the tasks that wait. Damaged ones may be among them.
func (d *damaged) checkWaiting() {
	list, err := d.reader.Waiting(d.ctx, []string{d.tool}, "", 50)
	var ids []string
	for _, w := range list {
		if !d.isDamaged(w.ID) {
			ids = append(ids, w.ID)
		}
	}
	if want := d.readable(func(r taskstore.Record) bool { return r.IsFree() }); err != nil || !slices.Equal(ids, want) {
		d.Errorf("%s: %q wait, want %q: %v", d.way, ids, want, err)
	}
}

func (d *damaged) checkLease() {
	const limit = 3
	want := d.readable(func(r taskstore.Record) bool { return !r.Done() && r.Claim.Worker != "" })
	var ids []string
	for len(ids) <= len(d.ids) {
		taken, err := d.reader.Lease(d.ctx, "w of "+d.way, leaseTime, []string{d.tool}, limit)
		if err != nil || len(taken) > limit {
			d.Errorf("%s: lease: %d records, %v", d.way, len(taken), err)
			return
		}
		for _, r := range taken {
			leased := d.was[r.ID]
			leased.Claim.Worker, leased.Version = "w of "+d.way, leased.Version+1
			d.wantRecord(d.way+": lease", r, leased)
			d.was[r.ID], ids = leased, append(ids, r.ID)
		}
		if len(taken) < limit {
			break
		}
	}
	if slices.Sort(ids); !slices.Equal(ids, want) {
		d.Errorf("%s: leased are %q, want %q", d.way, ids, want)
	}
}

// checkExpire checks that expired records go, damaged or not, and that the others are as they were. It
// removes all.
func (d *damaged) checkExpire() {
	var want, ids []string
	for _, id := range d.ids {
		if d.was[id].ExpiresAt.Before(d.epoch) {
			want = append(want, id)
		}
	}
	for len(ids) <= len(d.ids) {
		gone, err := d.reader.Expire(d.ctx, 2)
		if err != nil || len(gone) > 2 {
			d.Errorf("%s: expire: %d records, %v", d.way, len(gone), err)
			break
		}
		for _, r := range gone {
			if ids = append(ids, r.ID); r.Principal != d.principal {
				d.Errorf("%s: expired is %s", d.way, describeRecords(r))
			}
		}
		if len(gone) < 2 {
			break
		}
	}
	if slices.Sort(ids); !slices.Equal(ids, want) {
		d.Errorf("%s: expired are %q, want %q", d.way, ids, want)
	}
	for _, id := range d.ids {
		if slices.Contains(want, id) {
			d.wantTombstone(id, d.principal)
			continue
		}
		if d.isDamaged(id) {
			d.undo[id]()
		}
		got, err := d.reader.Get(d.ctx, id)
		if d.wantRecord(d.way+": after the damage is undone", got, d.was[id]); err == nil {
			d.wantError(d.way+": delete", d.reader.Delete(d.ctx, got), nil)
		}
	}
	// Nothing of the damaged records is left.
	r := d.newRecord(want[0], d.principal, d.epoch)
	r.Account, r.Tool, r.IdempotencyKey = "account of "+d.way, d.tool, d.was[want[0]].IdempotencyKey
	r, err := d.reader.Create(d.ctx, r, quotaOf(1, 1))
	if err == nil {
		err = d.reader.Delete(d.ctx, r)
	}
	if err != nil {
		d.Errorf("%s: create a record anew: %v", d.way, err)
	}
}
