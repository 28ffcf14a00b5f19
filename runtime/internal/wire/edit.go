package wire

import (
	"encoding/json"
	"errors"
	"slices"
)

// Edit sets or deletes one member of a message. Its zero value is not an edit.
type Edit struct {
	path  []string
	value json.RawMessage // nil deletes the member
}

// Set returns the edit that sets the member at a path. The objects on the way are
// made if they are missing or null.
func Set(value json.RawMessage, path ...string) Edit { return Edit{path, value} }

// Delete returns the edit that deletes the member at a path.
func Delete(path ...string) Edit { return Edit{path: path} }

var errNoObject = errors.New("wire: a member of a value that is not an object cannot be set")

// Edited returns the message with its edits, in a copy if there are any. Every value that
// stays, and every name, keeps its bytes: a message must not grow on its way.
func (m *Message) Edited(edits ...Edit) ([]byte, error) { return m.whole.Edited(edits...) }

// Edited returns the JSON of the object with its edits, in a copy if there are any.
func (o *Object) Edited(edits ...Edit) ([]byte, error) {
	if len(edits) == 0 {
		return o.Raw(), nil
	}
	return o.appendEdited(make([]byte, 0, len(o.Raw())+spare(edits)), edits, 0)
}

// Without returns the object without a member.
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

// spare is how much longer edits can make an object.
func spare(edits []Edit) (size int) {
	for _, e := range edits {
		size += len(e.value)
		for _, name := range e.path {
			size += len(name) + len(`"":{},`)
		}
	}
	return size
}

// appendEdited appends the object with those edits whose paths lead into it; depth is how many
// names of the paths lead to it. A nil object is made if an edit sets a member of it.
func (o *Object) appendEdited(to []byte, edits []Edit, depth int) (_ []byte, err error) {
	switch raw := o.Raw(); {
	case o.IsObject():
	case !sets(edits):
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
		if to, err = m.appendEdited(to, begun, editsOf(string(m.name), edits, depth), depth); err != nil {
			return nil, err
		}
	}
	for i, e := range edits {
		name := e.path[depth]
		mine := editsOf(name, edits, depth)
		if o.Has(name) || !sets(mine) || slices.ContainsFunc(edits[:i], func(e Edit) bool { return e.path[depth] == name }) {
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

// appendEdited appends a member with the edits of it, and a comma before it unless it is the
// first behind begun.
func (m *member) appendEdited(to []byte, begun int, edits []Edit, depth int) ([]byte, error) {
	value, inner := m.value, false
	if len(edits) > 0 {
		last := edits[len(edits)-1]
		if inner = len(last.path) > depth+1; !inner {
			value = last.value
		}
	}
	if value == nil && !inner {
		return to, nil // deleted
	}
	if len(to) > begun {
		to = append(to, ',')
	}
	to = append(append(to, m.quoted...), ':')
	if inner {
		return m.object().appendEdited(to, edits, depth+1)
	}
	return append(to, value...), nil
}

func sets(edits []Edit) bool {
	return slices.ContainsFunc(edits, func(e Edit) bool { return e.value != nil })
}

// editsOf returns the edits whose path goes by a name.
func editsOf(name string, edits []Edit, depth int) (mine []Edit) {
	for _, e := range edits {
		if e.path[depth] == name {
			mine = append(mine, e)
		}
	}
	return mine
}
