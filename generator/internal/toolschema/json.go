package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// node is a JSON value with its position. It keeps the order of members.
type node struct {
	offset  int
	value   any // nil, bool, json.Number or string; a json.Delim for an object or array
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

// get returns a member of an object, or nil.
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

// text returns the value of a string. ok is false if n is not a string.
func (n *node) text() (s string, ok bool) {
	if n == nil {
		return "", false
	}
	s, ok = n.value.(string)
	return s, ok
}

// equals reports whether n is the given string, boolean or null.
func (n *node) equals(value any) bool { return n != nil && n.kind == scalar && n.value == value }

// compactJSON returns the value as JSON on one line, with members in their original order.
func (n *node) compactJSON() string {
	switch n.kind {
	case object:
		parts := make([]string, len(n.members))
		for i, m := range n.members {
			parts[i] = words.QuoteJSON(m.name) + ":" + m.value.compactJSON()
		}
		return "{" + strings.Join(parts, ",") + "}"
	case array:
		parts := make([]string, len(n.items))
		for i, item := range n.items {
			parts[i] = item.compactJSON()
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if s, ok := n.value.(string); ok {
		return words.QuoteJSON(s)
	}
	if n.value == nil {
		return "null"
	}
	return fmt.Sprint(n.value)
}

// describeKind describes the type of a value, for messages.
func (n *node) describeKind() string {
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

// maxDepth is the maximum nesting depth of values. Real schemas are far below it. It protects the
// stack from hostile files.
const maxDepth = 500

// syntaxError reports text that is not JSON.
type syntaxError struct {
	offset  int
	message string
}

func (e *syntaxError) Error() string { return e.message }

// parseValues parses the JSON values of a file, one after another.
func parseValues(file []byte) ([]*node, error) {
	text := bytes.TrimPrefix(file, []byte("\ufeff"))
	p := &parser{text: text, shift: len(file) - len(text), d: json.NewDecoder(bytes.NewReader(text))}
	p.d.UseNumber()
	if at := findInvalidUTF8(text); at >= 0 {
		return nil, &syntaxError{at + p.shift, "the file is not UTF-8"}
	}
	var values []*node
	for {
		value, err := p.parseValue(0)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, p.newSyntaxError(err)
		}
		values = append(values, value)
	}
}

func findInvalidUTF8(text []byte) int {
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
	shift int // the length of the text before
	d     *json.Decoder
}

// nextToken returns the next token and its offset, after any separators.
func (p *parser) nextToken() (json.Token, int, error) {
	offset := int(p.d.InputOffset())
	for offset < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[offset]) >= 0 {
		offset++
	}
	t, err := p.d.Token()
	return t, offset + p.shift, err
}

func (p *parser) parseValue(depth int) (*node, error) {
	t, offset, err := p.nextToken()
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
			item, err := p.parseValue(depth + 1)
			if err != nil {
				return nil, markUnexpectedEOF(err)
			}
			n.items = append(n.items, item)
		}
	} else {
		n.kind = object
		if err := p.parseMembers(n, depth); err != nil {
			return nil, markUnexpectedEOF(err)
		}
	}
	_, _, err = p.nextToken() // the closing bracket
	return n, markUnexpectedEOF(err)
}

func (p *parser) parseMembers(n *node, depth int) error {
	seen := map[string]bool{}
	for p.d.More() {
		key, offset, err := p.nextToken()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder accepts nothing else
		if seen[name] {
			return &syntaxError{offset, "duplicate member " + words.QuoteJSON(name)}
		}
		seen[name] = true
		value, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, value})
	}
	return nil
}

// markUnexpectedEOF turns io.EOF into io.ErrUnexpectedEOF inside a value.
func markUnexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (p *parser) newSyntaxError(err error) *syntaxError {
	var mine *syntaxError
	if errors.As(err, &mine) {
		return mine
	}
	var theirs *json.SyntaxError
	if errors.As(err, &theirs) {
		return &syntaxError{max(int(theirs.Offset)-1, 0) + p.shift, "this is not JSON: " + theirs.Error()}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &syntaxError{len(p.text) + p.shift, "the file ends inside a JSON value"}
	}
	return &syntaxError{int(p.d.InputOffset()) + p.shift, "this is not JSON: " + err.Error()}
}
