package gosdk

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// messageReader reads the messages on the standard output of a server. It skips lines that are not messages, because
// programs print greetings and logs there.
type messageReader struct {
	lines  *bufio.Reader
	max    int // bytes of a line, and of the lines between two messages
	logger *slog.Logger

	ready   []*wire.Message // to be returned next
	skipped int             // bytes of other lines since the last message
	// other is the first of the other lines, shortened, once it has been logged.
	other atomic.Pointer[string]
}

func newMessageReader(r io.Reader, most int, logger *slog.Logger) *messageReader {
	return &messageReader{lines: bufio.NewReader(r), max: most, logger: logger}
}

// next returns the next message. After an error, it returns no more messages.
func (m *messageReader) next() (*wire.Message, error) {
	for {
		if len(m.ready) > 0 {
			message := m.ready[0]
			m.ready = m.ready[1:]
			return message, nil
		}
		line, err := m.readLine()
		if errors.As(err, new(tooLongError)) || err != nil && len(line) == 0 {
			return nil, err
		}
		if m.ready = splitMessages(line); m.ready != nil {
			m.skipped = 0
			continue
		}
		if m.other.Load() == nil && len(line) > 0 {
			shown := text.Shorten(string(line), maxNoted)
			m.other.Store(&shown)
			m.logger.Warn("the server's standard output has a line that is not an MCP message; such lines are skipped", "line", shown)
		}
		if m.skipped += len(line) + 1; m.skipped > m.max {
			return nil, floodError{m.max}
		}
	}
}

// readLine returns the next line without white space around it. The last line may come with an error.
func (m *messageReader) readLine() (line []byte, err error) {
	for {
		part, err := m.lines.ReadSlice('\n')
		switch line = append(line, part...); {
		case len(line) > m.max:
			return nil, tooLongError{m.max}
		case !errors.Is(err, bufio.ErrBufferFull):
			return bytes.TrimSpace(wire.TrimMark(line)), err
		}
	}
}

// maxNoted is how many bytes of a line that is not a message are logged.
const maxNoted = 200

// splitMessages returns the messages in a line: the only one, those of a batch, or several without a line end between
// them. It returns nil if anything in the line is not a message.
func splitMessages(line []byte) (messages []*wire.Message) {
	values := json.NewDecoder(bytes.NewReader(line))
	for {
		var value json.RawMessage
		switch err := values.Decode(&value); {
		case errors.Is(err, io.EOF):
			return messages
		case err != nil:
			return nil
		}
		batch := []json.RawMessage{value}
		if value[0] == '[' && json.Unmarshal(value, &batch) != nil {
			return nil
		}
		for _, data := range batch {
			m, err := readMessage(data)
			if err != nil {
				return nil
			}
			if m != nil {
				messages = append(messages, m)
			}
		}
	}
}

// floodError is the error for a server that writes more than max bytes without a message.
type floodError struct{ max int }

func (e floodError) Error() string {
	return fmt.Sprintf("gosdk: the server wrote lines that are not MCP messages to its standard output: more than %d bytes (ClientOptions.MaxMessage)", e.max)
}

// Permanent tells callers that a retry cannot succeed.
func (floodError) Permanent() bool { return true }
