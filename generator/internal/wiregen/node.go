package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// node is the part of a JSON Schema that wire types need. Properties keep their order in the file.
type node struct {
	ref        string // the name of the definition
	doc        string
	types      []string
	constant   string // the value of a string constant
	properties []property
	required   map[string]bool
	allOf      []*node
	anyOf      []*node
	items      *node
	values     *node // additionalProperties as a schema
	open       bool  // additionalProperties is true
	closed     bool  // additionalProperties is false
}

type property struct {
	name   string
	schema *node
}

func (n *node) is(kind string) bool { return len(n.types) == 1 && n.types[0] == kind }

// property returns the schema of a property, or nil.
func (n *node) property(name string) *node {
	for _, p := range n.properties {
		if p.name == name {
			return p.schema
		}
	}
	return nil
}

// parseNode reads a schema. path names it in errors.
func parseNode(path string, raw json.RawMessage) (*node, error) {
	var text struct {
		Ref                  string            `json:"$ref"`
		Description          string            `json:"description"`
		Type                 json.RawMessage   `json:"type"`
		Const                any               `json:"const"`
		Properties           json.RawMessage   `json:"properties"`
		Required             []string          `json:"required"`
		AllOf                []json.RawMessage `json:"allOf"`
		AnyOf                []json.RawMessage `json:"anyOf"`
		Items                json.RawMessage   `json:"items"`
		AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	n := &node{ref: strings.TrimPrefix(text.Ref, "#/$defs/"), doc: text.Description, required: map[string]bool{}}
	n.constant, _ = text.Const.(string)
	if text.Type != nil && json.Unmarshal(text.Type, &n.types) != nil {
		n.types = make([]string, 1)
		if err := json.Unmarshal(text.Type, &n.types[0]); err != nil {
			return nil, fmt.Errorf("%s.type: %w", path, err)
		}
	}
	for _, name := range text.Required {
		n.required[name] = true
	}
	var err error
	if n.allOf, err = parseNodes(path+".allOf", text.AllOf); err != nil {
		return nil, err
	}
	if n.anyOf, err = parseNodes(path+".anyOf", text.AnyOf); err != nil {
		return nil, err
	}
	if text.Items != nil {
		if n.items, err = parseNode(path+"[]", text.Items); err != nil {
			return nil, err
		}
	}
	switch string(text.AdditionalProperties) {
	case "":
	case "true":
		n.open = true
	case "false":
		n.closed = true
	default:
		if n.values, err = parseNode(path+"{}", text.AdditionalProperties); err != nil {
			return nil, err
		}
	}
	if text.Properties == nil {
		return n, nil
	}
	members, err := schema.Members(text.Properties)
	if err != nil {
		return nil, fmt.Errorf("%s.properties: %w", path, err)
	}
	for _, member := range members {
		inner, err := parseNode(path+"."+member.Name, member.Value)
		if err != nil {
			return nil, err
		}
		n.properties = append(n.properties, property{member.Name, inner})
	}
	return n, nil
}

func parseNodes(path string, list []json.RawMessage) ([]*node, error) {
	var nodes []*node
	for i, raw := range list {
		inner, err := parseNode(fmt.Sprintf("%s[%d]", path, i), raw)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, inner)
	}
	return nodes, nil
}
