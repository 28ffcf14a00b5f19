package gosdk

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// rewriting changes the response that came for a request, before the SDK reads
// it; it says whether it has.
type rewriting func(*answer) bool

// answer is the part of a response that is rewritten.
type answer struct {
	result json.RawMessage
	err    *jsonrpc.Error
}

// discover is the one request of 2026-07-28 whose result the SDK reads itself.
const discover = "server/discover"

// checkKind makes an error of a result that server/discover cannot have: the
// SDK takes a result of any type (E-07, E-14).
func checkKind(a *answer) bool {
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

// The codes that the SDK takes for its own, whoever sends them: that the
// connection is closed, and that it has not sent a request. A server's error of
// these codes goes through the SDK under another.
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

// shownCode is the code that was hidden.
func shownCode(code int64) int {
	if code >= hidden+firstOwn && code <= hidden+lastOwn {
		code -= hidden
	}
	return int(code)
}

// rewriteMessage rewrites a response. Everything else stays as it is.
func rewriteMessage(message []byte, rewrite rewriting) []byte {
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
	if err != nil { // it was decoded
		return message
	}
	return rewritten
}

// changed is a body that is one message, changed. It fails only if the body is too long.
func changed(body io.ReadCloser, change func(message []byte) []byte) (io.ReadCloser, error) {
	read, err := readBody(body)
	if err != nil {
		return nil, err
	}
	if errors.Is(read.err, io.EOF) {
		read.rest = change(read.rest)
	}
	return read, nil
}

// readBytes is a body that has been read.
type readBytes struct {
	io.Closer
	rest []byte
	err  error // that the reading ended with
}

// Read implements io.Reader.
func (b *readBytes) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; n == 0 && len(p) > 0 {
		return 0, b.err
	}
	return n, nil
}
