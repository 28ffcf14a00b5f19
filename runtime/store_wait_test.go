package mcptask

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func testStoreWait(t *testing.T, s Store) {
	first := mustCreate(t, s, storeRecord("t", "p", epoch))
	if got, err := s.Wait(t.Context(), "t", 0); err != nil || got.Version != 1 {
		t.Errorf("a version that is there: %+v, %v", got, err)
	}
	if _, err := s.Wait(t.Context(), "unknown", 0); !errors.Is(err, ErrNoRecord) {
		t.Errorf("no record: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Wait(ended, "t", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was called off: %v", err)
	}
	var waiting sync.WaitGroup
	for range 20 { // all of them wake
		waiting.Go(func() {
			got, err := s.Wait(t.Context(), "t", 2)
			if err != nil || got.Version != 3 {
				t.Errorf("waited for %+v, %v", got, err)
			}
		})
	}
	second, err := s.Update(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	waiting.Wait()
}

// testStoreWakeUps lets waiters follow a writer as fast as it goes. A wake-up
// that is lost makes one of them hang.
func testStoreWakeUps(t *testing.T, s Store) {
	const versions = 1000
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := mustCreate(t, s, storeRecord("t", "p", epoch))
	var following sync.WaitGroup
	for range 8 {
		following.Go(func() {
			for version := int64(0); version < versions; {
				got, err := s.Wait(ctx, "t", version)
				if err != nil {
					t.Errorf("at version %d: %v", version, err)
					return
				}
				if got.Version <= version {
					t.Errorf("version %d after %d", got.Version, version)
					return
				}
				version = got.Version
			}
		})
	}
	following.Go(func() { // ping-pong: a waiter that writes as soon as it wakes
		for r.Version < versions {
			var err error
			if r, err = s.Update(ctx, r); err != nil {
				t.Error(err)
				return
			}
			if r, err = s.Wait(ctx, "t", r.Version-1); err != nil {
				t.Error(err)
				return
			}
		}
	})
	following.Wait()
}

func testStoreWaitGone(t *testing.T, s Store) {
	mustCreate(t, s, storeRecord("deleted", "p", epoch))
	mustCreate(t, s, storeRecord("expired", "p", epoch))
	var waiting sync.WaitGroup
	for _, id := range []string{"deleted", "expired"} {
		for range 10 {
			waiting.Go(func() {
				if _, err := s.Wait(t.Context(), id, 1); !errors.Is(err, ErrNoRecord) {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
	}
	time.Sleep(5 * time.Millisecond) // so that most of them wait already
	if err := s.Delete(t.Context(), "deleted"); err != nil {
		t.Error(err)
	}
	if gone, err := s.Expire(t.Context(), epoch.Add(2*time.Hour), 5); err != nil || len(gone) != 1 {
		t.Error(gone, err)
	}
	waiting.Wait()
}

func testStoreWaitClosed(t *testing.T, s Store) {
	mustCreate(t, s, storeRecord("t", "p", epoch))
	var waiting sync.WaitGroup
	for range 10 {
		waiting.Go(func() {
			if _, err := s.Wait(t.Context(), "t", 1); !errors.Is(err, ErrServerClosed) {
				t.Errorf("the store closed: %v", err)
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waiting.Wait()
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}
