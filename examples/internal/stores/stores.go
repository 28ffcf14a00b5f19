// Package stores opens the store that the flag -store of an example names.
package stores

import (
	"context"
	"fmt"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// Default is the value of the flag if it is not given.
	Default = "memory"
	// Usage is the help text of the flag.
	Usage = "keep the tasks in this `store`: memory, sqlite:FILE or postgres:DSN"
)

// Store is an open store.
type Store struct {
	// Store goes into Options.Store. It is nil for memory: then the server makes its own.
	taskstore.Store
}

// Close closes the store. It does nothing for memory, which the server closes.
func (s Store) Close() error {
	if s.Store == nil {
		return nil
	}
	return s.Store.Close()
}

// Open opens the store that the value of the flag names.
func Open(ctx context.Context, value string) (Store, error) {
	kind, rest, _ := strings.Cut(value, ":")
	if strings.HasPrefix(rest, "//") { // the value is the database's URL
		rest = value
	}
	switch {
	case value == Default || value == "":
		return Store{}, nil
	case kind == "sqlite" && rest != "":
		store, err := sqlite.Open(rest, sqlite.Options{})
		if err != nil {
			return Store{}, fmt.Errorf("-store: %w", err)
		}
		return Store{store}, nil
	case (kind == "postgres" || kind == "postgresql") && rest != "":
		store, err := postgres.Open(ctx, rest, postgres.Options{})
		if err != nil {
			return Store{}, fmt.Errorf("-store: %w; start that PostgreSQL or name another", err)
		}
		return Store{store}, nil
	}
	return Store{}, fmt.Errorf("-store: %q is not a store: write memory, sqlite:FILE such as sqlite:tasks.db, or "+
		"postgres:DSN such as postgres://user@127.0.0.1:5432/tasks", value)
}
