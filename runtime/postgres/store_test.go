package postgres

import (
	"fmt"
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
	dsn := pgtest.Database(t) + settings
	var mu sync.Mutex
	schemas := 0 // each store has one, since a schema is made sooner than a database
	shifts := map[string]*atomic.Int64{}
	open := func(t testing.TB, schema string) mcptask.Store {
		mu.Lock()
		defer mu.Unlock()
		if schema == "" {
			schemas++
			schema = fmt.Sprint("store", schemas)
			shifts[schema] = new(atomic.Int64)
		}
		o := o
		o.Schema = schema
		s, err := Open(t.Context(), dsn, o)
		if err != nil {
			t.Fatal(err)
		}
		s.shift = shifts[schema]
		return s
	}
	again := func(t testing.TB, s mcptask.Store) mcptask.Store { return open(t, s.(*Store).schema.name) }
	t.Run("each", func(t *testing.T) { // its tests run at once, and end before the database is dropped
		storetest.Run(t, storetest.Stores{
			Open:   func(t testing.TB) mcptask.Store { return open(t, "") },
			Share:  again,
			Reopen: again,
			Advance: func(_ testing.TB, s mcptask.Store, d time.Duration) {
				s.(*Store).shift.Add(d.Microseconds())
			},
		})
	})
}
