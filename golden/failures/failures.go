// Package failures has tools with typed errors, of both receivers.
package failures

import (
	"context"
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

//go:generate go tool mcptaskgen

// Library keeps assets.
//
//mcptask:service
type Library interface {
	// Publish publishes an asset.
	Publish(ctx context.Context, task *mcptask.Task, in Asset) (Report, error)
}

// Archive keeps old assets.
//
//mcptask:service prefix=archive_
type Archive interface {
	// Restore takes an asset out of the archive.
	Restore(ctx context.Context, in Asset) error
}

// Asset names an asset.
type Asset struct {
	Name string `json:"name"`
}

// Report says what was done.
type Report struct {
	Done bool `json:"done"`
}

// NotFound says that there is no such asset. "Deleted" assets are *gone* too.
//
//mcptask:error code=not_found
type NotFound struct {
	// Asset is the name that was asked for.
	Asset string `json:"asset"`
	// Similar are names of assets that exist.
	Similar []string `json:"similar,omitempty" jsonschema:"maxItems=5"`
	cause   error
}

// NewNotFound makes a NotFound with a cause, which clients do not see.
func NewNotFound(asset string, cause error) *NotFound { return &NotFound{Asset: asset, cause: cause} }

// Error implements error.
func (e *NotFound) Error() string { return "there is no asset " + e.Asset }

// Unwrap returns the cause.
func (e *NotFound) Unwrap() error { return e.cause }

// DiskFull says that there is no room.
//
//mcptask:error code=disk_full
type DiskFull struct {
	Missing int64     `json:"missing"`
	Until   time.Time `json:"until,omitzero"`
}

// Error implements error.
func (e DiskFull) Error() string {
	return fmt.Sprintf("the disk is full: %d bytes are missing", e.Missing)
}

//mcptask:error code=busy
type busy struct{}

func (busy) Error() string { return "the library is busy" }

// Busy returns an error without fields.
func Busy() error { return busy{} }
