//go:build !skewed

package chaos

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A file has no replicas on other machines. So the binary with a skewed clock leaves it out, because it takes long to
// build.
func init() { //nolint:gochecknoinits // the table is complete without it
	stores["sqlite"] = func(_ context.Context, place string) (taskstore.Store, error) {
		return sqlite.Open(place, sqlite.Options{})
	}
}
