package gosdk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// taker sees each message of the server's before the SDK does, as JSON, and may
// take it: then the SDK does not see it. The bytes are the taker's only during
// the call, which must be quick: the stream waits for it.
type taker func(message []byte, from way) (taken bool)

// way is how a message has come.
type way struct {
	// revision is the one that was negotiated, "" before.
	revision string
	// send sends a message back to the session that the message came from.
	send func(ctx context.Context, message []byte) error
}

// events reads an event stream with its messages edited: nil takes one out, the
// same bytes leave it as it came. It reads as the SDK does, which gets every other
// byte as it came: of an event that was taken its ID and its retry field too, since
// the SDK resumes the stream there.
type events struct {
	body  io.ReadCloser
	lines *bufio.Reader
	edit  func(message []byte) []byte
	// instead makes the message that takes the place of one that is too long, and is
	// the stream's last; nil, also as its result, ends the stream with the error.
	instead func(tooLong) []byte

	ready   []byte // to be read next
	event   []byte // what has come of an event
	partial bool   // the last line has not ended
	err     error
}

func newEvents(body io.ReadCloser, edit func(message []byte) []byte) *events {
	return &events{body: body, lines: bufio.NewReader(body), edit: edit}
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.ready) == 0 && e.err == nil {
		e.next()
	}
	n := copy(p, e.ready)
	if e.ready = e.ready[n:]; n == 0 && len(p) > 0 {
		return 0, e.err
	}
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() }

// next reads a line, or as much of it as there is room for.
func (e *events) next() {
	part, err := e.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	e.event, e.err = append(e.event, part...), err
	blank := !e.partial && len(bytes.TrimRight(part, "\r\n")) == 0 && len(part) > 0
	e.partial = !bytes.HasSuffix(part, []byte("\n"))
	var long tooLong
	switch {
	case errors.As(err, &long):
		e.event = nil
		if e.instead == nil {
			return
		}
		if message := e.instead(long); message != nil {
			e.ready, e.err = slices.Concat([]byte("data: "), message, []byte("\n\n")), io.EOF
		}
	case err != nil && !errors.Is(err, io.EOF): // cut off: nothing is taken of it
		e.ready, e.event = e.event, nil
	case blank, err != nil: // the SDK takes an event at the end of its stream for whole
		e.ready, e.event = e.left(e.event), nil
	}
}

// The pause that a server may ask for before its stream is resumed.
const (
	shortestRetry = 100 * time.Millisecond
	longestRetry  = 5 * time.Minute
)

// tamed is an event without an identifier that is too long to be said again, and with
// a pause that is bearable.
func tamed(event []byte) []byte {
	if !bytes.Contains(event, []byte("retry")) && len(event) <= maxIdentifier {
		return event
	}
	var tame []byte
	for line := range bytes.Lines(event) {
		field, value, _ := wire.Field(line)
		switch field {
		case "id":
			if len(value) > maxIdentifier {
				continue
			}
		case "retry":
			ms, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || ms <= 0 {
				continue // it says nothing
			}
			if bearable := min(max(ms, shortestRetry.Milliseconds()), longestRetry.Milliseconds()); bearable != ms {
				line = fmt.Appendf(nil, "retry: %d\n", bearable)
			}
		}
		tame = append(tame, line...)
	}
	return tame
}

// left is what the SDK gets to see of an event.
func (e *events) left(event []byte) []byte {
	event = tamed(event)
	var rest []byte
	for line := range bytes.Lines(event) {
		field, value, ok := wire.Field(line)
		switch {
		case !ok && len(field) > 0:
			return event // the SDK ends the session over it
		case field == "data":
			continue
		case field == "event" && len(value) > 0 && string(value) != "message":
			return event // no message
		}
		rest = append(rest, line...)
	}
	data := wire.Event(event).Data()
	if len(data) == 0 {
		return event
	}
	switch edited := e.edit(data); {
	case edited == nil:
		return rest
	case bytes.Equal(edited, data):
		return event
	default:
		return slices.Concat([]byte("data: "), edited, []byte("\n"), rest)
	}
}
