package toolschema

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// typeNames are the valid values of the keyword type.
var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

// checkKeywords reports keywords with values of the wrong type.
func (r *resolver) checkKeywords(n *jsontree.Node) {
	for _, m := range n.Members {
		switch m.Name {
		case "type":
			r.checkType(m.Value)
		case "properties", "patternProperties", "$defs", "definitions":
			// PHP encodes an empty object as [].
			if m.Value.Kind != jsontree.Object && (m.Value.Kind != jsontree.Array || len(m.Value.Items) > 0) {
				r.reportOnce(m.Value, m.Name+" must be an object, not "+m.Value.Kind.String(), "")
			}
		case "required":
			r.checkNames(m)
		case "enum":
			if m.Value.Kind != jsontree.Array {
				r.reportOnce(m.Value, "enum must be a list of values, not "+m.Value.Kind.String(), "")
			}
		case "format", "description", "title", "pattern":
			if _, ok := m.Value.Text(); !ok && !m.Value.Is(nil) {
				r.reportOnce(m.Value, m.Name+" must be a string, not "+m.Value.Kind.String(), "")
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems":
			_, number := m.Value.Value.(json.Number)
			_, draft4 := m.Value.Value.(bool)
			if !number && !(draft4 && strings.HasPrefix(m.Name, "exclusive")) {
				r.reportOnce(m.Value, m.Name+" must be a number, not "+m.Value.Kind.String(), "")
			}
		}
	}
}

func (r *resolver) checkType(n *jsontree.Node) {
	names := []*jsontree.Node{n}
	if n.Kind == jsontree.Array {
		names = n.Items
	}
	for _, item := range names {
		text, ok := item.Text()
		if !ok {
			r.reportOnce(item, "type must be a string or a list of strings, not "+item.Kind.String(), "")
			continue
		}
		if slices.Contains(typeNames, text) {
			continue
		}
		hint := cmp.Or(diag.DidYouMean(text, typeNames), "the types are "+strings.Join(typeNames, ", "))
		r.reportOnce(item, "unknown type "+words.QuoteJSON(text), hint)
	}
}

func (r *resolver) checkNames(m jsontree.Member) {
	if m.Value.Kind != jsontree.Array {
		hint := ""
		if _, isBool := m.Value.Value.(bool); isBool {
			hint = "list the property in the required of the object that has it"
		}
		r.reportOnce(m.Value, m.Name+" must be a list of names, not "+m.Value.Kind.String(), hint)
		return
	}
	for _, item := range m.Value.Items {
		if _, ok := item.Text(); !ok {
			r.reportOnce(item, m.Name+" must be a list of names, but this is "+item.Kind.String(), "")
		}
	}
}
