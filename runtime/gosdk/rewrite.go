package gosdk

import (
	"encoding/json"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// rewriteFunc changes a response before the SDK reads it. It reports whether it has changed
// anything.
type rewriteFunc func(*answer) bool

// answer is the part of a response that may be rewritten.
type answer struct {
	result json.RawMessage
	err    *jsonrpc.Error
}

// discover is the only request of 2026-07-28 whose result the SDK itself reads.
const discover = "server/discover"

// rejectWrongKind replaces a result of the wrong type for server/discover by an error. The SDK
// would accept any type (E-07, E-14).
func rejectWrongKind(a *answer) bool {
	if len(a.result) == 0 {
		return false
	}
	err := protocol.Client20260728{}.ResultKind(discover, a.result)
	if err == nil {
		return false
	}
	a.result, a.err = nil, &jsonrpc.Error{Code: mcptask.CodeInvalidRequest, Message: err.Error()}
	return true
}

// The SDK treats the codes from firstOwn to lastOwn as its own, whoever sends them: the connection
// is closed, or a request was not sent. A server's error with such a code goes through the SDK
// under a code that is hidden lower.
const (
	firstOwn, lastOwn = -32005, -32003
	hidden            = -1_000_000
)

func hideCode(a *answer) bool {
	if a.err == nil || a.err.Code < firstOwn || a.err.Code > lastOwn {
		return false
	}
	other := *a.err
	other.Code += hidden
	a.err = &other
	return true
}

// restoreCode undoes hideCode.
func restoreCode(code int64) int {
	if code >= hidden+firstOwn && code <= hidden+lastOwn {
		code -= hidden
	}
	return int(code)
}

// rewriteMessage rewrites a response. Any other message stays as it is.
func rewriteMessage(message []byte, rewrite rewriteFunc) []byte {
	var m struct {
		Version json.RawMessage `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}
	if json.Unmarshal(message, &m) != nil {
		return message
	}
	a := answer{m.Result, m.Error}
	if !rewrite(&a) {
		return message
	}
	m.Result, m.Error = a.result, a.err
	rewritten, err := json.Marshal(m)
	if err != nil { // cannot happen: it was decoded
		return message
	}
	return rewritten
}

// changeBody changes a body that is one message.
func changeBody(body io.ReadCloser, change func(message []byte) []byte) (io.ReadCloser, error) {
	read, err := readBody(body)
	if err != nil {
		return nil, err
	}
	read.rest = change(read.rest)
	return read, nil
}

// readBytes is a body that has been read.
type readBytes struct {
	io.Closer
	rest []byte
}

// Read implements io.Reader.
func (b *readBytes) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}
