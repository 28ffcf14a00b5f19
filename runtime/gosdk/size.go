package gosdk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// DefaultMaxMessage is the bound in bytes that a ClientOptions.MaxMessage of 0 means.
const DefaultMaxMessage = 16 << 20

const (
	// maxHeader bounds the header of an answer, for the transport that Connect makes.
	maxHeader = 256 << 10
	// maxIdentifier bounds what a server names a session or an event with: each
	// request says it again.
	maxIdentifier = 4 << 10
)

// tooLong is the error for a message of the server's that is longer than max.
type tooLong struct{ max int }

func (e tooLong) Error() string {
	return fmt.Sprintf("gosdk: the server sent a message of more than %d bytes (ClientOptions.MaxMessage)", e.max)
}

// Permanent says that it makes no sense to ask again.
func (tooLong) Permanent() bool { return true }

// limited is the http.RoundTripper next to the wire: no message in what it returns is
// longer than max. A body is one message, a stream has one an event. A body that
// was compressed counts as what it becomes.
type limited struct {
	base http.RoundTripper // nil is http.DefaultTransport
	max  int
}

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	base := l.base
	if base == nil {
		base = http.DefaultTransport
	}
	response, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if id := response.Header.Get("Mcp-Session-Id"); len(id) > maxIdentifier {
		_ = response.Body.Close() // nothing is read of it
		return nil, fmt.Errorf("gosdk: the server named its session with %d bytes, at most %d are allowed", len(id), maxIdentifier)
	}
	response.Body = &limitedBody{ReadCloser: response.Body, max: l.max, stream: isStream(response)}
	return response, nil
}

// limitedBody is a body that fails when a message in it is too long.
type limitedBody struct {
	io.ReadCloser
	max    int
	stream bool
	size   int  // of the message so far
	inLine bool // the line has something in it
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.size > b.max {
		return 0, tooLong{b.max}
	}
	n, err := b.ReadCloser.Read(p)
	if before := b.count(p[:n]); b.size > b.max {
		return before, tooLong{b.max}
	}
	return n, err
}

// count adds to the size, and begins anew behind each empty line of a stream. It
// returns how much is before the message that is too long.
func (b *limitedBody) count(part []byte) (before int) {
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

// readBody reads a body to its end, or as far as it can. It fails only if the
// body is too long.
func readBody(body io.ReadCloser) (*readBytes, error) {
	if read, ok := body.(*readBytes); ok {
		return read, nil
	}
	data, err := io.ReadAll(body)
	switch long := (tooLong{}); {
	case err == nil:
		err = io.EOF
	case errors.As(err, &long):
		_ = body.Close() // nothing is made of it
		return nil, err
	}
	return &readBytes{Closer: body, rest: data, err: err}, nil
}
