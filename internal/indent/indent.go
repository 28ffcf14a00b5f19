// Package indent prints JSON from outside in lines, within a bound. Indentation grows with the depth of a value times the
// number of its leaves, so json.Indent alone can make gigabytes of a megabyte.
package indent

import (
	"bytes"
	"encoding/json"
)

// Indentation may add freeGrowth bytes to a text, and growth times its length.
const (
	freeGrowth = 64 << 10
	growth     = 8
)

// JSON returns a JSON text with a line for each member and item, indented by two spaces for each level. If that would add
// more than 64 KiB and eight times the length of the text, or if the text is not JSON, JSON returns it as it is.
func JSON(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	added, level := 0, 0
	decoder := json.NewDecoder(bytes.NewReader(data))
	for token, err := decoder.Token(); err == nil; token, err = decoder.Token() {
		switch token {
		case json.Delim('{'), json.Delim('['):
			level++
		case json.Delim('}'), json.Delim(']'):
			level--
		}
		if added += 2*level + 1; added > freeGrowth+growth*len(data) {
			return data
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return data
	}
	return bytes.TrimSpace(b.Bytes())
}
