package jsonschema

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// maxWidth is the maximum length of a line. A longer string is split when it is written as Go code.
const maxWidth = 100

// keywordRanks orders the keywords of a schema: what it is, then its parts, then its limits.
var keywordRanks = func() map[string]int {
	ranks := map[string]int{}
	for i, keyword := range []string{
		"$ref", "type", "format", "title", "description", "enum", "const", "default", "properties",
		"patternProperties", "required", "additionalProperties", "items", "anyOf", "oneOf",
	} {
		ranks[keyword] = i + 1
	}
	return ranks
}()

// sortKeywords sorts the keywords of a schema and of all schemas in it. Properties keep their
// order.
func sortKeywords(schema any) {
	o, ok := schema.(*object)
	if !ok {
		return
	}
	slices.SortStableFunc(o.keys, func(a, b string) int {
		return cmp.Compare(keywordRank(a), keywordRank(b))
	})
	for _, key := range o.keys {
		switch value := o.values[key].(type) {
		case *object:
			if key == "properties" || key == "patternProperties" || key == "$defs" {
				for _, name := range value.keys {
					sortKeywords(value.values[name])
				}
			} else if key != "default" {
				sortKeywords(value)
			}
		case []any:
			if key == "anyOf" || key == "oneOf" || key == "allOf" {
				for _, item := range value {
					sortKeywords(item)
				}
			}
		}
	}
}

func keywordRank(keyword string) int {
	if r, ok := keywordRanks[keyword]; ok {
		return r
	}
	if keyword == "$defs" {
		return len(keywordRanks) + 2
	}
	return len(keywordRanks) + 1
}

// formatSchema formats a schema for people, with one property per line if it fits.
func formatSchema(schema *object) string {
	var b strings.Builder
	writeValue(&b, schema, "", 0, true)
	return b.String()
}

// writeValue writes a value. column is the current length of the line. open keeps an object, which
// must have members, from being written on one line.
func writeValue(b *strings.Builder, value any, indent string, column int, open bool) {
	if !open {
		if line := compactText(value); column+len(line) <= maxWidth || !isDivisible(value) {
			b.WriteString(line)
			return
		}
	}
	inner := indent + "  "
	switch v := value.(type) {
	case *object:
		b.WriteString("{\n")
		for i, key := range v.keys {
			start := inner + quoteJSON(key) + ": "
			b.WriteString(start)
			child, isObject := v.values[key].(*object)
			spread := isObject && len(child.keys) > 0 && (key == "properties" || key == "$defs")
			writeValue(b, v.values[key], inner, len(start)+1, spread)
			if i < len(v.keys)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString(indent + "}")
	case []any:
		if !slices.ContainsFunc(v, isDivisible) {
			writeFilled(b, v, inner)
			b.WriteString("\n" + indent + "]")
			return
		}
		b.WriteString("[\n")
		for i, item := range v {
			b.WriteString(inner)
			writeValue(b, item, inner, len(inner)+1, false)
			if i < len(v)-1 {
				b.WriteByte(',')
			}
			b.WriteByte('\n')
		}
		b.WriteString(indent + "]")
	}
}

// writeFilled writes the strings and numbers of a list, as many per line as fit.
func writeFilled(b *strings.Builder, items []any, indent string) {
	b.WriteByte('[')
	column := maxWidth + 1
	for i, item := range items {
		text := compactText(item)
		if i < len(items)-1 {
			text += ","
		}
		if column+len(" ")+len(text) > maxWidth {
			b.WriteString("\n" + indent + text)
			column = len(indent) + len(text)
			continue
		}
		b.WriteString(" " + text)
		column += len(" ") + len(text)
	}
}

// isDivisible reports whether a value can span several lines.
func isDivisible(value any) bool {
	switch v := value.(type) {
	case *object:
		return len(v.keys) > 0
	case []any:
		return len(v) > 0
	}
	return false
}

// compactText formats a value on one line, with spaces.
func compactText(value any) string {
	var b strings.Builder
	writeCompact(&b, value)
	return b.String()
}

func writeCompact(b *strings.Builder, value any) {
	switch v := value.(type) {
	case *object:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quoteJSON(key) + ": ")
			writeCompact(b, v.values[key])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeCompact(b, item)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(quoteJSON(v))
	default:
		text, err := json.Marshal(value)
		if err != nil { // impossible for a json.Number, a bool or nil
			text = []byte("null")
		}
		b.Write(text)
	}
}

// rawStringEscapes escapes the characters that a raw Go string cannot contain.
var rawStringEscapes = strings.NewReplacer("`", `\u0060`, "\ufeff", `\ufeff`)

// quoteJSON encodes a JSON string that a raw Go string can contain.
func quoteJSON(s string) string { return rawStringEscapes.Replace(words.QuoteJSON(s)) }
