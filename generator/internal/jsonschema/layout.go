package jsonschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// width is how long a line of a schema may get; a string that is longer than that is broken where
// it is written, as Go.
const width = 100

// rank is the order of keywords in a schema: what it is, then its parts, then its limits.
var rank = func() map[string]int {
	ranks := map[string]int{}
	for i, keyword := range []string{
		"$ref", "type", "format", "title", "description", "enum", "const", "default", "properties",
		"patternProperties", "required", "additionalProperties", "items", "anyOf", "oneOf",
	} {
		ranks[keyword] = i + 1
	}
	return ranks
}()

// order sorts the keywords of a schema and of all in it. The names of properties keep theirs.
func order(schema any) {
	o, ok := schema.(*object)
	if !ok {
		return
	}
	slices.SortStableFunc(o.keys, func(a, b string) int {
		return cmp.Compare(place(a), place(b))
	})
	for _, key := range o.keys {
		switch value := o.values[key].(type) {
		case *object:
			if key == "properties" || key == "patternProperties" || key == "$defs" {
				for _, name := range value.keys {
					order(value.values[name])
				}
			} else if key != "default" {
				order(value)
			}
		case []any:
			if key == "anyOf" || key == "oneOf" || key == "allOf" {
				for _, item := range value {
					order(item)
				}
			}
		}
	}
}

func place(keyword string) int {
	if r, ok := rank[keyword]; ok {
		return r
	}
	if keyword == "$defs" {
		return len(rank) + 2
	}
	return len(rank) + 1
}

// layout writes a schema for people: one property a line, as long as that fits.
func layout(schema *object) string {
	var b strings.Builder
	write(&b, schema, "", 0, true)
	return b.String()
}

// write writes a value at an indent; column is where its line has got to. Open keeps an object
// from being put on one line.
func write(b *strings.Builder, value any, indent string, column int, open bool) {
	if !open {
		if line := oneLine(value); column+len(line) <= width || !divisible(value) {
			b.WriteString(line)
			return
		}
	}
	inner := indent + "  "
	switch v := value.(type) {
	case *object:
		if len(v.keys) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteString("{\n")
		for i, key := range v.keys {
			start := inner + quote(key) + ": "
			b.WriteString(start)
			child, isObject := v.values[key].(*object)
			spread := isObject && len(child.keys) > 0 && (key == "properties" || key == "$defs")
			write(b, v.values[key], inner, len(start)+1, spread)
			if i < len(v.keys)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString(indent + "}")
	case []any:
		if !slices.ContainsFunc(v, divisible) {
			fill(b, v, inner)
			b.WriteString("\n" + indent + "]")
			return
		}
		b.WriteString("[\n")
		for i, item := range v {
			b.WriteString(inner)
			write(b, item, inner, len(inner)+1, false)
			if i < len(v)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString(indent + "]")
	default:
		b.WriteString(oneLine(value))
	}
}

// fill writes the names and numbers of a list, as many a line as fit.
func fill(b *strings.Builder, items []any, indent string) {
	b.WriteByte('[')
	column := width + 1
	for i, item := range items {
		text := oneLine(item)
		if i < len(items)-1 {
			text += ","
		}
		if column+len(" ")+len(text) > width {
			b.WriteString("\n" + indent + text)
			column = len(indent) + len(text)
			continue
		}
		b.WriteString(" " + text)
		column += len(" ") + len(text)
	}
}

// divisible tells whether a value can be put on several lines.
func divisible(value any) bool {
	switch v := value.(type) {
	case *object:
		return len(v.keys) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// oneLine writes a value on one line, with spaces for people.
func oneLine(value any) string {
	var b strings.Builder
	writeLine(&b, value)
	return b.String()
}

func writeLine(b *strings.Builder, value any) {
	switch v := value.(type) {
	case *object:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quote(key) + ": ")
			writeLine(b, v.values[key])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeLine(b, item)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(quote(v))
	default:
		text, err := json.Marshal(value)
		if err != nil { // a json.Number, a bool or nil: cannot happen
			text = []byte("null")
		}
		b.Write(text)
	}
}

// unfit are the characters that a raw Go string cannot have.
var unfit = strings.NewReplacer("`", `\u0060`, "\ufeff", `\ufeff`)

// quote writes a JSON string that can stand in a raw Go string.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		return `""`
	}
	return unfit.Replace(strings.TrimSuffix(b.String(), "\n"))
}
