// Package record asks an MCP server for its list of tools, over HTTP or on the pipes of a command.
// It keeps what the server sends byte for byte: the types of an SDK would drop what they do not
// know.
package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Config names the server. Either URL or Command is set.
type Config struct {
	URL     string
	Header  http.Header // of the requests to URL
	Command []string    // a program and its arguments
	// Stderr gets what the program writes to its standard error.
	Stderr io.Writer
	// Revision is the revision to speak. Empty means [sessions], or [stateless] if the server does
	// not speak that.
	Revision string
}

// The revisions that differ in how a client begins. A session begins with initialize. Its server may
// choose another revision of this kind.
const (
	sessions  = "2025-11-25"
	stateless = "2026-07-28"
)

// Revisions lists the values of Config.Revision.
func Revisions() []string { return []string{sessions, stateless} }

// Bounds of what a server may send. Real lists are far below them.
const (
	maxMessage = 16 << 20 // bytes
	maxPages   = 1000
	maxTotal   = 64 << 20 // bytes of all pages
)

// Tools returns the server's list as indented JSON: an object with the answer to initialize or
// server/discover, and the tools of all pages in the server's order. Of the first answer it has the
// server's name, its capabilities and its revision. Tools ends with the context.
func Tools(ctx context.Context, cfg Config) ([]byte, error) {
	link, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &peer{link: link}
	list, err := p.record(ctx, cfg.Revision)
	link.close()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the server did not answer %s in time", p.method)
	case err != nil:
		return nil, err
	}
	return list, nil
}

// link carries messages to a server and back.
type link interface {
	// send sends a message. method is that of a request, or "" for others.
	send(ctx context.Context, method string, message []byte) error
	// receive returns the next message from the server.
	receive() ([]byte, error)
	// setRevision says in which revision further messages are.
	setRevision(revision string)
	close()
}

func open(ctx context.Context, cfg Config) (link, error) {
	if len(cfg.Command) > 0 {
		return startCommand(ctx, cfg)
	}
	return newHTTPLink(cfg), nil
}

// peer is a server.
type peer struct {
	link
	revision string
	method   string // of the last request
	id       int    // of the last request
}

// message is a JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *refusal        `json:"error,omitempty"`
}

// refusal is a JSON-RPC error.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	method  string
}

// Error implements error.
func (r *refusal) Error() string {
	return fmt.Sprintf("the server refused %s: %s (%d)", r.method, words.QuoteJSON(r.Message), r.Code)
}

// client names this program to servers.
var client = map[string]string{"name": "mcptaskgen", "version": "1"}

// record begins a conversation and reads the list.
func (p *peer) record(ctx context.Context, revision string) ([]byte, error) {
	began, about, err := "initialize", json.RawMessage(nil), error(nil)
	if revision != stateless {
		about, err = p.initialize(ctx)
		if refused := (*refusal)(nil); revision == "" && errors.As(err, &refused) {
			revision = stateless
		}
	}
	if revision == stateless {
		began = "server/discover"
		refused := err
		p.revision = stateless
		p.setRevision(stateless)
		if about, err = p.request(ctx, began, map[string]any{}); err != nil && refused != nil {
			return nil, refused // a server of sessions; its own words say why it refuses
		}
	}
	if err != nil {
		return nil, err
	}
	tools, err := p.listTools(ctx)
	if err != nil {
		return nil, err
	}
	return encode(began, about, tools)
}

func (p *peer) initialize(ctx context.Context) (json.RawMessage, error) {
	result, err := p.request(ctx, "initialize", map[string]any{
		"protocolVersion": sessions, "capabilities": map[string]any{}, "clientInfo": client,
	})
	if err != nil {
		return nil, err
	}
	var chosen struct {
		Revision string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(result, &chosen); err != nil || chosen.Revision == "" {
		return nil, errors.New("the server's answer to initialize names no revision: it is not an MCP server")
	}
	p.setRevision(chosen.Revision)
	return result, p.post(ctx, message{Method: "notifications/initialized"})
}

// listTools reads all pages.
func (p *peer) listTools(ctx context.Context) ([]json.RawMessage, error) {
	var tools []json.RawMessage
	seen, size := map[string]bool{}, 0
	for params := map[string]any{}; ; {
		result, err := p.request(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools  []json.RawMessage `json:"tools"`
			Cursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, fmt.Errorf("the server's answer to tools/list is not a list of tools: %w", err)
		}
		tools = append(tools, page.Tools...)
		size += len(result)
		switch {
		case page.Cursor == "" && len(tools) == 0:
			return nil, errors.New("the server lists no tools; it may need a token, or settings, see its documentation")
		case page.Cursor == "":
			return tools, nil
		case seen[page.Cursor]:
			return nil, fmt.Errorf("the server's list has no end: it names the next page %s twice", words.QuoteJSON(page.Cursor))
		case len(seen) >= maxPages || size > maxTotal:
			return nil, fmt.Errorf("the server's list is too long: %d tools on %d pages, %d MB", len(tools), len(seen)+1, size>>20)
		}
		seen[page.Cursor] = true
		params = map[string]any{"cursor": page.Cursor}
	}
}

// post sends a message without waiting for an answer.
func (p *peer) post(ctx context.Context, m message) error {
	m.JSONRPC = "2.0"
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return p.send(ctx, m.Method, data)
}

// request sends a request and returns its result. In between it answers what the server asks.
func (p *peer) request(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	p.id++
	p.method = method
	id, err := json.Marshal(p.id)
	if err != nil {
		return nil, err
	}
	if p.revision == stateless {
		const prefix = "io.modelcontextprotocol/"
		params["_meta"] = map[string]any{prefix + "protocolVersion": stateless, prefix + "clientInfo": client, prefix + "clientCapabilities": map[string]any{}}
	}
	if err := p.post(ctx, message{ID: id, Method: method, Params: params}); err != nil {
		return nil, err
	}
	for {
		data, err := p.receive()
		if err != nil {
			return nil, fmt.Errorf("%w before it answered %s", err, method)
		}
		var m message
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("the server sent a message that is not JSON-RPC: %w", err)
		}
		switch {
		case m.Method != "":
			if err := p.answer(ctx, m); err != nil {
				return nil, err
			}
		case m.Error != nil && (bytes.Equal(m.ID, id) || string(m.ID) == "null" || m.ID == nil):
			m.Error.method = method
			return nil, m.Error
		case bytes.Equal(m.ID, id):
			return m.Result, nil
		}
	}
}

// answer answers a request of the server, which was told that this client can do nothing.
func (p *peer) answer(ctx context.Context, m message) error {
	switch {
	case m.ID == nil: // a notification
		return nil
	case m.Method == "ping":
		return p.post(ctx, message{ID: m.ID, Result: json.RawMessage("{}")})
	}
	return p.post(ctx, message{ID: m.ID, Error: &refusal{Code: -32601, Message: "method not found"}})
}

// encode puts a recording together.
func encode(began string, about json.RawMessage, tools []json.RawMessage) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(about, &all); err != nil {
		return nil, fmt.Errorf("the server's answer to %s is not an object: %w", began, err)
	}
	var b bytes.Buffer
	member := func(separator, name string, value []byte) { fmt.Fprintf(&b, "%s%q:%s", separator, name, value) }
	member("{", began, []byte("{"))
	separator := ""
	for _, name := range []string{"protocolVersion", "supportedVersions", "capabilities", "serverInfo"} {
		if value := all[name]; value != nil {
			member(separator, name, value)
			separator = ","
		}
	}
	member("},", "tools", append(append([]byte("["), bytes.Join(asBytes(tools), []byte(","))...), "]}"...))
	var indented bytes.Buffer
	if err := json.Indent(&indented, b.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

var errTooLong = fmt.Errorf("a message of more than %d MB came", maxMessage>>20)

// readLine reads a line with its end. It returns what came before an error.
func readLine(r *bufio.Reader, limit int) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > limit {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func asBytes(values []json.RawMessage) [][]byte {
	list := make([][]byte, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}
