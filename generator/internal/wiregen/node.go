package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// node is the part of a JSON Schema that wire types need.
type node struct {
	Ref        string     `json:"$ref"`
	Doc        string     `json:"description"`
	Types      typeNames  `json:"type"`
	Const      any        `json:"const"`
	Properties properties `json:"properties"`
	Required   []string   `json:"required"`
	AllOf      []*node    `json:"allOf"`
	AnyOf      []*node    `json:"anyOf"`
	Items      *node      `json:"items"`
	Additional additional `json:"additionalProperties"`
}

func (n *node) is(kind string) bool { return len(n.Types) == 1 && n.Types[0] == kind }

// definition returns the name of the definition that the node refers to, or "".
func (n *node) definition() string { return strings.TrimPrefix(n.Ref, "#/$defs/") }

func (n *node) constant() string {
	text, _ := n.Const.(string)
	return text
}

func (n *node) property(name string) *node {
	i := slices.IndexFunc(n.Properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return n.Properties[i].schema
}

type property struct {
	name   string
	schema *node
}

// properties keep their order in the file.
type properties []property

// UnmarshalJSON implements json.Unmarshaler.
func (p *properties) UnmarshalJSON(data []byte) error {
	members, err := schema.Members(data)
	if err != nil {
		return err
	}
	for _, member := range members {
		inner := &node{}
		if err := json.Unmarshal(member.Value, inner); err != nil {
			return fmt.Errorf("%s: %w", member.Name, err)
		}
		*p = append(*p, property{member.Name, inner})
	}
	return nil
}

type typeNames []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *typeNames) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		return json.Unmarshal(data, (*[]string)(t))
	}
	*t = make(typeNames, 1)
	return json.Unmarshal(data, &(*t)[0])
}

// additional is the value of additionalProperties: a boolean or a schema.
type additional struct {
	open, closed bool
	values       *node
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case "true":
		a.open = true
		return nil
	case "false":
		a.closed = true
		return nil
	}
	return json.Unmarshal(data, &a.values)
}
