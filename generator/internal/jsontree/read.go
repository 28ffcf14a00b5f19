package jsontree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// MaxDepth is how deep values may nest. Real schemas are far below it. It protects the stack from
// hostile files.
const MaxDepth = 500

// Error reports text that is not acceptable JSON. Its text has no position.
type Error struct {
	Pos     token.Position
	Message string
}

func (e *Error) Error() string { return e.Message }

// File holds the values of a file, which stand one after another.
type File struct {
	Values []*Node
	lines  *token.File
}

// Read reads the values of a file. Name is the path for positions. Read refuses members with the
// same name in one object, text that is not UTF-8 and values that nest deeper than maxDepth. It
// accepts a file without values. Its error is an [*Error].
func Read(name string, text []byte, maxDepth int) (*File, error) {
	f := &File{lines: diag.IndexLines(name, text)}
	whole := len(text)
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	r := &reader{text: text, shift: whole - len(text), d: json.NewDecoder(bytes.NewReader(text)), maxDepth: maxDepth}
	r.d.UseNumber()
	err := r.checkUTF8()
	for err == nil {
		var value *Node
		r.start = int(r.d.InputOffset())
		if value, err = r.readValue(0); err == nil {
			f.Values = append(f.Values, value)
		}
	}
	if errors.Is(err, io.EOF) {
		return f, nil
	}
	fault := r.locate(err)
	return nil, &Error{f.Position(fault.offset), fault.message}
}

// Parse reads a text that holds one value. Its error has no position.
func Parse(text []byte) (*Node, error) {
	f, err := Read("", text, MaxDepth)
	switch {
	case err != nil:
		return nil, err
	case len(f.Values) == 0:
		return nil, errors.New("there is no JSON value")
	case len(f.Values) > 1:
		return nil, errors.New("there is text after the JSON value")
	}
	return f.Values[0], nil
}

// Position returns the line and column of an offset.
func (f *File) Position(offset int) token.Position { return f.lines.Position(f.lines.Pos(offset)) }

// reader reads one file.
type reader struct {
	text     []byte
	shift    int // the length of the text before
	start    int // the offset of the current value of the file
	d        *json.Decoder
	maxDepth int
}

// fault is a mistake at an offset.
type fault struct {
	offset  int
	message string
}

func (f *fault) Error() string { return f.message }

func (r *reader) checkUTF8() error {
	for i := 0; i < len(r.text); {
		c, size := utf8.DecodeRune(r.text[i:])
		if c == utf8.RuneError && size == 1 {
			return &fault{i + r.shift, "the file is not UTF-8"}
		}
		i += size
	}
	return nil
}

// nextToken returns the next token and its offset, after any separators.
func (r *reader) nextToken() (json.Token, int, error) {
	offset := int(r.d.InputOffset())
	for offset < len(r.text) && strings.IndexByte(" \t\r\n,:", r.text[offset]) >= 0 {
		offset++
	}
	t, err := r.d.Token()
	return t, offset + r.shift, err
}

func (r *reader) readValue(depth int) (*Node, error) {
	t, offset, err := r.nextToken()
	if err != nil {
		return nil, err
	}
	n := &Node{Offset: offset, Value: t}
	switch v := t.(type) {
	case bool:
		n.Kind = Boolean
	case json.Number:
		n.Kind = Number
	case string:
		n.Kind = String
	case json.Delim:
		n.Value = nil
		if depth >= r.maxDepth {
			return nil, &fault{offset, fmt.Sprintf("the values nest deeper than %d", r.maxDepth)}
		}
		if v == '[' {
			err = r.readItems(n, depth+1)
		} else {
			err = r.readMembers(n, depth+1)
		}
		if err == nil {
			_, _, err = r.nextToken() // the closing bracket
		}
	}
	if errors.Is(err, io.EOF) { // inside a value
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (r *reader) readItems(n *Node, depth int) error {
	n.Kind = Array
	for r.d.More() {
		item, err := r.readValue(depth)
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
	return nil
}

func (r *reader) readMembers(n *Node, depth int) error {
	n.Kind = Object
	seen := map[string]bool{}
	for r.d.More() {
		key, offset, err := r.nextToken()
		if err != nil {
			return err
		}
		name, _ := key.(string) // the decoder accepts nothing else
		if seen[name] {
			return &fault{offset, "duplicate member " + words.QuoteJSON(name)}
		}
		seen[name] = true
		value, err := r.readValue(depth)
		if err != nil {
			return err
		}
		n.Members = append(n.Members, Member{name, value, offset})
	}
	return nil
}

// locate finds the place of an error.
func (r *reader) locate(err error) *fault {
	var mine *fault
	if errors.As(err, &mine) {
		return mine
	}
	// The decoder's tokens do not know their offset, so look for the mistake again.
	var theirs *json.SyntaxError
	if errors.As(json.Unmarshal(r.text[r.start:], new(json.RawMessage)), &theirs) && r.start+int(theirs.Offset) < len(r.text) {
		return &fault{r.start + int(theirs.Offset) - 1 + r.shift, "this is not JSON: " + theirs.Error()}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &fault{len(r.text) + r.shift, "the file ends inside a JSON value"}
	}
	return &fault{int(r.d.InputOffset()) + r.shift, "this is not JSON: " + err.Error()}
}
