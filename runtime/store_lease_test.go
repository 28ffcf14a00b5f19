package mcptask

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"
)

func testStoreLease(t *testing.T, s Store) {
	ctx := t.Context()
	late := epoch.Add(2 * time.Minute) // the leases of w1 end after one
	mine := mustCreate(t, s, storeRecord("t", "p", epoch))
	done := storeRecord("done", "p", epoch)
	done.Phase, done.Outcome, done.TerminalAt, done.Worker, done.LeaseUntil = PhaseDone, &Outcome{Kind: OutcomeCancelled}, epoch, "", time.Time{}
	mustCreate(t, s, done)
	if taken, err := s.Lease(ctx, "w2", epoch.Add(time.Minute), late, 10); err != nil || len(taken) != 0 {
		t.Errorf("a lease was taken at its last moment: %v, %v", taken, err)
	}
	if taken, err := s.Lease(ctx, "w1", late, late, 10); err != nil || len(taken) != 0 {
		t.Errorf("a worker took its own: %v, %v", taken, err)
	}
	taken, err := s.Lease(ctx, "w2", late, late.Add(time.Minute), 10)
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	want := mine
	want.Version, want.Worker, want.LeaseUntil = 2, "w2", late.Add(time.Minute)
	if !reflect.DeepEqual(taken[0], want) {
		t.Errorf("leased %+v, want %+v", taken[0], want)
	}
	mine.StatusMessage = "from the dead"
	if _, err := s.Update(ctx, mine); !errors.Is(err, ErrConflict) {
		t.Errorf("the former worker was not fenced off: %v", err)
	}
	if err := s.Renew(ctx, "w1", late.Add(time.Hour)); err != nil { // holds nothing
		t.Error(err)
	}
	if got, err := s.Get(ctx, "t"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the lease moved: %+v, %v", got, err)
	}
	if taken, err := s.Lease(ctx, "w3", late, late.Add(time.Minute), 10); err != nil || len(taken) != 0 {
		t.Errorf("taken twice: %v, %v", taken, err)
	}
}

func testStoreLeaseRace(t *testing.T, s Store) {
	for i := range 60 {
		mustCreate(t, s, storeRecord(fmt.Sprintf("t%02d", i), "p", epoch.Add(time.Duration(i)*time.Millisecond)))
	}
	late := epoch.Add(time.Hour)
	var mu sync.Mutex
	holder := map[string]string{}
	var leasing sync.WaitGroup
	for w := range 6 {
		worker := fmt.Sprint("new", w)
		leasing.Go(func() {
			for {
				taken, err := s.Lease(t.Context(), worker, late, late.Add(time.Minute), 4)
				if err != nil || len(taken) > 4 {
					t.Errorf("%d taken, %v", len(taken), err)
					return
				}
				if len(taken) == 0 {
					return
				}
				mu.Lock()
				for _, r := range taken {
					if holder[r.ID] != "" {
						t.Errorf("%s was taken by %s and by %s", r.ID, holder[r.ID], worker)
					}
					holder[r.ID] = worker
				}
				mu.Unlock()
			}
		})
	}
	leasing.Wait()
	if len(holder) != 60 {
		t.Errorf("%d of 60 were taken", len(holder))
	}
}

func testStoreRenew(t *testing.T, s Store) {
	ctx := t.Context()
	mustCreate(t, s, storeRecord("a", "p", epoch))
	mustCreate(t, s, storeRecord("b", "q", epoch))
	other := storeRecord("c", "p", epoch)
	other.Worker = "w9"
	mustCreate(t, s, other)
	late := epoch.Add(time.Hour)
	if err := s.Renew(ctx, "w1", late.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Lease(ctx, "w2", late, late.Add(time.Hour), 10)
	if err != nil || len(taken) != 1 || taken[0].ID != "c" {
		t.Errorf("renewed leases were taken: %v, %v", taken, err)
	}
	if err := s.Release(ctx, "w1"); err != nil {
		t.Fatal(err)
	}
	taken, err = s.Lease(ctx, "w3", epoch, late.Add(time.Hour), 10)
	if err != nil || len(taken) != 2 {
		t.Errorf("released leases were not to be had: %v, %v", taken, err)
	}
}

func testStoreRenewUnderUpdate(t *testing.T, s Store) {
	ctx := t.Context()
	r := mustCreate(t, s, storeRecord("t", "p", epoch))
	if err := s.Renew(ctx, "w1", epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	r.StatusMessage = "read before the renewal"
	r, err := s.Update(ctx, r)
	if err != nil {
		t.Fatalf("a renewal is no new version: %v", err)
	}
	if taken, err := s.Lease(ctx, "w2", epoch.Add(30*time.Minute), epoch.Add(time.Hour), 10); err != nil || len(taken) != 0 {
		t.Errorf("the renewal was undone: %v, %v", taken, err)
	}
	r.Worker, r.LeaseUntil = "w2", epoch.Add(2*time.Hour)
	if r, err = s.Update(ctx, r); err != nil || !r.LeaseUntil.Equal(epoch.Add(2*time.Hour)) {
		t.Errorf("a new worker brings its own lease: %+v, %v", r, err)
	}
}
