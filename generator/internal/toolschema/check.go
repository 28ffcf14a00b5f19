package toolschema

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// typeNames are the valid values of the keyword type.
var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// checkKeywords reports keywords with values of the wrong type.
func (r *resolver) checkKeywords(n *node) {
	for _, m := range n.members {
		switch m.name {
		case "type":
			r.checkType(m.value)
		case "properties", "patternProperties", "$defs", "definitions":
			// PHP encodes an empty object as [].
			if m.value.kind != object && (m.value.kind != array || len(m.value.items) > 0) {
				r.reportOnce(m.value, m.name+" must be an object, not "+m.value.describeKind(), "")
			}
		case "required":
			r.checkNames(m)
		case "enum":
			if m.value.kind != array {
				r.reportOnce(m.value, "enum must be a list of values, not "+m.value.describeKind(), "")
			}
		case "format", "description", "title", "pattern":
			if _, ok := m.value.text(); !ok && !m.value.equals(nil) {
				r.reportOnce(m.value, m.name+" must be a string, not "+m.value.describeKind(), "")
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems":
			_, number := m.value.value.(json.Number)
			_, draft4 := m.value.value.(bool)
			if !number && !(draft4 && strings.HasPrefix(m.name, "exclusive")) {
				r.reportOnce(m.value, m.name+" must be a number, not "+m.value.describeKind(), "")
			}
		}
	}
}

func (r *resolver) checkType(n *node) {
	names := []*node{n}
	if n.kind == array {
		names = n.items
	}
	for _, item := range names {
		text, ok := item.text()
		if !ok {
			r.reportOnce(item, "type must be a string or a list of strings, not "+item.describeKind(), "")
			continue
		}
		if slices.Contains(typeNames, text) {
			continue
		}
		hint := cmp.Or(diag.DidYouMean(text, typeNames), "the types are "+strings.Join(typeNames, ", "))
		r.reportOnce(item, "unknown type "+words.QuoteJSON(text), hint)
	}
}

func (r *resolver) checkNames(m member) {
	if m.value.kind != array {
		hint := ""
		if _, isBool := m.value.value.(bool); isBool {
			hint = "list the property in the required of the object that has it"
		}
		r.reportOnce(m.value, m.name+" must be a list of names, not "+m.value.describeKind(), hint)
		return
	}
	for _, item := range m.value.items {
		if _, ok := item.text(); !ok {
			r.reportOnce(item, m.name+" must be a list of names, but this is "+item.describeKind(), "")
		}
	}
}
