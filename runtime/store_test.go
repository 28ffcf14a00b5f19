package mcptask_test

import (
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// memoryStore is a memory store with a clock that goes on as the test says.
type memoryStore struct {
	mcptask.Store
	mcptask.Inspector
	ahead *atomic.Int64
}

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, storetest.Stores{
		Open: func(testing.TB) mcptask.Store {
			ahead := new(atomic.Int64)
			s := mcptask.NewMemoryStoreAt(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			return memoryStore{s, s.(mcptask.Inspector), ahead}
		},
		Advance: func(_ testing.TB, s mcptask.Store, d time.Duration) { s.(memoryStore).ahead.Add(int64(d)) },
	})
}
