package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Event holds the unchanged lines of one server-sent event, with or without the empty line at its
// end.
type Event []byte

// Data returns the joined data of the event, or nil if it has no data.
func (e Event) Data() (data []byte) {
	for line := range bytes.Lines(e) {
		data = appendData(data, line)
	}
	return data
}

// appendData appends the data of a line to the data of earlier lines.
func appendData(data, line []byte) []byte {
	name, value, ok := Field(line)
	switch {
	case !ok || name != "data":
		return data
	case data == nil:
		return append([]byte{}, value...)
	}
	return append(append(data, '\n'), value...)
}

// Field splits a line of an event into the name of its field and the trimmed value. It returns
// false if the line has no colon.
func Field(line []byte) (name string, value []byte, ok bool) {
	field, value, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
	return string(field), bytes.TrimSpace(value), ok
}

// AppendEvent appends a message as an event. The message is compact JSON, so it has no line breaks.
func AppendEvent(to, message []byte) []byte {
	to = append(to, "event: message\ndata: "...)
	return append(append(to, message...), "\n\n"...)
}

// CutEvent cuts the first complete event off a stream's bytes. It returns false if there is no
// complete event yet.
func CutEvent(stream []byte) (event Event, rest []byte, ok bool) {
	return bytes.Cut(stream, []byte("\n\n"))
}

// ReadEvents reads a stream of events and calls take with the data of each, until take returns true
// or an error. A line of more than most bytes is an error, and so is the end of the stream.
func ReadEvents(r io.Reader, most int, take func(data []byte) (end bool, err error)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, most+1)
	var data []byte
	for lines.Scan() {
		if line := lines.Bytes(); len(bytes.TrimRight(line, "\r")) > 0 {
			data = appendData(data, line)
			continue
		}
		if data == nil {
			continue // a comment, or an event that a client may ignore
		}
		if end, err := take(TrimMark(data)); end || err != nil {
			return err
		}
		data = nil
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the stream has ended")
}
