package storetest_test

import (
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// The test of a store of one process. One on a database has Share and Reopen as
// well.
func ExampleRun() {
	_ = func(t *testing.T) { // TestStore of the store's package
		storetest.Run(t, storetest.Stores{
			Open: func(testing.TB) mcptask.Store { return mcptask.NewMemoryStore() },
		})
	}
}
