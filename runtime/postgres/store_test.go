package postgres

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// TestMain makes random programs few, because a database is slow. -rapid.checks asks for more.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", "5"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestStore runs the kit of all stores.
func TestStore(t *testing.T) {
	t.Parallel()
	testStore(t, pgtest.Database(t), Options{MaxConns: 4})
}

// testStore runs the kit of all stores on a database.
func testStore(t *testing.T, dsn string, o Options) {
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
		s.lookOften = 10 * time.Millisecond // the kit writes and waits for the feed many times
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
