package taskserver

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// awayStore is a store that does not answer while it is away. It does not heed contexts.
type awayStore struct {
	taskstore.Store
	away  atomic.Bool
	hangs chan struct{} // nil lets it fail at once
}

func (s *awayStore) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	if s.away.Load() {
		if s.hangs != nil {
			<-s.hangs
		}
		return taskstore.Heartbeat{}, errors.New("away")
	}
	return s.Store.Beat(ctx, worker, lease, held)
}

func TestHealth(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		name := "the store fails"
		if hangs {
			name = "the store hangs"
		}
		bubble.Run(t, name, func(t *testing.T) {
			store := &awayStore{Store: taskstore.NewMemory()}
			if hangs {
				store.hangs = make(chan struct{})
			}
			s, err := New(Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			check := func(when string, ready bool) {
				t.Helper()
				synctest.Wait()
				if err := s.Ready(); (err == nil) != ready {
					t.Errorf("%s: ready: %v", when, err)
				}
				if err := s.Live(); err != nil {
					t.Errorf("%s: live: %v", when, err)
				}
			}
			check("at the start", true)
			store.away.Store(true)
			time.Sleep(time.Minute)
			check("while the store is away", false)
			store.away.Store(false)
			if hangs {
				close(store.hangs)
			}
			time.Sleep(time.Minute)
			check("afterwards", true)
			s.Backend().beating.Add(-int64(time.Hour))
			if s.Live() == nil {
				t.Error("live, although the renewal stands still")
			}
			if err := s.Close(); !hangs && err != nil {
				t.Error(err)
			}
			if s.Ready() == nil {
				t.Error("ready after the end")
			}
			_ = store.Close()
		})
	}
}
