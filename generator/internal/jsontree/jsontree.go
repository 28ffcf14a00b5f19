// Package jsontree reads JSON into trees that keep the order of members, numbers as written and the
// place of each value, and writes them.
package jsontree

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Node is a JSON value. The zero Node is null.
type Node struct {
	Kind Kind
	// Value is the string, json.Number or bool of a scalar, and nil otherwise.
	Value   any
	Members []Member // of an object
	Items   []*Node  // of an array
	// Offset is the place in the file, in bytes. It is 0 for a node that was not read.
	Offset int
}

// Member is a member of an object.
type Member struct {
	Name  string
	Value *Node
	// Offset is the place of the name. See [Node].
	Offset int
}

// Kind is the kind of a value.
type Kind int

// The kinds of values.
const (
	Null Kind = iota
	Boolean
	Number
	String
	Array
	Object
)

// String describes a value of the kind, for messages: "a string".
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// NewString returns a string.
func NewString(s string) *Node { return &Node{Kind: String, Value: s} }

// NewArray returns an array.
func NewArray(items ...*Node) *Node { return &Node{Kind: Array, Items: items} }

// NewObject returns an object.
func NewObject(members ...Member) *Node { return &Node{Kind: Object, Members: members} }

// Get returns a member of an object. It returns nil if n has no such member, is nil or is not an object.
func (n *Node) Get(name string) *Node {
	if n == nil {
		return nil
	}
	if i := n.index(name); i >= 0 {
		return n.Members[i].Value
	}
	return nil
}

// Step returns the member or the item that a step of a JSON pointer leads to, or nil.
func (n *Node) Step(step string) *Node {
	if i, err := strconv.Atoi(step); n.Kind == Array && err == nil && i >= 0 && i < len(n.Items) {
		return n.Items[i]
	}
	return n.Get(step)
}

// Follow returns the value that a reference in the root n points to, such as #/$defs/T, or nil.
func (n *Node) Follow(reference string) *Node {
	pointer, local := strings.CutPrefix(reference, "#")
	steps := strings.Split(pointer, "/")
	if !local || steps[0] != "" {
		return nil // another document, or an anchor
	}
	for _, step := range steps[1:] {
		if n = n.Step(UnescapeStep(step)); n == nil {
			return nil
		}
	}
	return n
}

// UnescapeStep returns the name that a step of a reference stands for.
func UnescapeStep(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
}

// ItemsOf returns the items of a member that is an array.
func (n *Node) ItemsOf(name string) []*Node {
	if list := n.Get(name); list != nil {
		return list.Items
	}
	return nil
}

// MembersOf returns the members of a member that is an object.
func (n *Node) MembersOf(name string) []Member {
	if object := n.Get(name); object != nil {
		return object.Members
	}
	return nil
}

// Without returns a copy of an object that lacks some members. The values are not copied.
func (n *Node) Without(names ...string) *Node {
	return NewObject(slices.DeleteFunc(slices.Clone(n.Members), func(m Member) bool { return slices.Contains(names, m.Name) })...)
}

// Set replaces a member of an object in its place, or adds it as the last one.
func (n *Node) Set(name string, value *Node) {
	if i := n.index(name); i >= 0 {
		n.Members[i].Value = value
		return
	}
	n.Members = append(n.Members, Member{Name: name, Value: value})
}

func (n *Node) index(name string) int {
	return slices.IndexFunc(n.Members, func(m Member) bool { return m.Name == name })
}

// Text returns the value of a string. ok is false if n is nil or not a string.
func (n *Node) Text() (s string, ok bool) {
	if n == nil {
		return "", false
	}
	s, ok = n.Value.(string)
	return s, ok
}

// Is reports whether n is the given string, boolean, json.Number or null. A number must be written
// in the same way.
func (n *Node) Is(value any) bool {
	return n != nil && n.Kind != Array && n.Kind != Object && n.Value == value
}
