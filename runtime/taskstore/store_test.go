package taskstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// steppedMemory is a memory store with a clock that goes on as the test says.
type steppedMemory struct {
	*taskstore.Memory
	ahead *atomic.Int64
}

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, storetest.Stores{
		Open: func(testing.TB) taskstore.Store {
			ahead := new(atomic.Int64)
			s := taskstore.NewMemoryAt(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
			return steppedMemory{s, ahead}
		},
		Advance: func(_ testing.TB, s taskstore.Store, d time.Duration) { s.(steppedMemory).ahead.Add(int64(d)) },
	})
}
