package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/text"
)

// Object is a JSON object. It finds its members when they are first needed. Any other JSON value,
// and a nil Object, has no members. An Object is not safe for concurrent use.
type Object struct {
	raw      json.RawMessage
	members  []member
	indexed  bool
	isObject bool
	repeated int // 1 plus the index of the first duplicate member; 0 if there is none
}

// member is one member of an object.
type member struct {
	quoted []byte // the name with quotes and escapes
	name   []byte // the name without them
	value  json.RawMessage
	inner  *Object // the value as an object, once needed
}

// NewObject returns the object for valid JSON. It keeps data.
func NewObject(data json.RawMessage) *Object { return &Object{raw: bytes.TrimSpace(data)} }

// Raw returns the bytes of the value.
func (o *Object) Raw() json.RawMessage {
	if o == nil {
		return nil
	}
	return o.raw
}

// IsObject reports whether the value is an object.
func (o *Object) IsObject() bool {
	o.index()
	return o != nil && o.isObject
}

// Get returns the value at a path of members, or nil. If a member occurs twice, it returns the last
// value.
func (o *Object) Get(path ...string) json.RawMessage {
	found := o.findPath(path)
	if found == nil {
		return nil
	}
	return found.value
}

// Has reports whether there is a value at a path of members.
func (o *Object) Has(path ...string) bool { return o.findPath(path) != nil }

// Object returns the value at a path of members as an object, or nil if there is no value.
func (o *Object) Object(path ...string) *Object {
	found := o.findPath(path)
	if found == nil {
		return nil
	}
	return found.object()
}

// Text returns the string at a path of members. It returns false if there is no string.
func (o *Object) Text(path ...string) (string, bool) { return Text(o.Get(path...)) }

// All returns the members by name, or nil if the value is not an object.
func (o *Object) All() map[string]json.RawMessage {
	if !o.IsObject() {
		return nil
	}
	all := make(map[string]json.RawMessage, len(o.members))
	for i := range o.members {
		all[string(o.members[i].name)] = o.members[i].value
	}
	return all
}

// Fault describes the first member that readers of JSON may read in two ways: a duplicate, or a
// name that differs from a known name only in case. It returns "" if there is no such member.
func (o *Object) Fault(known []string) string {
	o.index()
	if o == nil {
		return ""
	}
	for i := range o.members {
		m := &o.members[i]
		if i+1 == o.repeated {
			return "a member stands twice: " + quote(string(m.name))
		}
		if slices.ContainsFunc(known, func(k string) bool { return k == string(m.name) }) {
			continue
		}
		name := string(m.name)
		if k := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); k >= 0 {
			return quote(name) + " is written " + quote(known[k])
		}
	}
	return ""
}

func (o *Object) findPath(path []string) *member {
	for i, name := range path {
		found := o.findMember(name)
		if found == nil || i == len(path)-1 {
			return found
		}
		o = found.object()
	}
	return nil
}

func (o *Object) findMember(name string) *member {
	o.index()
	if o == nil {
		return nil
	}
	for i := len(o.members) - 1; i >= 0; i-- {
		if string(o.members[i].name) == name {
			return &o.members[i]
		}
	}
	return nil
}

func (m *member) object() *Object {
	if m.inner == nil {
		m.inner = &Object{raw: m.value}
	}
	return m.inner
}

// textOrNull reads a member that must be a string. It leaves text unchanged if the member is absent
// or null.
func (o *Object) textOrNull(name string, text *string) (ok bool) {
	raw := o.Get(name)
	if raw == nil || string(raw) == "null" {
		return true
	}
	*text, ok = Text(raw)
	return ok
}

// index finds the members. It runs for every message, so it scans bytes: a json.Decoder, token by
// token, takes six times as long as all the rest of reading a message.
func (o *Object) index() {
	if o == nil || o.indexed {
		return
	}
	o.indexed = true
	data := o.raw
	i := skipSpace(data, 0)
	if i == len(data) || data[i] != '{' {
		return
	}
	o.isObject = true
	o.members = make([]member, 0, 4) // enough for nearly every message
	for i = skipSpace(data, i+1); i < len(data) && data[i] == '"'; {
		end := skipText(data, i)
		m := member{quoted: data[i:end], name: unescape(data[i:end])}
		i = skipSpace(data, skipSpace(data, end)+1) // skip the colon
		end = skipValue(data, i)
		m.value = slices.Clip(bytes.TrimRight(data[i:end], " \t\r\n"))
		o.members = append(o.members, m)
		i = skipSpace(data, min(end+1, len(data))) // skip the comma
	}
	o.repeated = firstRepeated(o.members)
}

// firstRepeated returns 1 plus the index of the first duplicate member, or 0.
func firstRepeated(members []member) int {
	const few = 16 // up to this many are compared with each other
	if len(members) <= few {
		for i := range members {
			for j := range i {
				if bytes.Equal(members[i].name, members[j].name) {
					return i + 1
				}
			}
		}
		return 0
	}
	names := make(map[string]bool, len(members))
	for i := range members {
		if names[string(members[i].name)] {
			return i + 1
		}
		names[string(members[i].name)] = true
	}
	return 0
}

// unescape returns the text of a quoted string.
func unescape(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid
	return []byte(text)
}

// Text decodes a JSON string. It returns false for any other value.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return string(unescape(raw)), true
}

// skipSpace returns the index after the white space at i.
func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// skipText returns the index after the string that begins at i.
func skipText(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return len(data)
}

// skipValue returns the index after the value that begins at i: the next comma or closing bracket.
func skipValue(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = skipText(data, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// Depth returns the nesting depth of objects and arrays in valid JSON.
func Depth(data []byte) (most int) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = skipText(data, i) - 1
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

// CountValues counts the values in valid JSON, up to most+1. Each value but the first follows a
// comma or an opening bracket. An empty object or array counts as if it had a value.
func CountValues(data []byte, most int) int {
	count := 1
	for i := 0; i < len(data) && count <= most; i++ {
		switch data[i] {
		case '"':
			i = skipText(data, i) - 1
		case ',', '{', '[':
			count++
		}
	}
	return count
}

// CountMembers counts the members of an object, up to most+1. An empty object counts as one member. It
// returns 0 for any other value. The text need not be valid JSON.
func CountMembers(data []byte, most int) int {
	i := skipSpace(data, 0)
	if i == len(data) || data[i] != '{' {
		return 0
	}
	count, depth := 1, 0
	for i++; i < len(data) && depth >= 0 && count <= most; i++ {
		switch data[i] {
		case '"':
			i = skipText(data, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				count++
			}
		}
	}
	return count
}

// ShortenName shortens a name from outside for a message that a person reads.
func ShortenName(name string) string {
	const longest = 64
	return text.Shorten(name, longest)
}

func quote(name string) string { return `"` + ShortenName(name) + `"` }
