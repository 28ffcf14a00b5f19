// Package record asks an MCP server for its list of tools, over HTTP or on the pipes of a command.
// It keeps the server's messages byte for byte. The types of an SDK would drop members that they do
// not know.
package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
	"github.com/mcptaskgen/mcptaskgen/internal/indent"
)

// Config names the server. Either URL or Command is set.
type Config struct {
	URL     string
	Header  http.Header // of the requests to URL
	Command []string    // a program and its arguments
	// Stderr gets the program's standard error.
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

// Bounds of a server's output. Real lists are far below them.
const (
	maxBytes = 16 << 20 // of everything
	maxPages = 1000
)

// Tools returns the server's list as indented JSON. See [recording]. Tools ends with the context.
func Tools(ctx context.Context, cfg Config) ([]byte, error) {
	link, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	p := &peer{link: link}
	list, err := p.record(ctx, cfg.Revision)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the server did not answer %s in time", p.method)
	}
	link.close()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err = e.Encode(list)
	return append(indent.JSON(b.Bytes()), '\n'), err
}

// recording has a server's answer to initialize or server/discover, and the tools of all pages in the server's order.
type recording struct {
	Initialize *about            `json:"initialize,omitempty"`
	Discover   *about            `json:"server/discover,omitempty"`
	Tools      []json.RawMessage `json:"tools"`
}

// about is the part of the server's first answer that a recording keeps.
type about struct {
	Revision     string          `json:"protocolVersion,omitempty"`
	Revisions    json.RawMessage `json:"supportedVersions,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Server       json.RawMessage `json:"serverInfo,omitempty"`
}

// link carries messages to a server and back.
type link interface {
	// send sends a message in a revision. The revision is empty until the server has chosen it.
	send(ctx context.Context, m message, revision string) error
	// receive returns the next message from the server.
	receive() (message, error)
	close()
}

func open(ctx context.Context, cfg Config) (link, error) {
	if len(cfg.Command) > 0 {
		return startCommand(ctx, cfg)
	}
	return newHTTPLink(cfg), nil
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
}

// Error implements error.
func (r *refusal) Error() string { return fmt.Sprintf("%s (%d)", words.QuoteJSON(r.Message), r.Code) }

// peer is a server.
type peer struct {
	link
	revision string // empty until the server has chosen it
	method   string // of the last request
	id       int    // of the last request
}

// record begins a conversation and reads the list.
func (p *peer) record(ctx context.Context, revision string) (list recording, err error) {
	var refused *refusal
	if revision != stateless {
		list.Initialize, err = p.initialize(ctx)
	}
	if revision == stateless || revision == "" && errors.As(err, &refused) {
		p.revision = stateless
		// If the server refused initialize too, that refusal has the reason.
		if fault := p.request(ctx, "server/discover", map[string]any{}, &list.Discover); fault == nil || refused == nil {
			err = fault
		}
	}
	if err == nil {
		list.Tools, err = p.listTools(ctx)
	}
	return list, err
}

// client names this program to servers. taskClient has the capabilities that it declares in 2026-07-28, because there
// servers list other tools for clients without tasks or without questions.
var (
	client     = map[string]string{"name": "mcptaskgen", "version": "1"}
	taskClient = map[string]any{"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}}
)

func (p *peer) initialize(ctx context.Context) (result *about, err error) {
	err = p.request(ctx, "initialize", map[string]any{
		"protocolVersion": sessions, "capabilities": map[string]any{}, "clientInfo": client,
	}, &result)
	switch {
	case err != nil:
		return nil, err
	case result == nil || result.Revision == "":
		return nil, errors.New("the server's answer to initialize names no revision: it is not an MCP server")
	}
	p.revision = result.Revision
	return result, p.post(ctx, message{Method: "notifications/initialized"})
}

// listTools reads all pages.
func (p *peer) listTools(ctx context.Context) (tools []json.RawMessage, err error) {
	var cursors []string
	for params := map[string]any{}; ; {
		var page struct {
			Tools  []json.RawMessage `json:"tools"`
			Cursor string            `json:"nextCursor"`
		}
		if err := p.request(ctx, "tools/list", params, &page); err != nil {
			return nil, err
		}
		tools = append(tools, page.Tools...)
		switch {
		case page.Cursor == "" && len(tools) == 0:
			return nil, errors.New("the server lists no tools; it may need a token, or settings, see its documentation")
		case page.Cursor == "":
			return tools, nil
		case slices.Contains(cursors, page.Cursor):
			return nil, fmt.Errorf("the server's list has no end: it names the next page %s twice", words.QuoteJSON(page.Cursor))
		case len(cursors) >= maxPages:
			return nil, fmt.Errorf("the server's list is too long: more than %d pages, with %d tools", maxPages, len(tools))
		}
		cursors = append(cursors, page.Cursor)
		params = map[string]any{"cursor": page.Cursor}
	}
}

// post sends a message without waiting for an answer.
func (p *peer) post(ctx context.Context, m message) error {
	m.JSONRPC = "2.0"
	return p.send(ctx, m, p.revision)
}

// request sends a request and decodes its result. In between it answers the server's requests.
func (p *peer) request(ctx context.Context, method string, params map[string]any, result any) error {
	p.id++
	p.method = method
	id := fmt.Append(nil, p.id)
	if p.revision == stateless {
		const prefix = "io.modelcontextprotocol/"
		params["_meta"] = map[string]any{prefix + "protocolVersion": stateless, prefix + "clientInfo": client, prefix + "clientCapabilities": taskClient}
	}
	if err := p.post(ctx, message{ID: id, Method: method, Params: params}); err != nil {
		return err
	}
	for {
		m, err := p.receive()
		if err != nil {
			return fmt.Errorf("%w before it answered %s", err, method)
		}
		switch {
		case m.Method != "" && m.ID == nil: // a notification
		case m.Method != "":
			if err := p.answer(ctx, m); err != nil {
				return err
			}
		case m.Error != nil && (bytes.Equal(m.ID, id) || string(m.ID) == "null" || m.ID == nil):
			return fmt.Errorf("the server refused %s: %w", method, m.Error)
		case bytes.Equal(m.ID, id):
			if err := decode(m.Result, result); err != nil {
				return fmt.Errorf("the server's answer to %s has no valid result: %w", method, err)
			}
			return nil
		}
	}
}

// decode decodes data of the server. Its error does not name Go types.
func decode(data []byte, v any) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // a byte order mark, which some programs on Windows write
	err := json.Unmarshal(data, v)
	if mismatch := (*json.UnmarshalTypeError)(nil); errors.As(err, &mismatch) {
		return fmt.Errorf("%s is of type %s", cmp.Or(mismatch.Field, "it"), mismatch.Value)
	}
	if err == nil && !utf8.Valid(data) {
		return errors.New("it is not UTF-8")
	}
	return err
}

// answer answers a request of the server, which was told that this client can do nothing.
func (p *peer) answer(ctx context.Context, m message) error {
	if m.Method == "ping" {
		return p.post(ctx, message{ID: m.ID, Result: json.RawMessage("{}")})
	}
	return p.post(ctx, message{ID: m.ID, Error: &refusal{-32601, "method not found"}})
}

// bounded reads a server's output up to a limit.
type bounded struct {
	io.Reader
	left *int // the bytes that the server may still send
}

var errTooMuch = fmt.Errorf("the server sent more than %d MB", maxBytes>>20)

// Read implements [io.Reader].
func (b bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if *b.left -= n; *b.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}
