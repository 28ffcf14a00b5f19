package storetest_test

import (
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

// This tests a store for one process. The test of a store on a database sets Share and Reopen too.
func ExampleRun() {
	_ = func(t *testing.T) { // TestStore of the store's package
		storetest.Run(t, storetest.Stores{
			Open: func(testing.TB) mcptask.Store { return mcptask.NewMemoryStore() },
		})
	}
}
