package wire

import (
	"encoding/json"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// reply is a JSON-RPC response.
type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *mcptask.Error  `json:"error,omitempty"`
}

// EncodeReply returns the bytes of a response. An error without an ID answers a message whose ID
// could not be read. The schemas of both revisions do not allow null there, unlike JSON-RPC, but
// allow the member to be absent.
func EncodeReply(id, result json.RawMessage, err *mcptask.Error) []byte {
	data, encodeErr := json.Marshal(reply{JSONRPC: "2.0", ID: id, Result: result, Error: err})
	if encodeErr != nil { // a result or data that is no JSON
		data, _ = json.Marshal(reply{JSONRPC: "2.0", ID: id, Error: mcptask.Errorf(mcptask.CodeInternalError, "internal error")})
	}
	return data
}

// EncodeResult returns the bytes of a response. The result must come from encoding/json, because
// EncodeResult does not check it again.
func EncodeResult(id, result json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, []byte(`}`))
}
