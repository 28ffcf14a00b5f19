package tools_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// sampler makes values that a schema is likely to admit. Its users check if the schema does.
type sampler struct {
	random *rand.Rand
	root   map[string]any
}

func (s *sampler) pick(items []any) any { return items[s.random.IntN(len(items))] }

// value makes a value of a schema. Beyond some depth it makes as little as it can.
func (s *sampler) value(schema any, depth int) any {
	node, ok := schema.(map[string]any)
	if !ok || len(node) == 0 || depth > 12 {
		return s.anything()
	}
	if ref, ok := node["$ref"].(string); ok {
		if target := s.follow(ref); target != nil {
			return s.value(target, depth+1)
		}
		return s.anything()
	}
	if enum, ok := node["enum"].([]any); ok && len(enum) > 0 {
		return s.pick(enum)
	}
	if value, ok := node["const"]; ok {
		return value
	}
	var merged any
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := node[keyword].([]any)
		if len(list) > 0 && keyword != "allOf" {
			list = []any{s.pick(list)}
		}
		for _, item := range list {
			merged = join(merged, s.value(item, depth+1))
		}
	}
	if merged != nil {
		if properties, ok := node["properties"]; ok {
			merged = join(merged, s.object(node, properties, depth))
		}
		return merged
	}
	kind := node["type"]
	if kinds, ok := kind.([]any); ok {
		kind = s.pick(kinds)
	}
	switch kind {
	case "null":
		return nil
	case "boolean":
		return s.random.IntN(2) == 0
	case "string":
		return s.text(node)
	case "integer":
		return s.random.IntN(40) - 5
	case "number":
		return []any{0, 1, -2, 2.5, 1e3, 12345.678}[s.random.IntN(6)]
	case "array":
		return s.array(node, depth)
	}
	return s.object(node, node["properties"], depth)
}

// join puts the properties of two objects together.
func join(a, b any) any {
	left, ok := a.(map[string]any)
	right, both := b.(map[string]any)
	if !ok || !both {
		return b
	}
	joined := maps.Clone(right)
	maps.Copy(joined, left)
	return joined
}

func (s *sampler) text(node map[string]any) string {
	switch node["format"] {
	case "date-time":
		return []string{"2026-11-21T12:00:00Z", "2026-11-21T12:00:00.5+02:00"}[s.random.IntN(2)]
	case "uri":
		return "https://example.com/a"
	}
	if node["pattern"] != nil {
		return "00ff99"
	}
	return []string{"", "a", "main", "<ü>", "0123456789"}[s.random.IntN(5)]
}

func (s *sampler) array(node map[string]any, depth int) []any {
	items := []any{}
	if tuple, ok := node["prefixItems"].([]any); ok {
		for _, item := range tuple {
			items = append(items, s.value(item, depth+1))
		}
		return items
	}
	for range s.random.IntN(max(3-depth/2, 1)) {
		items = append(items, s.value(node["items"], depth+1))
	}
	return items
}

func (s *sampler) object(node map[string]any, properties any, depth int) map[string]any {
	object := map[string]any{}
	required, _ := node["required"].([]any)
	known, _ := properties.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if slices.Contains(required, any(name)) || depth < 6 && s.random.IntN(2) == 0 {
			object[name] = s.value(known[name], depth+1)
		}
	}
	for _, name := range required {
		if _, ok := object[name.(string)]; !ok {
			object[name.(string)] = s.anything()
		}
	}
	switch more := node["additionalProperties"]; more {
	case nil:
		if s.random.IntN(4) == 0 {
			object["unnamed"] = s.anything()
		}
	case false:
	default:
		if s.random.IntN(2) == 0 {
			object["more"] = s.value(more, depth+1)
		}
	}
	if patterns, ok := node["patternProperties"].(map[string]any); ok {
		for _, inner := range patterns {
			object["x-more"] = s.value(inner, depth+1)
		}
	}
	return object
}

func (s *sampler) anything() any {
	return []any{nil, true, "text", 3, []any{1, "a"}, map[string]any{"unnamed": 1.5}, json.Number("7")}[s.random.IntN(7)]
}

func (s *sampler) follow(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	var node any = s.root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if step != "" {
			inner, _ := node.(map[string]any)
			node = inner[step]
		}
	}
	return node
}
