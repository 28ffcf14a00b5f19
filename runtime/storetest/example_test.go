package storetest_test

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// This tests a store for one process. The test of a store on a database sets Share and Reopen too.
func ExampleRun() {
	_ = func(t *testing.T) { // TestStore of the store's package
		storetest.Run(t, storetest.Stores{
			Open: func(testing.TB) taskstore.Store { return taskstore.NewMemory() },
		})
	}
}
