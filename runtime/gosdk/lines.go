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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// messageReader reads the standard output of a server and passes on only the lines that are messages. Programs print
// greetings and logs there, and the SDK ends the session at the first line that it cannot read.
type messageReader struct {
	lines  *bufio.Reader
	max    int // bytes of a line, and of the lines between two messages
	logger *slog.Logger

	ready   []byte // to be read next
	skipped int    // bytes of other lines since the last message
	// other is the first of the other lines, shortened, once it has been logged.
	other *atomic.Pointer[string]
	err   error
}

func newMessageReader(r io.Reader, most int, logger *slog.Logger) *messageReader {
	return &messageReader{lines: bufio.NewReader(r), max: most, logger: logger, other: new(atomic.Pointer[string])}
}

// Read implements io.Reader.
func (m *messageReader) Read(p []byte) (int, error) {
	for len(m.ready) == 0 && m.err == nil {
		m.readLine()
	}
	n := copy(p, m.ready)
	if m.ready = m.ready[n:]; n == 0 && len(p) > 0 {
		return 0, m.err
	}
	return n, nil
}

// readLine reads a line. It sets ready if the line is a message.
func (m *messageReader) readLine() {
	var line []byte
	for end := false; !end; {
		part, err := m.lines.ReadSlice('\n')
		switch line = append(line, part...); {
		case len(line) > m.max:
			m.err = tooLongError{m.max}
			return
		case err == nil:
			end = true
		case !errors.Is(err, bufio.ErrBufferFull):
			m.err, end = err, true
		}
	}
	line = bytes.TrimSpace(wire.TrimMark(line))
	if messages := splitMessages(line); messages != nil {
		m.ready, m.skipped = messages, 0
		return
	}
	if m.other.Load() == nil && len(line) > 0 {
		shown := text.Shorten(string(line), maxNoted)
		m.other.Store(&shown)
		m.logger.Warn("the server's standard output has a line that is not an MCP message; such lines are skipped", "line", shown)
	}
	if m.skipped += len(line) + 1; m.skipped > m.max && m.err == nil {
		m.err = floodError{m.max}
	}
}

// maxNoted is how many bytes of a line that is not a message are logged.
const maxNoted = 200

// splitMessages returns each message in a line, with a line for each: the only one, those of a batch, or several without a
// line end between them. It returns nil if anything in the line is not a message.
func splitMessages(line []byte) (messages []byte) {
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
		for _, message := range batch {
			if _, err := jsonrpc.DecodeMessage(message); err != nil {
				return nil
			}
			messages = append(append(messages, message...), '\n')
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
