package gosdk

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// DefaultMaxMessage is the default of ClientOptions.MaxMessage, in bytes.
const DefaultMaxMessage = 16 << 20

const (
	// maxHeader bounds the header of a response, for the transport that Connect makes.
	maxHeader = 256 << 10
	// maxIdentifier bounds the ID of a session or an event, because requests repeat it.
	maxIdentifier = 4 << 10
)

// tooLongError is the error for a server's message of more than max bytes.
type tooLongError struct{ max int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("gosdk: the server sent a message of more than %d bytes (ClientOptions.MaxMessage)", e.max)
}

// Permanent tells callers that a retry cannot succeed.
func (tooLongError) Permanent() bool { return true }

// limitedTransport is the http.RoundTripper next to the network. It bounds each message in a
// response: the whole body, or one event of a stream. A compressed body counts with its
// decompressed size.
type limitedTransport struct {
	base http.RoundTripper
	max  int
}

// RoundTrip implements http.RoundTripper.
func (l limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if id := response.Header.Get("Mcp-Session-Id"); len(id) > maxIdentifier {
		_ = response.Body.Close() // the body is not read
		return nil, fmt.Errorf("gosdk: the server's session ID has %d bytes: at most %d are allowed", len(id), maxIdentifier)
	}
	response.Body = &limitedBody{ReadCloser: &markTrimmer{ReadCloser: response.Body}, max: l.max, stream: isStream(response)}
	return response, nil
}

// markTrimmer is a body without the byte order mark that it may begin with.
type markTrimmer struct {
	io.ReadCloser
	begun bool
	ahead []byte // read, and not returned yet
}

// Read implements io.Reader.
func (m *markTrimmer) Read(p []byte) (int, error) {
	if !m.begun {
		m.begun = true
		var begin [3]byte // as long as the mark
		n, err := io.ReadFull(m.ReadCloser, begin[:])
		if m.ahead = wire.TrimMark(begin[:n]); n == 0 {
			return 0, err
		}
	}
	if len(m.ahead) > 0 {
		n := copy(p, m.ahead)
		m.ahead = m.ahead[n:]
		return n, nil
	}
	return m.ReadCloser.Read(p)
}

// limitedBody is a body that fails if a message in it is too long.
type limitedBody struct {
	io.ReadCloser
	max    int
	stream bool
	size   int  // of the message so far
	inLine bool // the line is not empty
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.size > b.max {
		return 0, tooLongError{b.max}
	}
	n, err := b.ReadCloser.Read(p)
	if before := b.countBytes(p[:n]); b.size > b.max {
		return before, tooLongError{b.max}
	}
	return n, err
}

// countBytes adds to the size, and resets it after each empty line of a stream. It returns how many
// bytes come before the message that is too long.
func (b *limitedBody) countBytes(part []byte) (before int) {
	for at := 0; b.size <= b.max; {
		end := bytes.IndexByte(part[at:], '\n')
		if end < 0 || !b.stream {
			b.size += len(part) - at
			b.inLine = b.inLine || len(bytes.TrimRight(part[at:], "\r")) > 0
			break
		}
		b.size += end + 1
		if blank := !b.inLine && len(bytes.TrimRight(part[at:at+end], "\r")) == 0; blank && b.size <= b.max {
			b.size, before = 0, at+end+1
		}
		b.inLine, at = false, at+end+1
	}
	return before
}

// readBody reads a body to its end. If that fails, the body is closed: the SDK must not read it, because an error in a body
// ends its session, and with it the other requests.
func readBody(body io.ReadCloser) (*readBytes, error) {
	if read, ok := body.(*readBytes); ok {
		return read, nil
	}
	data, err := io.ReadAll(body)
	if err != nil {
		_ = body.Close() // it is not used
		return nil, err
	}
	return &readBytes{Closer: body, rest: data}, nil
}
