package gosdk

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// rawResult is a result whose bytes the SDK does not know the meaning of.
type rawResult struct {
	mcp.ResultBase
	body json.RawMessage
}

// MarshalJSON joins the _meta that the SDK has set into the body's.
func (r *rawResult) MarshalJSON() ([]byte, error) { return protocol.WithMeta(r.body, r.Meta) }

// UnmarshalJSON keeps the bytes.
func (r *rawResult) UnmarshalJSON(data []byte) error {
	r.body = bytes.Clone(data)
	return nil
}

// rawParams are params of any shape.
type rawParams struct {
	mcp.ParamsBase
	body json.RawMessage
}

// MarshalJSON joins the _meta that the SDK has set into the body's.
func (p *rawParams) MarshalJSON() ([]byte, error) { return protocol.WithMeta(p.body, p.Meta) }

// newRawParams takes the body's _meta out, where the SDK looks for it.
func newRawParams(params any) (*rawParams, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var with struct {
		Meta map[string]any `json:"_meta"`
	}
	if err := json.Unmarshal(body, &with); err != nil {
		return nil, err
	}
	return &rawParams{ParamsBase: mcp.ParamsBase{Meta: with.Meta}, body: body}, nil
}

// patched is own with what has changed between before and after: own is a
// tool's result as the tool made it, before what the SDK's type keeps of it,
// after the same when it came back through the user's middleware. So what the
// type drops stays, and what the middleware did counts.
func patched(own, before, after json.RawMessage) (json.RawMessage, error) {
	var o, b, a map[string]json.RawMessage
	for _, decode := range []struct {
		data json.RawMessage
		into *map[string]json.RawMessage
	}{{own, &o}, {before, &b}, {after, &a}} {
		if err := json.Unmarshal(decode.data, decode.into); err != nil {
			return nil, err
		}
	}
	if o == nil {
		o = map[string]json.RawMessage{}
	}
	for name, value := range a {
		switch {
		case bytes.Equal(b[name], value):
		case name == "_meta" && o[name] != nil && b[name] != nil:
			meta, err := patched(o[name], b[name], value)
			if err != nil {
				return nil, err
			}
			o[name] = meta
		default:
			o[name] = value
		}
	}
	for name := range b {
		if a[name] == nil {
			delete(o, name)
		}
	}
	return json.Marshal(o)
}
