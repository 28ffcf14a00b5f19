package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// largestID limits integer IDs. An SDK that reads numbers as floats would answer a larger one under
// another ID.
const largestID = 1 << 53

// ValidID reports whether an SDK returns an ID unchanged. The ID must not be empty.
func ValidID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	n, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil && n >= -largestID && n <= largestID
}

// IDKey returns the same key for every JSON spelling of an ID.
func IDKey(id json.RawMessage) string {
	if text, ok := Text(id); ok {
		return "text " + text
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return strconv.FormatInt(n, 10) // -0 is 0
	}
	f, err := strconv.ParseFloat(string(id), 64)
	switch {
	case err != nil:
		return string(id)
	case f == math.Trunc(f) && math.Abs(f) <= largestID:
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// longestBeginning bounds how much of a message CutID reads.
const longestBeginning = 64 << 10

// CutID returns the ID of a request from the beginning of its text. It returns nil if the beginning lacks the ID or the
// method. Most clients write both before the params.
func CutID(beginning []byte) json.RawMessage {
	beginning = beginning[:min(len(beginning), longestBeginning)]
	d := json.NewDecoder(bytes.NewReader(TrimMark(beginning)))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return nil
	}
	var id json.RawMessage
	for hasMethod := false; id == nil || !hasMethod; {
		name, err := d.Token()
		if err != nil || !d.More() {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		switch name {
		case "id":
			id = value
		case "method":
			hasMethod = true
		}
	}
	if !ValidID(id) {
		return nil
	}
	return id
}
