package gosdk

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// rawResult is a result that the SDK carries without decoding it.
type rawResult struct {
	mcp.ResultBase
	body   json.RawMessage
	server *sdkServer // the server that made the result; nil in a client
}

// MarshalJSON adds the _meta that the SDK has set to the body's.
func (r *rawResult) MarshalJSON() ([]byte, error) { return protocol.WithMeta(r.body, r.Meta) }

// SetMeta implements mcp.Result. The SDK calls it with the server's name in revisions without sessions.
func (r *rawResult) SetMeta(meta map[string]any) {
	r.ResultBase.SetMeta(meta)
	if info, ok := meta[mcp.MetaKeyServerInfo].(*mcp.Implementation); ok && r.server != nil {
		r.server.setInfo(info)
	}
}

// UnmarshalJSON keeps a copy of the bytes.
func (r *rawResult) UnmarshalJSON(data []byte) error {
	r.body = bytes.Clone(data)
	return nil
}

// rawParams are params of any shape.
type rawParams struct {
	mcp.ParamsBase
	body json.RawMessage
}

// MarshalJSON adds the _meta that the SDK has set to the body's.
func (p *rawParams) MarshalJSON() ([]byte, error) { return protocol.WithMeta(p.body, p.Meta) }

// newRawParams encodes params. It copies their _meta to where the SDK looks for it.
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
