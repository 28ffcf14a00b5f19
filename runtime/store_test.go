package mcptask_test

import (
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
)

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, storetest.Stores{Open: func(testing.TB) mcptask.Store { return mcptask.NewMemoryStore() }})
}
