package schemafile

import (
	"bytes"
	"encoding/json"
	"go/token"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// place names a definition, or a property inside it.
type place struct{ definition, property string }

// maxDepth is the maximum nesting depth of a file, ten times that of published ones. The time to
// compare schemas grows with its square.
const maxDepth = 200

// findPlaces finds the positions of definitions and their properties. If a definition has several
// properties with the same name, the first one counts. deepest is the nesting depth.
func findPlaces(name string, text []byte) (found map[place]token.Position, deepest int) {
	w := &walker{text: text, d: json.NewDecoder(bytes.NewReader(text)), lines: diag.IndexLines(name, text), found: map[place]token.Position{}}
	w.walkValue(nil, 0)
	return w.found, w.deepest
}

type walker struct {
	text  []byte
	d     *json.Decoder
	lines *token.File
	found map[place]token.Position

	deepest int
}

// nextToken returns the next token and its offset.
func (w *walker) nextToken() (json.Token, int) {
	offset := int(w.d.InputOffset())
	for offset < len(w.text) && strings.IndexByte(" \t\r\n,:", w.text[offset]) >= 0 {
		offset++
	}
	t, err := w.d.Token()
	if err != nil {
		return nil, offset // the text was parsed before
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
		w.found[at] = w.lines.Position(w.lines.Pos(offset))
	}
}
