package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"sort"
	"strings"
	"unicode/utf8"
)

// node is a JSON value that knows where it stands and in which order its members do.
type node struct {
	offset  int
	value   any // nil, bool, json.Number or string; of an object or an array its token.Token
	kind    kind
	members []member
	items   []*node
}

type kind int

const (
	scalar kind = iota
	object
	array
)

type member struct {
	name  string
	value *node
}

// get is a member of an object, nil where there is none.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// text is the string that a node is; ok is false for what is no string.
func (n *node) text() (s string, ok bool) {
	if n == nil {
		return "", false
	}
	s, ok = n.value.(string)
	return s, ok
}

// is tells whether a node is this string, boolean or null.
func (n *node) is(value any) bool { return n != nil && n.kind == scalar && n.value == value }

// line is the value as JSON on one line, members in their order.
func (n *node) line() string {
	switch n.kind {
	case object:
		parts := make([]string, len(n.members))
		for i, m := range n.members {
			parts[i] = quote(m.name) + ":" + m.value.line()
		}
		return "{" + strings.Join(parts, ",") + "}"
	case array:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.line()
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if s, ok := n.value.(string); ok {
		return quote(s)
	}
	return fmt.Sprint(orNull(n.value))
}

func orNull(value any) any {
	if value == nil {
		return "null"
	}
	return value
}

// quote writes a JSON string without the escapes that only HTML needs.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// what says what a value is, for messages.
func (n *node) what() string {
	switch n.kind {
	case object:
		return "an object"
	case array:
		return "an array"
	}
	switch n.value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case nil:
		return "null"
	}
	return "a number"
}

// maxDepth is how deep values may nest. No schema comes near it, and the reader of a hostile file
// keeps its stack.
const maxDepth = 500

// file is a text with the positions in it.
type file struct {
	name  string
	text  []byte
	lines []int // where each line starts
}

func newFile(name string, text []byte) *file {
	f := &file{name: name, text: text, lines: []int{0}}
	for i, c := range text {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// position is the place of an offset; columns count bytes, as Go's do.
func (f *file) position(offset int) token.Position {
	offset = min(max(offset, 0), len(f.text))
	line := sort.SearchInts(f.lines, offset+1)
	return token.Position{Filename: f.name, Offset: offset, Line: line, Column: offset - f.lines[line-1] + 1}
}

// syntaxError is what is wrong with a text that is not JSON.
type syntaxError struct {
	offset  int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parse reads the JSON values of a text, one after another.
func (f *file) parse() ([]*node, error) {
	text := f.text
	if bom := []byte("\ufeff"); bytes.HasPrefix(text, bom) {
		text = text[len(bom):]
	}
	p := &parser{text: text, shift: len(f.text) - len(text), d: json.NewDecoder(bytes.NewReader(text))}
	p.d.UseNumber()
	if at := firstInvalid(text); at >= 0 {
		return nil, &syntaxError{at + p.shift, "the file is not UTF-8"}
	}
	var values []*node
	for {
		value, err := p.value(0)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, p.explain(err)
		}
		values = append(values, value)
	}
}

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

type parser struct {
	text  []byte
	shift int // what stands before text in the file
	d     *json.Decoder
}

// next is the next token and where it starts: behind what separates it from the last one.
func (p *parser) next() (json.Token, int, error) {
	offset := int(p.d.InputOffset())
	for offset < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[offset]) >= 0 {
		offset++
	}
	t, err := p.d.Token()
	return t, offset + p.shift, err
}

func (p *parser) value(depth int) (*node, error) {
	t, offset, err := p.next()
	if err != nil {
		return nil, err
	}
	n := &node{offset: offset, value: t}
	delim, isDelim := t.(json.Delim)
	if !isDelim {
		return n, nil
	}
	if depth >= maxDepth {
		return nil, &syntaxError{offset, fmt.Sprintf("the values nest deeper than %d", maxDepth)}
	}
	if delim == '[' {
		n.kind = array
		for p.d.More() {
			item, err := p.value(depth + 1)
			if err != nil {
				return nil, cut(err)
			}
			n.items = append(n.items, item)
		}
	} else {
		n.kind = object
		if err := p.object(n, depth); err != nil {
			return nil, cut(err)
		}
	}
	_, _, err = p.next() // the closing bracket
	return n, cut(err)
}

func (p *parser) object(n *node, depth int) error {
	seen := map[string]bool{}
	for p.d.More() {
		key, offset, err := p.next()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder takes nothing else
		if seen[name] {
			return &syntaxError{offset, "the member " + quote(name) + " stands here twice"}
		}
		seen[name] = true
		value, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, value})
	}
	return nil
}

// cut tells the end of the text within a value from that between two.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (p *parser) explain(err error) *syntaxError {
	var mine *syntaxError
	if errors.As(err, &mine) {
		return mine
	}
	var theirs *json.SyntaxError
	if errors.As(err, &theirs) {
		return &syntaxError{max(int(theirs.Offset)-1, 0) + p.shift, "this is not JSON: " + theirs.Error()}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &syntaxError{len(p.text) + p.shift, "the file ends within a JSON value"}
	}
	return &syntaxError{int(p.d.InputOffset()) + p.shift, "this is not JSON: " + err.Error()}
}
