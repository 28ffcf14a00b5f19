package gosdk

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// rawResult is a result that the SDK sends without decoding it.
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
