package chaos

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// stores open the kinds of stores.
var stores = map[string]func(ctx context.Context, place string) (taskstore.Store, error){
	"postgres": func(ctx context.Context, place string) (taskstore.Store, error) {
		return postgres.Open(ctx, place, postgres.Options{})
	},
}
