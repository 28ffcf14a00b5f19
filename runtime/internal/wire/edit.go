package wire

import (
	"encoding/json"
	"errors"
	"slices"
)

// Edit sets or deletes one member of a message. The zero value is not a valid edit. Each of several edits sees the
// changes of the edits before it.
type Edit struct {
	path  []string
	value json.RawMessage // nil deletes the member
}

// Set returns an edit that sets the member at a path. It creates objects on the path that are
// missing or null.
func Set(value json.RawMessage, path ...string) Edit { return Edit{path, value} }

// Delete returns an edit that deletes the member at a path.
func Delete(path ...string) Edit { return Edit{path: path} }

var errNoObject = errors.New("wire: a member of a value that is not an object cannot be set")

// Edited applies edits to the message. It returns a copy if there are edits. All other names and
// values keep their bytes, so that a message does not grow on its way.
func (m *Message) Edited(edits ...Edit) ([]byte, error) { return m.whole.Edited(edits...) }

// Edited applies edits to the JSON of the object. It returns a copy if there are edits.
func (o *Object) Edited(edits ...Edit) ([]byte, error) {
	if len(edits) == 0 {
		return o.Raw(), nil
	}
	return o.appendEdited(make([]byte, 0, len(o.Raw())+addedBytes(edits)), edits, 0)
}

// Without returns the object without the named member.
func (o *Object) Without(name string) *Object {
	if !o.Has(name) {
		return o
	}
	data, err := o.Edited(Delete(name))
	if err != nil { // only Set fails
		return o
	}
	return NewObject(data)
}

// addedBytes returns the number of bytes by which edits can lengthen an object.
func addedBytes(edits []Edit) (size int) {
	for _, e := range edits {
		size += len(e.value)
		for _, name := range e.path {
			size += len(name) + len(`"":{},`)
		}
	}
	return size
}

// appendEdited appends the object with the edits whose paths lead into it. depth is the number of
// names on the way to it. If the object is nil, an edit that sets a member creates it.
func (o *Object) appendEdited(to []byte, edits []Edit, depth int) (_ []byte, err error) {
	switch raw := o.Raw(); {
	case o.IsObject():
	case !hasSet(edits):
		return append(to, raw...), nil
	case len(raw) > 0 && string(raw) != "null":
		return nil, errNoObject
	default:
		o = new(Object)
	}
	to = append(to, '{')
	begun := len(to)
	for i := range o.members {
		m := &o.members[i]
		if to, err = m.appendEdited(to, begun, selectEdits(string(m.name), edits, depth), depth); err != nil {
			return nil, err
		}
	}
	for i, e := range edits {
		name := e.path[depth]
		mine := selectEdits(name, edits, depth)
		if o.Has(name) || !hasSet(mine) || slices.ContainsFunc(edits[:i], func(e Edit) bool { return e.path[depth] == name }) {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		fresh := member{quoted: quoted}
		if to, err = fresh.appendEdited(to, begun, mine, depth); err != nil {
			return nil, err
		}
	}
	return append(to, '}'), nil
}

// appendEdited appends a member with its edits. It appends a comma first, unless the member is the
// first one after begun.
func (m *member) appendEdited(to []byte, begun int, edits []Edit, depth int) ([]byte, error) {
	inner := edits
	for i, e := range edits {
		if len(e.path) == depth+1 { // it undoes those before
			m, inner = &member{quoted: m.quoted, value: e.value}, edits[i+1:]
		}
	}
	if m.value == nil && !hasSet(inner) {
		return to, nil // deleted
	}
	if len(to) > begun {
		to = append(to, ',')
	}
	to = append(append(to, m.quoted...), ':')
	if len(inner) > 0 {
		return m.object().appendEdited(to, inner, depth+1)
	}
	return append(to, m.value...), nil
}

func hasSet(edits []Edit) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.value != nil })
}

// selectEdits returns the edits whose path continues with a name.
func selectEdits(name string, edits []Edit, depth int) (mine []Edit) {
	for _, e := range edits {
		if e.path[depth] == name {
			mine = append(mine, e)
		}
	}
	return mine
}

// JoinArray returns the array of values, which keep their bytes.
func JoinArray(values []json.RawMessage) json.RawMessage {
	array := []byte{'['}
	for i, value := range values {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, value...)
	}
	return append(array, ']')
}
