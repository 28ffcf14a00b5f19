// Package wire reads JSON-RPC messages and writes replies. It reads a message once: an index finds
// the members, their values keep their bytes, and an edit copies all bytes but its own.
package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Message is one JSON-RPC message.
type Message struct {
	ID     json.RawMessage
	Method string
	Params *Object
	Result json.RawMessage
	Error  *mcptask.Error

	whole *Object
}

// Bytes returns the unchanged message, without leading white space.
func (m *Message) Bytes() []byte { return m.whole.raw }

// IsRequest reports whether the message expects an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" && (m.Result != nil || m.Error != nil) }

// byteOrderMark begins the messages of some programs, mostly on Windows. JSON forbids writers to add it, and allows
// readers to skip it (RFC 8259, section 8.1).
const byteOrderMark = "\ufeff"

// TrimMark returns a message without a byte order mark before it.
func TrimMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte(byteOrderMark)) }

// messageMembers are the members that readers of messages act on.
var messageMembers = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// Read reads one message. It refuses a batch, which only 2025-03-26 has: it could hide messages that the reader acts
// on. With a refusal it returns a message only if the ID or the kind of the message could be read.
func Read(data []byte) (m *Message, refusal *mcptask.Error) {
	if !utf8.Valid(data) { // encoding/json would repair it, but the SDK would not
		return nil, mcptask.Errorf(mcptask.CodeParseError, "the message is not UTF-8")
	}
	data = bytes.TrimLeft(TrimMark(data), " \t\r\n")
	switch {
	case !json.Valid(data):
		return nil, mcptask.Errorf(mcptask.CodeParseError, "the message is not JSON")
	case data[0] == '[':
		return nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "batches of messages are not accepted: send one message at a time")
	}
	m = &Message{whole: NewObject(data)}
	fault := m.whole.Fault(messageMembers)
	read := m.readMembers
	if fault != "" {
		read = m.readAmbiguous
	}
	version, ok := read()
	badID := m.ID != nil && !ValidID(m.ID)
	switch {
	case !ok:
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the body is not a JSON-RPC message")
	case version != "2.0":
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, `the message lacks "jsonrpc": "2.0"`)
	case badID && m.Method != "":
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the request's id is neither a string nor an integer of at most 53 bits")
	case fault != "":
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the message is ambiguous: %s", fault)
	}
	if refusal != nil && (badID || m.IsResponse()) {
		m.ID = nil // the answer cannot repeat the ID
	}
	return m, refusal
}

// readMembers reads the members of a message. It returns false if a member has the wrong type.
func (m *Message) readMembers() (version string, ok bool) {
	m.ID, m.Params, m.Result = m.whole.Get("id"), m.whole.Object("params"), m.whole.Get("result")
	if m.Params == nil {
		m.Params = new(Object)
	}
	if !m.whole.textOrNull("jsonrpc", &version) || !m.whole.textOrNull("method", &m.Method) {
		return "", false
	}
	if failed := m.whole.Get("error"); failed != nil && json.Unmarshal(failed, &m.Error) != nil {
		return "", false
	}
	return version, m.whole.isObject || string(m.whole.raw) == "null"
}

// readAmbiguous reads the members of an ambiguous message as encoding/json does, so that the
// refusal has the ID that most readers find.
func (m *Message) readAmbiguous() (version string, ok bool) {
	var read struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   *mcptask.Error  `json:"error"`
	}
	ok = json.Unmarshal(m.whole.raw, &read) == nil
	m.ID, m.Method, m.Params, m.Result, m.Error = read.ID, read.Method, NewObject(read.Params), read.Result, read.Error
	return read.JSONRPC, ok
}
