// Package storetest tests every promise of [taskstore.Store] against any store. It also provides a
// store that fails on purpose. A store's own test looks like this:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Stores{
//			Open: func(t testing.TB) taskstore.Store {
//				s, err := mystore.Open(t.TempDir())
//				if err != nil {
//					t.Fatal(err)
//				}
//				return s
//			},
//		})
//	}
//
// Run it with -race too. Each promise is a subtest, named after the method that makes it:
//
//   - Create/get and delete: a new record has Version 1. A second record with its ID returns
//     ErrExists and changes nothing. A deleted record is gone and its ID is free.
//   - Create/again: a Create again, with the same Nonce, returns the record and changes nothing, as
//     long as the record has not changed.
//   - Create/keys: the same principal, tool and idempotency key return ErrExists and the first
//     record. No other combination does. A key is deleted with its record.
//   - Create/keys in a race: of many records with one key, one is stored, and all calls return it.
//   - Create/quota: an account has no more records and unfinished records than its quota. An end,
//     Delete and Expire make room. A refused create leaves nothing behind.
//   - Create/quota in a race: the quota holds however many records are created at once, of one
//     account or of many.
//   - Create/quota of scopes: records, unfinished records and bytes are limited per account, for
//     all records without a principal, and in total. The error names the full scope.
//   - Get/what was stored: strings and bytes stay the same byte for byte, including NUL, invalid
//     UTF-8 and megabytes. Times keep their microseconds, including zero times. nil stays nil.
//   - Get/a copy: changes to a given or returned record do not reach the store.
//   - Update/compare and set: only the current version can be updated, and becomes the next one. A
//     missing record returns ErrNoRecord.
//   - Update/again: an Update again, from the same version and with the same Nonce, returns the record
//     and changes nothing, as long as no other write has followed.
//   - Update/lost answers: writes that are made until they are answered count once, although answers
//     get lost.
//   - Update/what never changes: all fields that are fixed at the creation, and the outcome.
//   - Update/quota of bytes: a record that would exceed the bytes of a scope stays unchanged. A
//     record that does not grow is never refused.
//   - Update/quota of bytes in a race: the quota holds however many records grow at once.
//   - Update/steps: the steps of an update are stored with it, and replace those with their names. Names,
//     values and times stay exact, and every handle returns them oldest first, then by name. An update
//     that fails stores none. They are deleted with their record.
//   - Update/steps again: an Update again, with the same Nonce, changes no step, and lost answers lose none.
//   - Update/steps in a race: of many updates of a version, only the steps of the one that succeeds are stored.
//   - Update/one winner: one of many updates of a version succeeds, in each of many rounds.
//   - Update/whole records: a reader never sees parts of two versions.
//   - Delete/what was seen: only the current version of the same record is deleted, never a new
//     record with its ID. One of many calls succeeds.
//   - List/pages: oldest first, then by ID, with any limit. A position stays valid when its record
//     is gone.
//   - List/one principal: a list has only records of its principal, however similar the names are.
//   - List/under change: a record that exists throughout is listed once, while others come and go.
//   - Expire/batches: up to the limit, which may be 0, and exact to the moment. Keys and list
//     entries go too. A changed expiry is used.
//   - Expire/the store's clock: records expire when the store's time comes, not before.
//   - Expire/tombstones: an expired record returns ErrRecordExpired with its ID and principal for
//     TombstoneFor, and ErrNoRecord from then on. Its ID is free. A deleted record leaves nothing.
//   - Expire/in a race: each record is returned to one caller.
//   - Changes/every version: the first Change has Missed set. Then each version, deletion and expiry of every handle
//     comes, in the order of the versions. Get returns at least the version in the feed.
//   - Changes/nothing lost: a change that begins after the first Change is never lost, however fast
//     the writers are.
//   - Changes/many readers: each reader gets every change.
//   - Changes/a slow reader: a reader that stops holds up neither writers nor other readers. It gets
//     the changes later, or Missed.
//   - Changes/the end: a feed ends with its context, with its reader, and with its store.
//   - Close/the end: Create fails afterwards. A second Close does nothing.
//   - Waiting/whose: the unfinished records of the tools without a worker wait, up to the limit, whatever
//     their phases and the leases are. One that gets a worker, ends, expires or is deleted leaves the list.
//     One that is handed back comes again. The feed says that it is free.
//   - Waiting/turns: accounts take turns, from any account on, with any limit. The oldest task of an
//     account comes first, and those of the same time by ID. Names keep every byte.
//   - Waiting/in a race: one of the workers that take a task gets it, and all lists are without it then.
//   - Lease/whose: unfinished records of the tools whose worker has no lease are taken, up to the limit. Those
//     of the worker itself, of a worker with a lease or of no worker, and finished ones are not.
//   - Lease/fencing: a lease holds until its end. Then another worker gets a new version, which
//     fences off the former worker. The new worker's lease has begun.
//   - Lease/clocks: the times in records, which are of any clock, do not change a lease.
//   - Lease/in a race: each record goes to one worker, in batches.
//   - Beat/all records: a beat is a lease of all records of the worker, later ones included. It
//     makes no version. It can renew a lease that has ended.
//   - Beat/lost: a beat returns the store's time, and the held IDs that are no longer unfinished
//     records of the worker.
//   - Release/at once: the records of the worker, and only those, can be taken at once. The feeds of
//     all handles say so.
//   - Inspector/scan and count: if the store is an [taskstore.Inspector]: in either order, with any
//     filter, limit and position, the unfinished and the failed by tool, and the leases of workers.
//   - Inspector/failed: a record that fails is counted, and no more than MaxCountFailed are.
//   - Sessions/the key: if the store is a [taskstore.SessionStore]: all calls get the same key, at once
//     and through any handle, and another store has another key.
//   - Sessions/ended: an ended session is remembered for its principal, by all handles, whatever
//     others end. There is room again once earlier ones have expired.
//   - Sessions/reopened: the key and the ended sessions survive.
//   - all/unreadable records: with Stores.Damage, a record that the store cannot read holds up no
//     query. Get and Create say so, and Expire removes it when its time has come. It is not changed
//     before.
//   - all/ended context: a call does all of its work or nothing.
//   - all/random programs: in one goroutine, the store behaves like a simple model.
//   - all/random histories: in several goroutines, each version has one writer, reads are never
//     stale, deleted records stay deleted, and feeds lose nothing.
//   - all/shared: with Stores.Share, one handle reads and hears the writes of the other, and keeps working when the
//     other is closed.
//   - all/reopened: with Stores.Reopen, records, steps, keys, quotas, lists, tombstones and leases survive.
//
// The times in the records of a test are near the store's, as Beat returns it. Tests that need
// Stores.Advance are skipped without it.
//
// Random programs accept the flags of [pgregory.net/rapid]. Use -rapid.checks=10 for a slow store.
// A failed program is saved in testdata/rapid of the package under test and runs first the next
// time. Delete it after fixing the store, and do not commit it. Messages identify records by ID,
// version, worker and times. A comparison shows the fields that differ: "-" is the expected value
// and "+" is the actual one.
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
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Stores opens the stores under test.
type Stores struct {
	// Open opens an empty store. Run closes it.
	Open func(t testing.TB) taskstore.Store
	// Share opens a store's database again, as another process would, or from another process. Run
	// closes the result. A nil Share means that the store is for one process.
	Share func(t testing.TB, s taskstore.Store) taskstore.Store
	// Reopen opens the database of a store that Run has closed, as a restarted process would. Run
	// closes the result. A nil Reopen means that the store is not durable.
	Reopen func(t testing.TB, closed taskstore.Store) taskstore.Store
	// Advance moves the clock of a store forward, for all handles of its database. A nil Advance
	// skips the tests that need it.
	Advance func(t testing.TB, s taskstore.Store, d time.Duration)
	// Damage has functions that make a stored record unreadable for the store, by a name for the way:
	// they cut it off, or write it as a newer version of the program would. Each changes the record with
	// an ID beside the store, such as by a statement of SQL, and returns a function that undoes it. The
	// record has questions, and may have ended. An empty Damage skips the test that needs it.
	Damage map[string]func(t testing.TB, s taskstore.Store, id string) (undo func())
}

// Run tests that a store keeps every promise of [taskstore.Store]. The subtests run in parallel, each
// with its own store.
func Run(t *testing.T, stores Stores) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.runTest(t, stores, testTimeout)
		})
	}
}

// promises lists the tests by name. The package comment describes them.
var promises = []promise{
	{"Create/get and delete", testCreate},
	{"Create/again", testCreateAgain},
	{"Create/keys", testKeys},
	{"Create/keys in a race", testKeysRace},
	{"Create/quota", testQuota},
	{"Create/quota in a race", testQuotaRace},
	{"Create/quota of scopes", testQuotaScopes},
	{"Get/what was stored", testContent},
	{"Get/a copy", testCopies},
	{"Update/compare and set", testUpdate},
	{"Update/again", testUpdateAgain},
	{"Update/lost answers", testLostAnswers},
	{"Update/what never changes", testUpdateKeeps},
	{"Update/quota of bytes", testUpdateBytes},
	{"Update/quota of bytes in a race", testUpdateBytesRace},
	{"Update/steps", testSteps},
	{"Update/steps again", testStepsAgain},
	{"Update/steps in a race", testStepsRace},
	{"Update/one winner", testOneWinner},
	{"Update/whole records", testWhole},
	{"Delete/what was seen", testDelete},
	{"List/pages", testPages},
	{"List/one principal", testPrincipals},
	{"List/under change", testListUnderChange},
	{"Expire/batches", testExpire},
	{"Expire/the store's clock", testExpireClock},
	{"Expire/tombstones", testTombstones},
	{"Expire/in a race", testExpireRace},
	{"Changes/every version", testChanges},
	{"Changes/nothing lost", testChangesRace},
	{"Changes/many readers", testManyReaders},
	{"Changes/a slow reader", testSlowReader},
	{"Changes/the end", testChangesEnd},
	{"Close/the end", testClose},
	{"Waiting/whose", testWaiting},
	{"Waiting/turns", testTurns},
	{"Waiting/in a race", testWaitingRace},
	{"Lease/whose", testLease},
	{"Lease/fencing", testFencing},
	{"Lease/clocks", testLeaseClocks},
	{"Lease/in a race", testLeaseRace},
	{"Beat/all records", testBeat},
	{"Beat/lost", testLost},
	{"Release/at once", testRelease},
	{"Inspector/scan and count", testInspector},
	{"Inspector/failed", testFailedBound},
	{"Sessions/the key", testSessionKey},
	{"Sessions/ended", testEndedSessions},
	{"Sessions/reopened", testReopenedSessions},
	{"all/unreadable records", testUnreadable},
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

// runTest tests one promise with a new store. The timeout ends calls that hang.
func (p promise) runTest(t testing.TB, stores Stores, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	k := &kit{TB: t, ctx: ctx, stores: stores}
	k.s = k.closeAtEnd(stores.Open(t))
	k.other = k.s
	if stores.Share != nil {
		k.other = k.closeAtEnd(stores.Share(t, k.s))
	}
	// Odd microseconds show a store that rounds times.
	k.epoch = k.readClock().UTC().Truncate(time.Millisecond).Add(6 * time.Microsecond)
	p.test(k)
}

// testTimeout limits the time of a promise.
const testTimeout = 2 * time.Minute

// kit holds the store under test and helpers for the tests.
type kit struct {
	testing.TB
	ctx context.Context
	// s and other are two handles of the store, or the same one.
	s, other taskstore.Store
	stores   Stores
	// epoch is the creation time of test records: about the store's time at the start of the test.
	epoch time.Time
}

// closeAtEnd closes the store at the end of the test.
func (k *kit) closeAtEnd(s taskstore.Store) taskstore.Store {
	k.Cleanup(func() {
		if err := s.Close(); err != nil {
			k.Errorf("close: %v", err)
		}
	})
	return s
}

// readClock returns the store's time.
func (k *kit) readClock() time.Time {
	k.Helper()
	return k.beat(k.s, "the clock").Now
}

// advanceClock moves the store's clock. It skips the test if that is impossible.
func (k *kit) advanceClock(d time.Duration) {
	if k.stores.Advance == nil {
		k.Skip("the store's clock cannot be moved: Stores.Advance is nil")
	}
	k.stores.Advance(k.TB, k.s, d)
}

// pickStore alternates between the two handles.
func (k *kit) pickStore(i int) taskstore.Store {
	if i%2 == 0 {
		return k.s
	}
	return k.other
}

// minutesAfter returns the time n minutes after the epoch.
func (k *kit) minutesAfter(n int) time.Time { return k.epoch.Add(time.Duration(n) * time.Minute) }

// newRecord returns a queued task of worker w1, which has no lease yet. It expires after an hour.
func (k *kit) newRecord(id, principal string, created time.Time) taskstore.Record {
	return taskstore.Record{
		ID: id, Principal: principal, Account: "account of " + principal, Tool: "tool", Arguments: []byte(`{"a":1}`),
		Revision: mcptask.Revision20251125, CanAsk: []string{"elicitation/create"}, Phase: taskstore.PhaseQueued,
		CreatedAt: created, UpdatedAt: created, ExpiresAt: created.Add(time.Hour), Poll: time.Second, Claim: taskstore.Claim{Worker: "w1"},
	}
}

// finishRecord returns the record as a finished one.
func finishRecord(r taskstore.Record) taskstore.Record {
	r.Phase, r.Outcome, r.TerminalAt = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(`{"content":[]}`)}, r.CreatedAt
	r.Claim.Worker = ""
	return r
}

// createRecord stores a record and fails the test if that is impossible.
func (k *kit) createRecord(r taskstore.Record) taskstore.Record {
	k.Helper()
	stored, err := k.s.Create(k.ctx, r, taskstore.Quota{})
	if err != nil {
		k.Fatalf("create %q: %v", r.ID, err)
	}
	return stored
}

// wantCreate creates a record and checks the error. A nil error means that it must succeed.
func (k *kit) wantCreate(what string, r taskstore.Record, quota taskstore.Quota, want error) {
	k.Helper()
	_, err := k.s.Create(k.ctx, r, quota)
	k.wantError(what, err, want)
}

// expireRecords deletes expired records and checks how many there are.
func (k *kit) expireRecords(limit, want int) []taskstore.Record {
	k.Helper()
	gone, err := k.other.Expire(k.ctx, limit)
	if err != nil || len(gone) != want {
		k.Errorf("%d records expired, want %d: %s, %v", len(gone), want, describeRecords(gone...), err)
	}
	return gone
}

// updateRecord stores the next version of a record.
func (k *kit) updateRecord(from, to taskstore.Record) taskstore.Record {
	k.Helper()
	stored, err := k.s.Update(k.ctx, from, to, taskstore.Quota{})
	if err != nil {
		k.Fatalf("update %q from version %d: %v", from.ID, from.Version, err)
	}
	return stored
}

// getRecord reads a record that must exist, from both handles.
func (k *kit) getRecord(id string) taskstore.Record {
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
		k.wantRecord("the other handle's record", there, got)
	}
	return got
}

// wantAbsent checks that a record does not exist. It may have expired.
func (k *kit) wantAbsent(id string) {
	k.Helper()
	if got, err := k.s.Get(k.ctx, id); !errors.Is(err, taskstore.ErrNoRecord) {
		k.Errorf("get %q, which should not exist: %s, %v", id, describeRecords(got), err)
	}
}

// wantRecord compares two records.
func (k *kit) wantRecord(what string, got, want taskstore.Record) {
	k.Helper()
	if d := diffRecords(got, want); d != "" {
		k.Errorf("%s: %s", what, d)
	}
}

// describeRecords identifies records by ID, version, phase, worker and expiry.
func describeRecords(records ...taskstore.Record) string {
	var texts []string
	for _, r := range records {
		texts = append(texts, fmt.Sprintf("%q (version %d, %s, of %q, worker %q, expires %s)", r.ID, r.Version, r.Phase, r.Principal,
			r.Claim.Worker, r.ExpiresAt.Format(time.RFC3339Nano)))
	}
	return fmt.Sprint(len(records), " records ", strings.Join(texts, ", "))
}

// wantError compares the error of a call that must fail.
func (k *kit) wantError(what string, err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Errorf("%s: the error is %v, want %v", what, err, want)
	}
}

// diffRecords returns the differences between two records, or "". It compares times as instants and
// treats an empty slice like nil.
func diffRecords(got, want any) string {
	options := cmp.Options{cmpopts.EquateEmpty(), cmp.FilterValues( // go-cmp compares bytes one by one
		func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 },
		cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }))}
	if cmp.Equal(want, got, options) {
		return ""
	}
	d := cmp.Diff(want, got, options)
	const most, longest = 20, 200 // limits for huge differences
	var lines []string
	for line := range strings.Lines(d) {
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "+") {
			lines = append(lines, line[:min(len(line), longest)])
		}
	}
	return "(- want, + got)\n" + strings.Join(lines[:min(len(lines), most)], "")
}

// listIDs reads a principal's whole list and returns the IDs. It calls between after each page.
func (k *kit) listIDs(principal string, limit int, between func()) []string {
	k.Helper()
	var ids []string
	for after := (taskstore.Position{}); ; {
		page, err := k.s.List(k.ctx, principal, after, limit)
		if err != nil {
			k.Fatalf("list: %v", err)
		}
		if len(page) > limit {
			k.Fatalf("a page of %d at limit %d", len(page), limit)
		}
		for _, r := range page {
			if r.Principal != principal {
				k.Errorf("%q of %q is in the list of %q", r.ID, r.Principal, principal)
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
		after = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
		if between != nil {
			between()
		}
	}
}
