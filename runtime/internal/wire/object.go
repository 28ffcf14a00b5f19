package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Object is a JSON object whose members are found when the first of them is
// asked for. Any other JSON value, and a nil Object, has no members. An Object is not
// safe for concurrent use.
type Object struct {
	raw      json.RawMessage
	members  []member
	indexed  bool
	isObject bool
	repeated int // 1 plus the place of the first member that stands there already
}

// member is one member of an object.
type member struct {
	quoted []byte // its name as it came
	name   []byte // without escapes
	value  json.RawMessage
	inner  *Object // of the value, once it was asked for
}

// NewObject returns the object of valid JSON, which it keeps.
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

// Get returns the value at a path of members, nil if there is none. Of a member that stands
// twice it returns the last value.
func (o *Object) Get(path ...string) json.RawMessage {
	found := o.at(path)
	if found == nil {
		return nil
	}
	return found.value
}

// Has reports whether there is a value at a path of members.
func (o *Object) Has(path ...string) bool { return o.at(path) != nil }

// Object returns the value at a path of members as an object, nil if there is none.
func (o *Object) Object(path ...string) *Object {
	found := o.at(path)
	if found == nil {
		return nil
	}
	return found.object()
}

// Text returns the string at a path of members. It returns false if there is no string.
func (o *Object) Text(path ...string) (string, bool) { return Text(o.Get(path...)) }

// All returns the members by name, nil if the value is not an object.
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

// Fault tells what could be read in two ways: a member that stands twice, or one
// whose name differs from a known one in case alone. Readers of JSON differ in what
// they make of these. It returns "" if there is no such member.
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

func (o *Object) at(path []string) *member {
	for i, name := range path {
		found := o.find(name)
		if found == nil || i == len(path)-1 {
			return found
		}
		o = found.object()
	}
	return nil
}

func (o *Object) find(name string) *member {
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

// textOrNull reads a member that must be a string. It leaves text alone if the member is
// absent or null.
func (o *Object) textOrNull(name string, text *string) (ok bool) {
	raw := o.Get(name)
	if raw == nil || string(raw) == "null" {
		return true
	}
	*text, ok = Text(raw)
	return ok
}

// index finds the members. Every message passes here: a json.Decoder, token by token,
// takes six times as long as all the rest of reading a message.
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
	o.members = make([]member, 0, 4) // what nearly every message has
	for i = skipSpace(data, i+1); i < len(data) && data[i] == '"'; {
		end := skipText(data, i)
		m := member{quoted: data[i:end], name: unescape(data[i:end])}
		i = skipSpace(data, skipSpace(data, end)+1) // over the colon
		end = skipValue(data, i)
		m.value = slices.Clip(bytes.TrimRight(data[i:end], " \t\r\n"))
		o.members = append(o.members, m)
		i = skipSpace(data, min(end+1, len(data))) // over the comma
	}
	o.repeated = firstRepeated(o.members)
}

// firstRepeated returns 1 plus the place of the first member whose name stands before it
// already, 0 if there is none.
func firstRepeated(members []member) int {
	const few = 16 // so many are compared with each other
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

// unescape returns what a quoted string says.
func unescape(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // it is valid
	return []byte(text)
}

// Text reads a JSON string. It returns false for any other value.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	return string(unescape(raw)), true
}

// skipSpace returns where the white space from i on ends.
func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// skipText returns where the string that begins at i ends.
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

// skipValue returns where the value that begins at i ends: at the comma or the
// brace behind it.
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

// Depth returns how many levels of objects and arrays valid JSON has.
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

// CountValues counts the values in valid JSON, up to one more than most. Each but the first follows a comma
// or is the first in an object or array. An empty one counts as if there were a value in it.
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

// Brief cuts a name from outside to what a person can read in a message.
func Brief(name string) string {
	const longest = 64
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	return name
}

func quote(name string) string { return `"` + Brief(name) + `"` }
