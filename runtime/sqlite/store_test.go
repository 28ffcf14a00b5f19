package sqlite

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// clocked is a Store whose clock a test moves, together with that of other handles of its file.
type clocked struct {
	*Store
	ahead *atomic.Int64
}

func openClocked(t testing.TB, path string, ahead *atomic.Int64) mcptask.Store {
	t.Helper()
	s, err := Open(path, Options{Synchronous: Normal}) // not that of TestKill, but much faster
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	return clocked{s, ahead}
}

// TestStore checks that the store keeps every promise.
func TestStore(t *testing.T) {
	again := func(t testing.TB, s mcptask.Store) mcptask.Store {
		former := s.(clocked)
		return openClocked(t, former.path, former.ahead)
	}
	storetest.Run(t, storetest.Stores{
		Open: func(t testing.TB) mcptask.Store {
			return openClocked(t, filepath.Join(t.TempDir(), "tasks #1 100%?.db"), new(atomic.Int64))
		},
		Share:   again,
		Reopen:  again,
		Advance: func(_ testing.TB, s mcptask.Store, d time.Duration) { s.(clocked).ahead.Add(int64(d)) },
	})
}
