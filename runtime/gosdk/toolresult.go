package gosdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// decodeToolResult decodes a result into the SDK's type, for the user's middleware. Structured content stays bytes, so
// that numbers keep their digits.
func decodeToolResult(data json.RawMessage) (*mcp.CallToolResult, error) {
	object := wire.NewObject(data)
	result := readTextResult(object)
	if result == nil {
		result = new(mcp.CallToolResult)
		if err := json.Unmarshal(data, result); err != nil {
			return nil, fmt.Errorf("decode the result: %w", err)
		}
	}
	if content := object.Get("structuredContent"); content != nil && string(content) != "null" {
		result.StructuredContent = json.RawMessage(bytes.Clone(content))
	}
	return result, nil
}

// readTextResult decodes a result of texts, as almost all are. The SDK's decoder would allocate a buffer of 32 KiB. It
// returns nil for other results.
func readTextResult(object *wire.Object) *mcp.CallToolResult {
	var texts []map[string]json.RawMessage
	result := &mcp.CallToolResult{}
	for name, value := range object.All() {
		switch name {
		case "content":
			if json.Unmarshal(value, &texts) != nil || texts == nil {
				return nil
			}
		case "isError":
			if json.Unmarshal(value, &result.IsError) != nil {
				return nil
			}
		case "structuredContent":
		default:
			return nil
		}
	}
	if texts == nil {
		return nil
	}
	result.Content = make([]mcp.Content, 0, len(texts))
	for _, content := range texts {
		text, ok := wire.Text(content["text"])
		if kind, _ := wire.Text(content["type"]); kind != "text" || !ok || len(content) != 2 {
			return nil
		}
		result.Content = append(result.Content, &mcp.TextContent{Text: text})
	}
	return result
}

// patchResult returns own with the changes between before and after. own is a tool's result as the tool made it. before
// is the same result in the SDK's type, and after is the result that the user's middleware returned. So members that the
// type drops survive, and the changes of the middleware count.
func patchResult(own, before, after json.RawMessage) (json.RawMessage, error) {
	if bytes.Equal(before, after) {
		return own, nil
	}
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
			meta, err := patchResult(o[name], b[name], value)
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

// errNoResult answers a call whose middleware has returned no result.
var errNoResult = &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "the server's middleware has returned no result"}

// encodeResult returns the JSON of a result of middleware.
func encodeResult(result mcp.Result) (json.RawMessage, error) {
	if raw, ok := result.(*rawResult); ok && raw != nil && len(raw.Meta) == 0 {
		return raw.body, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // as the SDK
	err := encoder.Encode(result)
	data := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if err == nil && !wire.NewObject(data).IsObject() {
		err = errNoResult
	}
	return data, err
}

// completeResult adds to a result of 2026-07-28 the members that the SDK adds after the middleware: resultType and the
// server's name.
func completeResult(result, info json.RawMessage) (json.RawMessage, error) {
	object := wire.NewObject(result)
	var edits []wire.Edit
	if !object.Has("resultType") {
		edits = append(edits, wire.Set(json.RawMessage(`"complete"`), "resultType"))
	}
	if !object.Has("_meta", mcp.MetaKeyServerInfo) {
		edits = append(edits, wire.Set(info, "_meta", mcp.MetaKeyServerInfo))
	}
	named, err := object.Edited(edits...)
	if err != nil {
		return nil, toAnswerError(err)
	}
	return named, nil
}

// toAnswerError converts an error of middleware as the SDK does for the answer to a request.
func toAnswerError(err error) error {
	answer := &mcptask.Error{Message: err.Error()}
	if sdk := (*jsonrpc.Error)(nil); errors.As(err, &sdk) {
		answer.Code = int(sdk.Code)
		if err == error(sdk) { //nolint:errorlint // the SDK keeps the data of an error that is not wrapped
			answer.Message, answer.Data = sdk.Message, sdk.Data
		}
	}
	if !json.Valid(answer.Data) {
		answer.Data = nil
	}
	return answer
}
