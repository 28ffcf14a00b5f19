package chaos

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
)

// stores open the kinds of stores.
var stores = map[string]func(ctx context.Context, place string) (mcptask.Store, error){
	"postgres": func(ctx context.Context, place string) (mcptask.Store, error) {
		return postgres.Open(ctx, place, postgres.Options{})
	},
}
