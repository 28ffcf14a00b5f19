package toolschema

import (
	"encoding/json"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// typeNames are the values of the keyword type.
var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// check holds the keywords that types are made of against what they may be.
func (r *resolver) check(n *node) {
	for _, m := range n.members {
		switch m.name {
		case "type":
			r.checkType(m.value)
		case "properties", "patternProperties", "$defs", "definitions":
			// PHP writes [] for an object without members.
			if m.value.kind != object && (m.value.kind != array || len(m.value.items) > 0) {
				r.once(m.value, m.name+" is an object, not "+m.value.what(), "")
			}
		case "required":
			r.checkTexts(m)
		case "enum":
			if m.value.kind != array {
				r.once(m.value, "enum is a list of values, not "+m.value.what(), "")
			}
		case "format", "description", "title", "pattern":
			if _, ok := m.value.text(); !ok && !m.value.is(nil) {
				r.once(m.value, m.name+" is a text, not "+m.value.what(), "")
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems":
			_, number := m.value.value.(json.Number)
			_, draft4 := m.value.value.(bool)
			if !number && !(draft4 && strings.HasPrefix(m.name, "exclusive")) {
				r.once(m.value, m.name+" is a number, not "+m.value.what(), "")
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
			r.once(item, "type is a text or a list of them, not "+item.what(), "")
			continue
		}
		known := false
		for _, name := range typeNames {
			known = known || name == text
		}
		if known {
			continue
		}
		hint := "the types are " + strings.Join(typeNames, ", ")
		if near := diag.Nearest(text, typeNames); near != "" {
			hint = "did you mean " + quote(near) + "?"
		}
		r.once(item, "there is no type "+quote(text), hint)
	}
}

func (r *resolver) checkTexts(m member) {
	if m.value.kind != array {
		hint := ""
		if _, isBool := m.value.value.(bool); isBool {
			hint = "the object that has the property lists its name in required"
		}
		r.once(m.value, m.name+" is a list of names, not "+m.value.what(), hint)
		return
	}
	for _, item := range m.value.items {
		if _, ok := item.text(); !ok {
			r.once(item, m.name+" is a list of names, and this is "+item.what(), "")
		}
	}
}
