package random

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// odd are values that are easy to get wrong.
var odd = rawList(`null true 0 1 -1 1.0 1e2 -12.50e1 1.5 127 128 255 256 300 -129 65536 4294967296 9007199254740993.0
	9223372036854775807 9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 1e30 3.5e38 1e308 1e400 -0.0
	"" "a" "7" "-1" "1.0" "300" "1e2" "true" "\"a\"" "noon" "2026-01-02T15:04:05Z" "2026-06-30T23:59:60Z" "2026-02-30T00:00:00Z"
	"2026-01-02t15:04:05z" "YWJj" "YWJ" "*" "c-1" "1 EUR" "10.0.0.1" "::1%eth0" "red" "\ud800" [] {} [1.0] [null] {"a":1} {"300":1,"x":2}`)

// mutate replaces a value somewhere in a JSON text.
func mutate(random *rand.Rand, text json.RawMessage) json.RawMessage {
	var change func(value any) any
	change = func(value any) any {
		switch v := value.(type) {
		case []any:
			if len(v) > 0 && random.IntN(5) > 0 {
				i := random.IntN(len(v))
				v[i] = change(v[i])
				return v
			}
		case map[string]any:
			if len(v) > 0 && random.IntN(8) > 0 {
				name := pick(random, slices.Sorted(maps.Keys(v)))
				switch random.IntN(10) {
				case 0:
					delete(v, name)
				case 1:
					v[pick(random, []string{"", "7", "-1", "300", "1.0", "x", "c-1", "red", strings.ToUpper(name)})] = v[name]
				default:
					v[name] = change(v[name])
				}
				return v
			}
		}
		return pick(random, odd)
	}
	root := exactly(text).(map[string]any)
	for range 1 + random.IntN(2) {
		if len(root) > 0 {
			name := pick(random, slices.Sorted(maps.Keys(root)))
			root[name] = change(root[name])
		}
	}
	return encode(root)
}

func pick[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// admitted returns a random value by a tool's input schema. Most of them fit.
func (tool *tool) admitted(random *rand.Rand) json.RawMessage {
	root := exactly(tool.Input).(map[string]any)
	return encode(admitter{random, root}.value(root, 4))
}

// admitter makes random values by a schema.
type admitter struct {
	*rand.Rand

	root map[string]any
}

// value returns a value that fits a schema, as far as it understands the schema.
func (a admitter) value(schema map[string]any, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		target := a.root
		if name, ok := strings.CutPrefix(ref, "#/$defs/"); ok {
			target = a.root["$defs"].(map[string]any)[name].(map[string]any)
		}
		return a.value(target, depth)
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list, ok := schema[keyword].([]any); ok {
			choice := pick(a.Rand, list)
			if depth <= 0 {
				choice = list[len(list)-1] // null
			}
			return a.value(choice.(map[string]any), depth)
		}
	}
	if list, ok := schema["enum"].([]any); ok {
		choice := pick(a.Rand, list)
		if number, ok := choice.(json.Number); ok && !strings.ContainsAny(string(number), ".eE") && a.IntN(2) == 0 {
			return number + ".0"
		}
		return choice
	}
	kind, _ := schema["type"].(string)
	if list, ok := schema["type"].([]any); ok {
		kind = pick(a.Rand, list).(string)
		if depth <= 0 && slices.Contains(list, any("null")) {
			kind = "null"
		}
	}
	switch kind {
	case "null":
		return nil
	case "boolean":
		return a.IntN(2) == 0
	case "integer", "number":
		return a.number(schema)
	case "string":
		return a.text(schema)
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := make([]any, a.between(schema, "minItems", "maxItems", depth))
		for i := range list {
			list[i] = a.value(items, depth-1)
		}
		return list
	case "object":
		return a.object(schema, depth)
	}
	return pick(a.Rand, odd)
}

// between returns a small count within bounds.
func (a admitter) between(schema map[string]any, low, high string, depth int) int {
	count := a.IntN(3)
	if depth <= 0 {
		count = 0
	}
	if n, ok := bound(schema, low); ok {
		count = max(count, int(n))
	}
	if n, ok := bound(schema, high); ok {
		count = min(count, int(n))
	}
	return count
}

func bound(schema map[string]any, keyword string) (float64, bool) {
	number, ok := schema[keyword].(json.Number)
	if !ok {
		return 0, false
	}
	value, err := number.Float64()
	return value, err == nil
}

// number returns a number: a bound, or one of those that are easy to get wrong.
func (a admitter) number(schema map[string]any) any {
	var list []any
	for _, keyword := range []string{"minimum", "maximum", "multipleOf", "exclusiveMaximum"} {
		if number, ok := schema[keyword].(json.Number); ok {
			list = append(list, number)
		}
	}
	for _, literal := range odd {
		if c := literal[0]; c == '-' || '0' <= c && c <= '9' {
			list = append(list, literal)
		}
	}
	for range 20 {
		literal := pick(a.Rand, list)
		value, err := strconv.ParseFloat(string(encode(literal)), 64)
		low, hasLow := bound(schema, "minimum")
		high, hasHigh := bound(schema, "maximum")
		if err != nil || (!hasLow || low <= value) && (!hasHigh || value <= high) {
			return literal
		}
	}
	return 1
}

// text returns a string that fits a pattern or a format, if it knows one.
func (a admitter) text(schema map[string]any) any {
	var fit []any
	pattern, hasPattern := schema["pattern"].(string)
	format, hasFormat := schema["format"].(string)
	for _, v := range variants {
		if hasPattern && v.tag == "pattern="+pattern || hasFormat && strings.HasPrefix(v.tag, "format="+format) {
			for _, sample := range rawList(v.samples) {
				fit = append(fit, sample)
			}
		}
	}
	if len(fit) > 0 && a.IntN(3) > 0 {
		return pick(a.Rand, fit)
	}
	for _, literal := range odd {
		var text string
		if json.Unmarshal(literal, &text) != nil || string(literal) == "null" {
			continue
		}
		if hasPattern {
			if matched, err := regexp.MatchString(pattern, text); err != nil || !matched {
				continue
			}
		}
		fit = append(fit, literal)
	}
	if len(fit) == 0 {
		return "7"
	}
	return pick(a.Rand, fit)
}

func (a admitter) object(schema map[string]any, depth int) any {
	object := map[string]any{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || depth > 0 && a.IntN(2) == 0 {
			object[name] = a.value(properties[name].(map[string]any), depth-1)
		}
	}
	if depth <= 0 {
		return object
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok && len(properties) == 0 {
		name := any(pick(a.Rand, []string{"", "a", "7", "ä b"}))
		if names, ok := schema["propertyNames"].(map[string]any); ok {
			name = a.value(names, 0)
		}
		if text, ok := name.(string); ok {
			object[text] = a.value(values, depth-1)
		}
	}
	patterns, _ := schema["patternProperties"].(map[string]any)
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		if name, ok := a.text(map[string]any{"pattern": pattern}).(json.RawMessage); ok {
			var text string
			if json.Unmarshal(name, &text) == nil {
				object[text] = a.value(patterns[pattern].(map[string]any), depth-1)
			}
		}
	}
	return object
}
