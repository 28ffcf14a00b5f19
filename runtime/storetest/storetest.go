// Package storetest holds every promise of [mcptask.Store] as a test that any
// store can run, and a store that fails on purpose. A store's own test is:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Stores{
//			Open: func(t testing.TB) mcptask.Store {
//				s, err := mystore.Open(t.TempDir())
//				if err != nil {
//					t.Fatal(err)
//				}
//				return s
//			},
//		})
//	}
//
// Run it with -race too. Each promise is a subtest, named for the method that
// makes it:
//
//   - Create/get and delete: a new record is Version 1, a second one with its ID
//     is ErrExists and changes nothing; what is deleted is gone, and its ID free.
//   - Create/keys: ErrExists and the first record for the same principal, tool
//     and idempotency key, and for no others; a key goes with its record.
//   - Create/keys in a race: of many with one key one is stored, and all get it.
//   - Create/quota: an account has no more records, and no more unfinished ones,
//     than its quota; an end, Delete and Expire make room; who is refused leaves
//     nothing behind.
//   - Create/quota in a race: however many are created at once, of one account or of many.
//   - Create/quota of scopes: records, unfinished ones and bytes of an account, of all
//     without a principal, and of all; the error says which is full.
//   - Get/what was stored: strings and bytes byte for byte, with NUL and invalid
//     UTF-8, of megabytes; times to the microsecond, zero ones too; nil as nil.
//   - Get/a copy: what is done to a record that was given or handed out does not
//     reach the store.
//   - Update/compare and set: only the version that is there, which then is the
//     next; ErrNoRecord for none.
//   - Update/what never changes: principal, account, tool, key and creation.
//   - Update/quota of bytes: a record that grows beyond the bytes of a scope stays as it
//     is; one that does not grow is never refused.
//   - Update/quota of bytes in a race: however many grow at once.
//   - Update/one winner: of many updates of one version, in each of many rounds.
//   - Update/whole records: no reader sees parts of two.
//   - Delete/what was seen: only the version that is there, of the record that was
//     made then: not of a new one with its ID. One of many succeeds.
//   - List/pages: oldest first, then by ID, whatever the limit; a place stays one
//     when its record is gone.
//   - List/one principal: nobody else's records, however alike the names are.
//   - List/under change: what is there throughout is listed once, while others
//     come and go.
//   - Expire/batches: up to the limit, which may be 0, to the very moment, with key and list; an
//     expiry that moves is followed.
//   - Expire/in a race: each record is handed to one caller.
//   - Wait/what is new: at once where it is there; ErrNoRecord without a record.
//   - Wait/no lost wake-up: between two calls, however fast the writer is.
//   - Wait/thousands: all of them wake.
//   - Wait/gone: ErrNoRecord when the record is deleted or expires.
//   - Wait/called off: the context's error.
//   - Close/waiting calls: ErrServerClosed; then Create fails; a second Close does
//     nothing.
//   - Lease/fencing: no lease before its end, none of a finished record, none of
//     one's own; a new version fences the former worker off.
//   - Lease/in a race: each record goes to one worker, in batches.
//   - Lease/renew and release: of one worker, and of no version.
//   - Lease/under update: an Update does not undo a Renew, a new worker brings a
//     lease.
//   - all/ended context: a call does all or nothing.
//   - all/random programs: in one goroutine the store does what a simple model does.
//   - all/random histories: in several, each version has one writer, nobody reads
//     what is out of date, and what was deleted stays so.
//   - all/shared: with Stores.Share, what one handle writes the other reads, waits
//     for, and keeps when the first is closed.
//   - all/reopened: with Stores.Reopen, records, keys, quotas, lists and leases
//     are there afterwards.
//
// Random programs take the flags of [pgregory.net/rapid]: -rapid.checks=10 is for
// a slow store. One that fails is left in testdata/rapid of the package under test,
// and runs first the next time: delete it when it is mended, and do not commit it.
// Messages tell records apart by ID, version, worker and times, and compared ones
// by the fields that differ: "-" is what should be there, "+" what is.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Stores makes the stores under test.
type Stores struct {
	// Open makes a store without records. The kit closes it.
	Open func(t testing.TB) mcptask.Store
	// Share opens the database of a store once more, as another process would;
	// the kit closes what it returns. nil is a store of one process.
	Share func(t testing.TB, s mcptask.Store) mcptask.Store
	// Reopen opens the database of a store that the kit has closed, as a process does
	// that was started again; the kit closes what it returns. nil is a store
	// that keeps nothing.
	Reopen func(t testing.TB, closed mcptask.Store) mcptask.Store
}

// Run tests that a store keeps every promise of [mcptask.Store]. The subtests
// run in parallel, each with a store of its own.
func Run(t *testing.T, stores Stores) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, stores)
		})
	}
}

// promises are the tests by name; the package's comment tells what each holds.
var promises = []promise{
	{"Create/get and delete", testCreate},
	{"Create/keys", testKeys},
	{"Create/keys in a race", testKeysRace},
	{"Create/quota", testQuota},
	{"Create/quota in a race", testQuotaRace},
	{"Create/quota of scopes", testQuotaScopes},
	{"Get/what was stored", testContent},
	{"Get/a copy", testCopies},
	{"Update/compare and set", testUpdate},
	{"Update/what never changes", testUpdateKeeps},
	{"Update/quota of bytes", testUpdateBytes},
	{"Update/quota of bytes in a race", testUpdateBytesRace},
	{"Update/one winner", testOneWinner},
	{"Update/whole records", testWhole},
	{"Delete/what was seen", testDelete},
	{"List/pages", testPages},
	{"List/one principal", testPrincipals},
	{"List/under change", testListUnderChange},
	{"Expire/batches", testExpire},
	{"Expire/in a race", testExpireRace},
	{"Wait/what is new", testWait},
	{"Wait/no lost wake-up", testWakeUps},
	{"Wait/thousands", testThousands},
	{"Wait/gone", testWaitGone},
	{"Wait/called off", testWaitCalledOff},
	{"Close/waiting calls", testClose},
	{"Lease/fencing", testLease},
	{"Lease/in a race", testLeaseRace},
	{"Lease/renew and release", testRenew},
	{"Lease/under update", testRenewUnderUpdate},
	{"all/ended context", testContext},
	{"all/random programs", testPrograms},
	{"all/random histories", testHistories},
	{"all/shared", testShared},
	{"all/reopened", testReopened},
}

type promise struct {
	name string
	test func(k *kit)
}

// check runs one promise against a store of its own.
func (p promise) check(t testing.TB, stores Stores) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	k := &kit{TB: t, ctx: ctx, stores: stores}
	k.s = k.closed(stores.Open(t))
	k.other = k.s
	if stores.Share != nil {
		k.other = k.closed(stores.Share(t, k.s))
	}
	p.test(k)
}

// patience is how long a promise may take; a call that hangs ends then.
const patience = 2 * time.Minute

// kit is what a promise is tested with.
type kit struct {
	testing.TB
	ctx context.Context
	// s and other are the store, by two ways where it has two.
	s, other mcptask.Store
	stores   Stores
}

// closed sees to it that the store is closed in the end.
func (k *kit) closed(s mcptask.Store) mcptask.Store {
	k.Cleanup(func() {
		if err := s.Close(); err != nil {
			k.Errorf("close: %v", err)
		}
	})
	return s
}

// way is one of the two ways to the store, in turn.
func (k *kit) way(i int) mcptask.Store {
	if i%2 == 0 {
		return k.s
	}
	return k.other
}

// epoch is when the records of tests are made: nothing here reads a clock.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)

// minutes is a moment so long after epoch.
func minutes(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }

// record is a queued task of worker w1, whose lease ends after a minute; it
// expires after an hour.
func record(id, principal string, created time.Time) mcptask.Record {
	return mcptask.Record{
		ID: id, Principal: principal, Account: "account of " + principal, Tool: "tool", Arguments: []byte(`{"a":1}`),
		Revision: mcptask.Revision20251125, CanAsk: []string{"elicitation/create"}, Phase: mcptask.PhaseQueued,
		CreatedAt: created, UpdatedAt: created, ExpiresAt: created.Add(time.Hour), Poll: time.Second,
		Worker: "w1", LeaseUntil: created.Add(time.Minute),
	}
}

// done makes a record a finished one.
func done(r mcptask.Record) mcptask.Record {
	r.Phase, r.Outcome, r.TerminalAt = mcptask.PhaseDone, &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: []byte(`{"content":[]}`)}, r.CreatedAt
	r.Worker, r.LeaseUntil = "", time.Time{}
	return r
}

// create stores a record that has to be stored.
func (k *kit) create(r mcptask.Record) mcptask.Record {
	k.Helper()
	stored, err := k.s.Create(k.ctx, r, mcptask.Quota{})
	if err != nil {
		k.Fatalf("create %q: %v", r.ID, err)
	}
	return stored
}

// update stores the next version of a record.
func (k *kit) update(r mcptask.Record) mcptask.Record {
	k.Helper()
	stored, err := k.s.Update(k.ctx, r, mcptask.Quota{})
	if err != nil {
		k.Fatalf("update %q from version %d: %v", r.ID, r.Version, err)
	}
	return stored
}

// get reads a record that has to be there, the one way and the other.
func (k *kit) get(id string) mcptask.Record {
	k.Helper()
	got, err := k.s.Get(k.ctx, id)
	if err != nil {
		k.Fatalf("get %q: %v", id, err)
	}
	if k.other != k.s {
		there, err := k.other.Get(k.ctx, id)
		if err != nil {
			k.Fatalf("get %q from the other handle: %v", id, err)
		}
		k.same("the other handle's record", there, got)
	}
	return got
}

// absent says that there is no such record.
func (k *kit) absent(id string) {
	k.Helper()
	if got, err := k.s.Get(k.ctx, id); !errors.Is(err, mcptask.ErrNoRecord) {
		k.Errorf("get %q, which is not there: %s, %v", id, brief(got), err)
	}
}

// same compares two records.
func (k *kit) same(what string, got, want mcptask.Record) {
	k.Helper()
	if d := different(got, want); d != "" {
		k.Errorf("%s: %s", what, d)
	}
}

// brief tells records apart: which they are, and who has them in which version.
func brief(records ...mcptask.Record) string {
	var texts []string
	for _, r := range records {
		texts = append(texts, fmt.Sprintf("%q (version %d, %s, of %q, worker %q until %s, expires %s)", r.ID, r.Version, r.Phase, r.Principal,
			r.Worker, r.LeaseUntil.Format(time.RFC3339Nano), r.ExpiresAt.Format(time.RFC3339Nano)))
	}
	return fmt.Sprint(len(records), " records ", strings.Join(texts, ", "))
}

// is compares the errors of a call that has to fail.
func (k *kit) is(what string, err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Errorf("%s: the error is %v, want %v", what, err, want)
	}
}

// different is how two records differ, "" where they do not. A time is an
// instant; an empty slice is no slice.
func different(got, want any) string {
	options := cmp.Options{cmpopts.EquateEmpty(), cmp.FilterValues( // go-cmp by itself takes bytes one by one
		func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 },
		cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))}
	if cmp.Equal(want, got, options) {
		return ""
	}
	d := cmp.Diff(want, got, options)
	const most, longest = 20, 200 // of a huge difference
	var lines []string
	for line := range strings.Lines(d) {
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			lines = append(lines, line[:min(len(line), longest)])
		}
	}
	return "(- want, + got)\n" + strings.Join(lines[:min(len(lines), most)], "")
}

// list walks a principal's list and returns the IDs; between is called after
// each page.
func (k *kit) list(principal string, limit int, between func()) []string {
	k.Helper()
	var ids []string
	for after := (mcptask.Position{}); ; {
		page, err := k.s.List(k.ctx, principal, after, limit)
		if err != nil {
			k.Fatalf("list: %v", err)
		}
		if len(page) > limit {
			k.Fatalf("a page of %d at limit %d", len(page), limit)
		}
		for _, r := range page {
			if r.Principal != principal {
				k.Errorf("%q of %q stands in the list of %q", r.ID, r.Principal, principal)
			}
			ids = append(ids, r.ID)
		}
		if len(ids) > 100_000 {
			k.Fatalf("the list of %q does not end", principal)
		}
		if len(page) < limit {
			return ids
		}
		last := page[len(page)-1]
		after = mcptask.Position{CreatedAt: last.CreatedAt, ID: last.ID}
		if between != nil {
			between()
		}
	}
}
