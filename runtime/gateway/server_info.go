package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// In 2026-07-28 the server should name itself in each result. The SDK does so in its own results. The gateway keeps the name
// that the first of its answers to an initialize or a server/discover has. If it needs the name before, it sends the SDK a
// server/discover of its own, with the client's capabilities, once, unless the user's middleware refuses it. If that does
// not answer in time, results do without the name. A gateway in front of several servers names the first that it hears of.

// discoverPatience is how long a result waits for the server's name. The SDK answers at once, but the user's middleware
// may not.
const discoverPatience = 5 * time.Second

// nameServer adds the server's name and version to the _meta of a result of 2026-07-28 that is encoded already. It returns
// the result unchanged if it has them, or if the SDK does not tell them. Those of tasks/* get them as they are encoded, by
// [protocol.WithServerInfo].
func (g *Gateway) nameServer(ctx context.Context, x exchange, result json.RawMessage) json.RawMessage {
	object := wire.NewObject(result)
	if object.Has("_meta", spec.MetaServerInfo) {
		return result
	}
	info := g.findServerInfo(ctx, x)
	if info == nil {
		return result
	}
	named, err := object.Edited(wire.Set(info, "_meta", spec.MetaServerInfo))
	if err != nil { // the handler's _meta is not an object
		return result
	}
	return named
}

// keepServerInfo keeps the name and version in a result of the SDK, if they are the first.
func (g *Gateway) keepServerInfo(info json.RawMessage) {
	if info != nil && g.info.Load() == nil {
		kept := bytes.Clone(info)
		g.info.CompareAndSwap(nil, (*json.RawMessage)(&kept))
	}
}

// findServerInfo returns the name and version of the SDK's server, or nil.
func (g *Gateway) findServerInfo(ctx context.Context, x exchange) json.RawMessage {
	if info := g.info.Load(); info != nil {
		return *info
	}
	meta := map[string]json.RawMessage{}
	for _, key := range []string{spec.MetaProtocolVersion, spec.MetaClientInfo, spec.MetaClientCapabilities} {
		if value := x.message().Params.Get("_meta", key); value != nil {
			meta[key] = value
		}
	}
	request, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": rand.Text(), "method": spec.Discover, "params": map[string]any{"_meta": meta},
	})
	if err != nil { // cannot happen: the members are JSON
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discoverPatience) // ctx ends when the server closes
	defer cancel()
	result := x.discover(ctx, request)
	if result == nil && ctx.Err() == nil {
		return nil
	}
	info := bytes.Clone(wire.NewObject(result).Get("_meta", spec.MetaServerInfo))
	g.info.Store((*json.RawMessage)(&info))
	return info
}

// discover implements exchange.
func (x *httpExchange) discover(ctx context.Context, request []byte) json.RawMessage {
	r := x.r.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(request)), int64(len(request))
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool { // those of the client's request
		return strings.HasPrefix(name, "Mcp-") || name == FlowHeader || name == "Last-Event-Id"
	})
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(methodHeader, spec.Discover)
	r.Header.Set(versionHeader, x.g.modern.Protocol())
	results := make(chan json.RawMessage, 1)
	guard.Go(x.g.server.Logger(), "the request for the server's name", func() { // it may last longer than ctx
		defer close(results)
		buffered := newBufferedResponse()
		x.g.config.Stateless.ServeHTTP(buffered, r)
		result, _ := buffered.result()
		results <- result
	})
	select {
	case result := <-results:
		return result
	case <-ctx.Done():
		return nil
	}
}

// discover implements exchange. The SDK's reply goes to the gateway in place of the client.
func (x *pipeExchange) discover(ctx context.Context, request []byte) (result json.RawMessage) {
	m, refusal := parseMessage(request)
	if refusal != nil {
		return nil
	}
	replies := make(chan []byte, 1)
	if refusal := x.p.expectReply(m, pipeRequest{onReply: func(line []byte) { replies <- line }}); refusal != nil {
		return nil
	}
	x.p.sendToSDK(request)
	select {
	case line := <-replies:
		var reply struct {
			Result json.RawMessage `json:"result"`
		}
		_ = json.Unmarshal(line, &reply) // a reply that is not read has no result
		return reply.Result
	case <-ctx.Done():
	case <-x.p.ctx.Done():
	}
	return nil
}
