package mcptask

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// storeTests are the promises of the Store interface. Each gets a store of its
// own and may close it.
var storeTests = []struct {
	name string
	test func(t *testing.T, s Store)
}{
	{"create, get and delete", testStoreCreate},
	{"idempotency keys", testStoreIdempotency},
	{"a record handed out is the caller's", testStoreAliasing},
	{"update compares the version", testStoreUpdate},
	{"one of fifty updates wins", testStoreContention},
	{"a list goes page by page", testStoreList},
	{"a list under change", testStoreListUnderChange},
	{"expiry in batches", testStoreExpire},
	{"wait returns what is new", testStoreWait},
	{"no wake-up is lost", testStoreWakeUps},
	{"wait ends when the record goes", testStoreWaitGone},
	{"wait ends when the store closes", testStoreWaitClosed},
	{"leases are fenced", testStoreLease},
	{"leases in batches, each to one worker", testStoreLeaseRace},
	{"renew and release", testStoreRenew},
	{"an update keeps a renewed lease", testStoreRenewUnderUpdate},
}

func TestMemoryStore(t *testing.T) {
	for _, c := range storeTests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := NewMemoryStore()
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			c.test(t, s)
		})
	}
}

// storeRecord is a full record; stores keep times to the microsecond.
func storeRecord(id, principal string, created time.Time) Record {
	return Record{
		ID: id, Principal: principal, Tool: "tool", Arguments: []byte(`{"a":1}`), Revision: Revision20251125,
		CanAsk: []string{methodElicit}, Phase: PhaseQueued, CreatedAt: created, UpdatedAt: created,
		ExpiresAt: created.Add(time.Hour), Poll: time.Second, Worker: "w1", LeaseUntil: created.Add(time.Minute),
	}
}

func mustCreate(t testing.TB, s Store, r Record) Record {
	t.Helper()
	stored, err := s.Create(context.Background(), r)
	if err != nil {
		t.Fatalf("create %s: %v", r.ID, err)
	}
	return stored
}

func testStoreCreate(t *testing.T, s Store) {
	ctx := t.Context()
	want := storeRecord("t", "p", epoch)
	stored := mustCreate(t, s, want)
	want.Version = 1
	if !reflect.DeepEqual(stored, want) {
		t.Errorf("created %+v, want %+v", stored, want)
	}
	if got, err := s.Get(ctx, "t"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	other := storeRecord("t", "somebody else", epoch)
	if _, err := s.Create(ctx, other); !errors.Is(err, ErrExists) {
		t.Errorf("created twice: %v", err)
	}
	if got, err := s.Get(ctx, "t"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after a refused create: %+v, %v", got, err)
	}
	if page, err := s.List(ctx, "somebody else", Position{}, 10); err != nil || len(page) != 0 {
		t.Errorf("a refused create is listed: %v, %v", page, err)
	}
	if err := s.Delete(ctx, "t"); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, "t"); !errors.Is(err, ErrNoRecord) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := s.Get(ctx, "t"); !errors.Is(err, ErrNoRecord) {
		t.Errorf("get after delete: %v", err)
	}
	if _, err := s.Update(ctx, stored); !errors.Is(err, ErrNoRecord) {
		t.Errorf("update after delete: %v", err)
	}
	mustCreate(t, s, storeRecord("t", "p", epoch)) // the ID is free again
}

func testStoreIdempotency(t *testing.T, s Store) {
	ctx := t.Context()
	with := func(id, principal, tool, key string) Record {
		r := storeRecord(id, principal, epoch)
		r.Tool, r.IdempotencyKey = tool, key
		return r
	}
	first := mustCreate(t, s, with("1", "p", "tool", "k"))
	if got, err := s.Create(ctx, with("2", "p", "tool", "k")); !errors.Is(err, ErrExists) || !reflect.DeepEqual(got, first) {
		t.Errorf("the same key: %+v, %v", got, err)
	}
	if _, err := s.Get(ctx, "2"); !errors.Is(err, ErrNoRecord) {
		t.Errorf("the second record was stored: %v", err)
	}
	mustCreate(t, s, with("3", "q", "tool", "k"))
	mustCreate(t, s, with("4", "p", "other", "k"))
	mustCreate(t, s, with("5", "p", "tool", "K"))
	mustCreate(t, s, with("6", "p", "tool", ""))
	mustCreate(t, s, with("7", "p", "tool", ""))
	if err := s.Delete(ctx, "1"); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, with("8", "p", "tool", "k")) // the key went with its record

	var made atomic.Int32
	var ids sync.Map
	var creating sync.WaitGroup
	for i := range 50 {
		creating.Go(func() {
			r, err := s.Create(ctx, with(fmt.Sprint("race", i), "p", "tool", "race"))
			ids.Store(r.ID, true)
			if err == nil {
				made.Add(1)
			} else if !errors.Is(err, ErrExists) {
				t.Error(err)
			}
		})
	}
	creating.Wait()
	n := 0
	ids.Range(func(any, any) bool { n++; return true })
	if made.Load() != 1 || n != 1 {
		t.Errorf("%d records made, %d IDs returned for one key", made.Load(), n)
	}
}

func testStoreAliasing(t *testing.T, s Store) {
	ctx := t.Context()
	full := func() Record {
		r := storeRecord("t", "p", epoch)
		r.Phase, r.Worker, r.LeaseUntil = PhaseDone, "", time.Time{}
		r.Inputs = []Input{{Key: "a", State: InputAnswered}}
		r.Outcome, r.TerminalAt = &Outcome{Kind: OutcomeError, Error: &Error{Code: 1, Message: "m"}}, epoch
		return r
	}
	scribble := func(r Record) {
		r.Inputs[0].State = InputOutstanding
		r.CanAsk[0] = "scribble"
		r.Outcome.Kind = OutcomeResult
		r.Outcome.Error.Message = "scribble"
	}
	given := full()
	created := mustCreate(t, s, given)
	scribble(given)
	scribble(created)
	got, err := s.Get(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	scribble(got)
	updating := full()
	updating.Version = 1
	updated, err := s.Update(ctx, updating)
	if err != nil {
		t.Fatal(err)
	}
	scribble(updating)
	scribble(updated)
	waited, err := s.Wait(ctx, "t", 1)
	if err != nil {
		t.Fatal(err)
	}
	scribble(waited)
	page, err := s.List(ctx, "p", Position{}, 1)
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	scribble(page[0])
	want := full()
	want.Version = 2
	if got, err := s.Get(ctx, "t"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the stored record was changed from outside: %+v, %v", got, err)
	}
}

func testStoreUpdate(t *testing.T, s Store) {
	ctx := t.Context()
	first := mustCreate(t, s, storeRecord("t", "p", epoch))
	change := first
	change.Phase, change.StatusMessage = PhaseRunning, "one"
	second, err := s.Update(ctx, change)
	if err != nil || second.Version != 2 || second.StatusMessage != "one" {
		t.Fatalf("%+v, %v", second, err)
	}
	change.StatusMessage = "late"
	if _, err := s.Update(ctx, change); !errors.Is(err, ErrConflict) {
		t.Errorf("an old version was taken: %v", err)
	}
	change.Version = 3
	if _, err := s.Update(ctx, change); !errors.Is(err, ErrConflict) {
		t.Errorf("a version from the future was taken: %v", err)
	}
	if got, err := s.Get(ctx, "t"); err != nil || !reflect.DeepEqual(got, second) {
		t.Errorf("after refused updates: %+v, %v", got, err)
	}
}

func testStoreContention(t *testing.T, s Store) {
	ctx := t.Context()
	first := mustCreate(t, s, storeRecord("t", "p", epoch))
	for round := range 20 {
		current, err := s.Get(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		var won, lost atomic.Int32
		var updating sync.WaitGroup
		for i := range 50 {
			updating.Go(func() {
				mine := current
				mine.StatusMessage = fmt.Sprint(i)
				switch got, err := s.Update(ctx, mine); {
				case err == nil:
					won.Add(1)
					if got.StatusMessage != mine.StatusMessage || got.Version != first.Version+int64(round)+1 {
						t.Errorf("stored %+v", got)
					}
				case errors.Is(err, ErrConflict):
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		updating.Wait()
		if won.Load() != 1 || lost.Load() != 49 {
			t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
		}
	}
}

// pages walks a principal's list and returns the IDs.
func pages(t testing.TB, s Store, principal string, limit int, between func()) []string {
	t.Helper()
	var ids []string
	for after := (Position{}); ; {
		page, err := s.List(context.Background(), principal, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) > limit {
			t.Fatalf("a page of %d at limit %d", len(page), limit)
		}
		for _, r := range page {
			ids = append(ids, r.ID)
		}
		if len(page) < limit {
			return ids
		}
		last := page[len(page)-1]
		after = Position{last.CreatedAt, last.ID}
		if between != nil {
			between()
		}
	}
}

func testStoreList(t *testing.T, s Store) {
	var want []string
	for i := range 23 {
		// Three at a time share a creation time: the ID decides then.
		r := storeRecord(fmt.Sprintf("t%02d", i), "p", epoch.Add(time.Duration(i/3)*time.Microsecond))
		want = append(want, r.ID)
		mustCreate(t, s, storeRecord("q"+r.ID, "q", r.CreatedAt))
	}
	for _, i := range []int{22, 0, 11, 5, 6, 7, 1, 2, 3, 4, 8, 9, 10, 12, 13, 14, 15, 21, 20, 19, 18, 17, 16} { // in any order
		mustCreate(t, s, storeRecord(want[i], "p", epoch.Add(time.Duration(i/3)*time.Microsecond)))
	}
	for _, limit := range []int{1, 2, 5, 22, 23, 24, 100} {
		if got := pages(t, s, "p", limit, nil); !slices.Equal(got, want) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	if got := pages(t, s, "nobody", 5, nil); len(got) != 0 {
		t.Errorf("nobody's list: %v", got)
	}
	// A place stays one when its record is gone.
	if err := s.Delete(t.Context(), want[4]); err != nil {
		t.Fatal(err)
	}
	page, err := s.List(t.Context(), "p", Position{epoch.Add(time.Microsecond), want[4]}, 1)
	if err != nil || len(page) != 1 || page[0].ID != want[5] {
		t.Errorf("after a deleted place: %v, %v", page, err)
	}
}

func testStoreListUnderChange(t *testing.T, s Store) {
	ctx := t.Context()
	var stay []string
	for i := range 200 {
		r := storeRecord(fmt.Sprintf("t%03d", i), "p", epoch.Add(time.Duration(i)*time.Millisecond))
		mustCreate(t, s, r)
		if i%2 == 0 {
			stay = append(stay, r.ID)
		}
	}
	n := 0
	seen := pages(t, s, "p", 7, func() {
		if gone := 2*n + 1; gone < 200 { // from the start on, at first behind the reader
			if err := s.Delete(ctx, fmt.Sprintf("t%03d", gone)); err != nil {
				t.Error(err)
			}
		}
		mustCreate(t, s, storeRecord(fmt.Sprint("early", n), "p", epoch.Add(-time.Duration(n+1)*time.Second)))
		mustCreate(t, s, storeRecord(fmt.Sprint("between", n), "p", epoch.Add(time.Duration(n)*time.Millisecond+time.Microsecond)))
		n++
	})
	count := map[string]int{}
	for _, id := range seen {
		count[id]++
		if count[id] > 1 {
			t.Errorf("%s was listed twice", id)
		}
		if strings.HasPrefix(id, "early") {
			t.Errorf("%s stands before the place that was read", id)
		}
	}
	for _, id := range stay {
		if count[id] != 1 {
			t.Errorf("%s was left out", id)
		}
	}
}

func testStoreExpire(t *testing.T, s Store) {
	ctx := t.Context()
	for i := range 25 {
		r := storeRecord(fmt.Sprintf("t%02d", i), "p", epoch)
		r.ExpiresAt = epoch.Add(time.Duration((i*7)%25) * time.Minute)
		r.IdempotencyKey = r.ID
		mustCreate(t, s, r)
	}
	if gone, err := s.Expire(ctx, epoch.Add(-time.Second), 10); err != nil || len(gone) != 0 {
		t.Errorf("before the time: %v, %v", gone, err)
	}
	now := epoch.Add(12 * time.Minute) // 13 records, the one at now included
	total := map[string]bool{}
	for _, want := range []int{5, 5, 3, 0} {
		gone, err := s.Expire(ctx, now, 5)
		if err != nil || len(gone) != want {
			t.Fatalf("a batch of %d, want %d: %v", len(gone), want, err)
		}
		for _, r := range gone {
			if r.ExpiresAt.After(now) || r.Principal != "p" {
				t.Errorf("expired too soon: %+v", r)
			}
			total[r.ID] = true
			if _, err := s.Get(ctx, r.ID); !errors.Is(err, ErrNoRecord) {
				t.Errorf("%s is still there: %v", r.ID, err)
			}
		}
	}
	if left := pages(t, s, "p", 50, nil); len(total) != 13 || len(left) != 12 {
		t.Errorf("%d gone, %d left", len(total), len(left))
	}
	if leased, err := s.Lease(ctx, "w2", epoch.Add(time.Hour), epoch.Add(2*time.Hour), 50); err != nil || len(leased) != 12 {
		t.Errorf("%d leased, %v", len(leased), err)
	}
	for id := range total { // the idempotency key is free again
		r := storeRecord(id, "p", epoch)
		r.IdempotencyKey = id
		mustCreate(t, s, r)
	}
	// An expiry that moves is followed.
	r, err := s.Get(ctx, pages(t, s, "p", 50, nil)[0])
	if err != nil {
		t.Fatal(err)
	}
	r.ExpiresAt = epoch.Add(-time.Hour)
	if _, err := s.Update(ctx, r); err != nil {
		t.Fatal(err)
	}
	if gone, err := s.Expire(ctx, epoch.Add(-time.Minute), 5); err != nil || len(gone) != 1 || gone[0].ID != r.ID {
		t.Errorf("after the expiry was moved: %v, %v", gone, err)
	}
}

// BenchmarkMemoryStoreList reads a page in the middle of lists of two sizes:
// the cost must not depend on the size.
func BenchmarkMemoryStoreList(b *testing.B) {
	for _, size := range []int{200, 20_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := NewMemoryStore()
			for i := range size {
				mustCreate(b, s, storeRecord(fmt.Sprintf("t%06d", i), "p", epoch.Add(time.Duration(i)*time.Millisecond)))
			}
			after := Position{epoch.Add(time.Duration(size/2) * time.Millisecond), ""}
			b.ReportAllocs()
			for b.Loop() {
				if page, err := s.List(b.Context(), "p", after, PageSize); err != nil || len(page) != PageSize {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}

// BenchmarkMemoryStoreExpire lets the tasks of one principal expire.
func BenchmarkMemoryStoreExpire(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s := NewMemoryStore()
		for i := range 20_000 {
			mustCreate(b, s, storeRecord(fmt.Sprintf("t%06d", i), "p", epoch.Add(time.Duration(i)*time.Millisecond)))
		}
		b.StartTimer()
		for {
			gone, err := s.Expire(b.Context(), epoch.Add(24*time.Hour), sweepBatch)
			if err != nil {
				b.Fatal(err)
			}
			if len(gone) == 0 {
				break
			}
		}
	}
}
