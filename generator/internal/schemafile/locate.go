package schemafile

import (
	"bytes"
	"encoding/json"
	"go/token"
	stdsort "sort"
	"strings"
)

// place names a definition, or a property somewhere in it.
type place struct{ definition, property string }

// maxDepth is how deep the values of a file may nest: ten times what published ones do. Comparing
// schemas takes a time that grows with the square of it.
const maxDepth = 200

// findPlaces finds where the definitions of a schema and their properties stand; of properties of the same
// name in a definition, the first. deepest is how deep the values nest.
func findPlaces(name string, text []byte) (found map[place]token.Position, deepest int) {
	w := &walker{text: text, d: json.NewDecoder(bytes.NewReader(text)), lines: newLines(name, text), found: map[place]token.Position{}}
	w.walkValue(nil, 0)
	return w.found, w.deepest
}

type walker struct {
	text  []byte
	d     *json.Decoder
	lines *lines
	found map[place]token.Position

	deepest int
}

// nextToken is the next token and where it starts.
func (w *walker) nextToken() (json.Token, int) {
	offset := int(w.d.InputOffset())
	for offset < len(w.text) && strings.IndexByte(" \t\r\n,:", w.text[offset]) >= 0 {
		offset++
	}
	t, err := w.d.Token()
	if err != nil {
		return nil, offset // the text has been parsed before
	}
	return t, offset
}

func (w *walker) walkValue(path []string, depth int) {
	w.deepest = max(w.deepest, depth)
	t, _ := w.nextToken()
	switch t {
	case json.Delim('['):
		for w.d.More() {
			w.walkValue(path, depth+1)
		}
		w.nextToken()
	case json.Delim('{'):
		for w.d.More() {
			key, offset := w.nextToken()
			name, _ := key.(string)
			w.notePlace(path, name, offset)
			w.walkValue(append(path, name), depth+1)
		}
		w.nextToken()
	}
}

func (w *walker) notePlace(path []string, name string, offset int) {
	if len(path) == 0 || path[0] != "$defs" && path[0] != "definitions" {
		return
	}
	at := place{definition: name}
	if len(path) > 1 {
		if path[len(path)-1] != "properties" {
			return
		}
		at = place{path[1], name}
	}
	if _, ok := w.found[at]; !ok {
		w.found[at] = w.lines.position(offset)
	}
}

// lines are where the lines of a text start.
type lines struct {
	name   string
	starts []int
}

func newLines(name string, text []byte) *lines {
	l := &lines{name: name, starts: []int{0}}
	for i, c := range text {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// position is the place of an offset; columns count bytes, as Go's do.
func (l *lines) position(offset int) token.Position {
	line := stdsort.SearchInts(l.starts, offset+1)
	return token.Position{Filename: l.name, Offset: offset, Line: line, Column: offset - l.starts[line-1] + 1}
}
