package structure_test

import (
	"slices"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/mcptaskgen/mcptaskgen/golden/structure"
)

// unguarded lists the goroutines that need no guard, by file and function, with the reasons.
var unguarded = map[string]string{
	"storetest/calls.go runConcurrently": "a test kit: a panic of a store under test should end the test",
}

// testKits lists packages that only tests import. A panic there should end the test.
var testKits = []string{"runtime/internal/durable/durabletest", "runtime/internal/memnet", "runtime/internal/wiretest"}

// TestGoroutinesRecover checks that the function of every goroutine begins with a recover, by
// package guard or its own. Bad input may find a panic, which would end the process with the tasks
// of all callers. TestStructure in examples/temporal does so for
// the module runtime/temporal.
func TestGoroutinesRecover(t *testing.T) {
	var loaded []*packages.Package
	for path, p := range loadPackages(t) {
		if covers("runtime/...", path) && !slices.Contains(testKits, path) {
			loaded = append(loaded, p)
		}
	}
	if len(loaded) < 10 {
		t.Fatalf("%d packages", len(loaded))
	}
	if found := structure.CheckGoroutines(t, loaded, unguarded); found < 20 {
		t.Errorf("only %d goroutines were found", found)
	}
}
