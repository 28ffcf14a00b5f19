package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Event is one server-sent event as it came: its lines, with or without the empty one
// behind them.
type Event []byte

// Data joins the data of the event, nil if it has none.
func (e Event) Data() (data []byte) {
	for line := range bytes.Lines(e) {
		data = appendData(data, line)
	}
	return data
}

// appendData appends the data of a line, if it has any, to that of the lines before.
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

// Field splits a line of an event into the name of its field and the value, without the
// white space around it. It returns false if the line has no colon.
func Field(line []byte) (name string, value []byte, ok bool) {
	field, value, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
	return string(field), bytes.TrimSpace(value), ok
}

// AppendEvent appends the event of one message. JSON has no line breaks of its own.
func AppendEvent(to, message []byte) []byte {
	to = append(to, "event: message\ndata: "...)
	return append(append(to, message...), "\n\n"...)
}

// CutEvent cuts the first whole event off the bytes of a stream. It returns false if
// there is none yet.
func CutEvent(stream []byte) (event Event, rest []byte, ok bool) {
	return bytes.Cut(stream, []byte("\n\n"))
}

// ReadEvents reads a stream of events, none of which has a line of more than most bytes, and
// calls take with the data of each until it returns true or an error. The end of the
// stream is an error.
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
			continue // a comment, or what a client may ignore
		}
		if end, err := take(data); end || err != nil {
			return err
		}
		data = nil
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("the stream has ended")
}
