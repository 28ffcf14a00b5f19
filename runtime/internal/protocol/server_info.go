package protocol

import (
	"context"
	"encoding/json"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

type serverInfoKey struct{}

// WithServerInfo returns a context whose requests about tasks put the server's name and version into the _meta of their
// results in 2026-07-28. find is called for a result, and not for an error. It returns nil if the server does not say them.
func WithServerInfo(ctx context.Context, find func(context.Context) json.RawMessage) context.Context {
	return context.WithValue(ctx, serverInfoKey{}, find)
}

// addServerInfo adds the server's name and version to the _meta of a result, which may be nil.
func addServerInfo(ctx context.Context, meta object) object {
	find, ok := ctx.Value(serverInfoKey{}).(func(context.Context) json.RawMessage)
	if !ok {
		return meta
	}
	info := find(ctx)
	if info == nil {
		return meta
	}
	if meta == nil {
		meta = object{}
	}
	meta[spec.MetaServerInfo] = info
	return meta
}
