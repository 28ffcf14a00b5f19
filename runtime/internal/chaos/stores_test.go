package chaos

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
)

// stores open the kinds of stores.
var stores = map[string]func(ctx context.Context, place string) (mcptask.Store, error){
	"memory": func(context.Context, string) (mcptask.Store, error) { return mcptask.NewMemoryStore(), nil },
	"sqlite": func(_ context.Context, place string) (mcptask.Store, error) { return sqlite.Open(place, sqlite.Options{}) },
}
