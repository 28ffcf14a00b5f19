package gosdk

import (
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// rawResult is a result whose bytes the SDK does not know the meaning of.
type rawResult struct {
	mcp.ResultBase
	body json.RawMessage
}

// MarshalJSON joins the _meta that the SDK has set into the body's.
func (r *rawResult) MarshalJSON() ([]byte, error) { return withMeta(r.body, r.Meta) }

// UnmarshalJSON keeps the bytes.
func (r *rawResult) UnmarshalJSON(data []byte) error {
	r.body = append(json.RawMessage(nil), data...)
	return nil
}

// rawParams are params of any shape.
type rawParams struct {
	mcp.ParamsBase
	body json.RawMessage
}

// MarshalJSON joins the _meta that the SDK has set into the body's.
func (p *rawParams) MarshalJSON() ([]byte, error) { return withMeta(p.body, p.Meta) }

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

// withMeta adds meta to an object's _meta; meta wins.
func withMeta(body json.RawMessage, meta mcp.Meta) ([]byte, error) {
	if len(meta) == 0 {
		return body, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	joined := map[string]any{}
	if object["_meta"] != nil {
		if err := json.Unmarshal(object["_meta"], &joined); err != nil {
			return nil, err
		}
	}
	maps.Copy(joined, meta)
	data, err := json.Marshal(joined)
	if err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	object["_meta"] = data
	return json.Marshal(object)
}
