package postgres

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// TestStore runs the kit of all stores.
func TestStore(t *testing.T) {
	testStore(t, "", Options{MaxConns: 4})
}

// TestStoreBehindPooler runs the kit as behind a pooler: without LISTEN and without prepared
// statements.
func TestStoreBehindPooler(t *testing.T) {
	testStore(t, " default_query_exec_mode=exec", Options{MaxConns: 4, NoListen: true})
}

// testStore runs the kit of all stores.
func testStore(t *testing.T, settings string, o Options) {
	var mu sync.Mutex
	dsns, shifts := map[mcptask.Store]string{}, map[mcptask.Store]*atomic.Int64{}
	note := func(s *Store, dsn string, shift *atomic.Int64) mcptask.Store {
		mu.Lock()
		defer mu.Unlock()
		s.shift = shift
		dsns[s], shifts[s] = dsn, shift
		return s
	}
	open := func(t testing.TB, dsn string, shift *atomic.Int64) mcptask.Store {
		s, err := Open(t.Context(), dsn, o)
		if err != nil {
			t.Fatal(err)
		}
		return note(s, dsn, shift)
	}
	again := func(t testing.TB, s mcptask.Store) mcptask.Store {
		mu.Lock()
		dsn, shift := dsns[s], shifts[s]
		mu.Unlock()
		return open(t, dsn, shift)
	}
	storetest.Run(t, storetest.Stores{
		Open:   func(t testing.TB) mcptask.Store { return open(t, pgtest.Database(t)+settings, new(atomic.Int64)) },
		Share:  again,
		Reopen: again,
		Advance: func(_ testing.TB, s mcptask.Store, d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			shifts[s].Add(d.Microseconds())
		},
	})
}
