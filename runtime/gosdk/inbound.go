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

// interceptor sees each message from the server, as JSON, before the SDK does. If it returns true,
// the SDK does not see the message. It must not keep the bytes, and must return quickly because the
// stream waits for it.
type interceptor func(message []byte, from messageSource) (taken bool)

// messageSource says how a message has come.
type messageSource struct {
	// revision is the negotiated one, or "" before that.
	revision string
	// send sends a message back to the session of the message.
	send func(ctx context.Context, message []byte) error
}

// eventReader reads an event stream and edits its messages. If edit returns nil, the message is
// removed. If edit returns the same bytes, the event stays as it is. All other bytes pass
// unchanged. Of an event whose message is removed, the ID and the retry field pass too, because the
// SDK resumes the stream from them.
type eventReader struct {
	body  io.ReadCloser
	lines *bufio.Reader
	edit  func(message []byte) []byte
	// instead returns a message that replaces one that is too long. The stream ends after it. If
	// instead is nil or returns nil, the stream ends with the error.
	instead func(tooLongError) []byte

	ready   []byte // to be read next
	event   []byte // the event so far
	partial bool   // the last line is incomplete
	err     error
}

func newEventReader(body io.ReadCloser, edit func(message []byte) []byte) *eventReader {
	return &eventReader{body: body, lines: bufio.NewReader(body), edit: edit}
}

// Read implements io.Reader.
func (e *eventReader) Read(p []byte) (int, error) {
	for len(e.ready) == 0 && e.err == nil {
		e.readLine()
	}
	n := copy(p, e.ready)
	if e.ready = e.ready[n:]; n == 0 && len(p) > 0 {
		return 0, e.err
	}
	return n, nil
}

// Close implements io.Closer.
func (e *eventReader) Close() error { return e.body.Close() }

// readLine reads a line, or the part of it that fits the buffer.
func (e *eventReader) readLine() {
	part, err := e.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	e.event, e.err = append(e.event, part...), err
	blank := !e.partial && len(bytes.TrimRight(part, "\r\n")) == 0 && len(part) > 0
	e.partial = !bytes.HasSuffix(part, []byte("\n"))
	var long tooLongError
	switch {
	case errors.As(err, &long):
		e.event = nil
		if e.instead == nil {
			return
		}
		if message := e.instead(long); message != nil {
			e.ready, e.err = slices.Concat([]byte("data: "), message, []byte("\n\n")), io.EOF
		}
	case err != nil && !errors.Is(err, io.EOF): // cut off: the partial event passes unedited
		e.ready, e.event = e.event, nil
	case blank, err != nil: // the SDK accepts an event that ends with its stream
		e.ready, e.event = e.editEvent(e.event), nil
	}
}

// These constants bound the pause that a server may ask for before its stream is resumed.
const (
	shortestRetry = 100 * time.Millisecond
	longestRetry  = 5 * time.Minute
)

// sanitizeEvent removes an ID that is too long to be repeated, and bounds the pause of the retry
// field.
func sanitizeEvent(event []byte) []byte {
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
				continue // not a valid pause
			}
			if bearable := min(max(ms, shortestRetry.Milliseconds()), longestRetry.Milliseconds()); bearable != ms {
				line = fmt.Appendf(nil, "retry: %d\n", bearable)
			}
		}
		tame = append(tame, line...)
	}
	return tame
}

// editEvent returns what the SDK gets to see of an event.
func (e *eventReader) editEvent(event []byte) []byte {
	event = sanitizeEvent(event)
	var rest []byte
	for line := range bytes.Lines(event) {
		field, value, ok := wire.Field(line)
		switch {
		case !ok && len(field) > 0:
			return event // the SDK ends the session because of it
		case field == "data":
			continue
		case field == "event" && len(value) > 0 && string(value) != "message":
			return event // not a message
		}
		rest = append(rest, line...)
	}
	data := wire.Event(event).Data()
	if len(data) == 0 {
		return event
	}
	switch edited := e.edit(wire.TrimMark(data)); {
	case edited == nil:
		return rest
	case bytes.Equal(edited, data):
		return event
	default:
		return slices.Concat([]byte("data: "), edited, []byte("\n"), rest)
	}
}
