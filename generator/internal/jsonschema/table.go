package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Field is a row of the table that describes an object's schema.
type Field struct {
	// Path is the path of the value. stages[].name is a member of each list item, and labels.* is
	// each value of a map.
	Path        string
	Type        string // in words, such as "list of string"
	Required    bool   // in its object
	Description string
	// Limits are the other keywords of the schema in their order, such as "minLength: 1".
	Limits []string
}

// Fields lists the properties of an object's schema in order. The properties of an inner object
// follow it. A type that contains itself is listed once.
func Fields(schema string) ([]Field, error) {
	value, err := decodeJSON([]byte(schema))
	if err != nil {
		return nil, err
	}
	root, ok := value.(*object)
	if !ok {
		return nil, errors.New("the schema is not an object")
	}
	t := table{root: root, open: map[*object]string{}, naming: map[*object]string{}}
	t.addProperties(root, "")
	return t.fields, nil
}

// table lists the fields of one schema.
type table struct {
	root   *object
	fields []Field
	open   map[*object]string // the objects being listed, with their paths
	naming map[*object]string // the schemas whose type is being described, with their paths
}

// addProperties adds the properties of an object that is not being listed.
func (t *table) addProperties(o *object, prefix string) {
	t.open[o] = strings.TrimSuffix(prefix, ".")
	defer delete(t.open, o)
	properties, ok := o.get("properties").(*object)
	if !ok {
		return
	}
	required, _ := o.get("required").([]any)
	for _, name := range properties.keys {
		t.addField(properties.values[name], prefix+name, slices.Contains(required, any(name)))
	}
}

// addField adds one value and what it contains.
func (t *table) addField(schema any, path string, required bool) {
	t.fields = append(t.fields, Field{Path: path, Required: required})
	i := len(t.fields) - 1
	words, inner, innerPath := t.describeType(schema, path)
	t.fields[i].Type = words
	for o := range t.referenceChain(schema) {
		if text, ok := o.get("description").(string); ok && t.fields[i].Description == "" {
			t.fields[i].Description = text
		}
		for _, key := range o.keys {
			if !slices.Contains(describedKeywords, key) {
				t.fields[i].Limits = append(t.fields[i].Limits, key+": "+compactText(o.values[key]))
			}
		}
	}
	if inner != nil {
		t.addProperties(inner, innerPath+".")
	}
}

// describedKeywords are the keywords that other columns show or that readers do not need.
var describedKeywords = []string{
	"$ref", "$defs", "type", "format", "title", "description", "enum", "const", "properties", "required",
	"items", "additionalProperties", "anyOf", "oneOf",
}

// referenceChain iterates over a schema and the schemas it refers to.
func (t *table) referenceChain(schema any) func(yield func(*object) bool) {
	return func(yield func(*object) bool) {
		seen := map[*object]bool{}
		for o, ok := schema.(*object); ok && !seen[o]; o, ok = t.followReference(o) {
			seen[o] = true
			if !yield(o) {
				return
			}
		}
	}
}

// followReference returns the target of a schema's $ref.
func (t *table) followReference(o *object) (*object, bool) {
	ref, ok := o.get("$ref").(string)
	if !ok {
		return nil, false
	}
	if ref == "#" {
		return t.root, true
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	definitions, _ := t.root.get("$defs").(*object)
	if !ok || definitions == nil {
		return nil, false
	}
	found, ok := definitions.get(pointerUnescaper.Replace(name)).(*object)
	return found, ok
}

// pointerUnescaper reverses the escapes of a JSON pointer.
var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// describeType describes the type of a value. It also returns the object whose properties follow in
// the table, with its path.
func (t *table) describeType(schema any, path string) (words string, inner *object, innerPath string) {
	var last *object
	for o := range t.referenceChain(schema) {
		last = o
		if key := firstKeyword(o, "enum", "const", "anyOf", "oneOf", "type"); key != "" {
			break
		}
	}
	if last == nil {
		return "any", nil, ""
	}
	if place, recursive := t.naming[last]; recursive { // a list of itself
		return "the same (as " + place + ")", nil, ""
	}
	t.naming[last] = path
	defer delete(t.naming, last)
	switch firstKeyword(last, "enum", "const", "anyOf", "oneOf", "type") {
	case "enum":
		values, _ := last.get("enum").([]any)
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = compactText(value)
		}
		return "one of " + strings.Join(texts, ", "), nil, ""
	case "const":
		return compactText(last.get("const")), nil, ""
	case "anyOf", "oneOf":
		alternatives, _ := last.get(firstKeyword(last, "anyOf", "oneOf")).([]any)
		return t.describeAlternatives(alternatives, path)
	case "type":
		if list, ok := last.get("type").([]any); ok {
			return t.describeTypes(last, list, path)
		}
		return t.describeTypes(last, []any{last.get("type")}, path)
	}
	return "any", nil, ""
}

// firstKeyword returns the first of the keywords that a schema has, or "".
func firstKeyword(o *object, keywords ...string) string {
	for _, keyword := range keywords {
		if _, ok := o.values[keyword]; ok {
			return keyword
		}
	}
	return ""
}

func (t *table) describeAlternatives(schemas []any, path string) (words string, inner *object, innerPath string) {
	var texts []string
	for _, schema := range schemas {
		text, in, inPath := t.describeType(schema, path)
		texts = append(texts, text)
		if inner == nil {
			inner, innerPath = in, inPath
		}
	}
	return strings.Join(texts, " or "), inner, innerPath
}

// describeTypes describes a schema with a list of types.
func (t *table) describeTypes(o *object, names []any, path string) (words string, inner *object, innerPath string) {
	var texts []string
	for _, name := range names {
		text := fmt.Sprint(name)
		switch name {
		case "array":
			item, in, inPath := t.describeType(o.get("items"), path+"[]")
			text, inner, innerPath = "list of "+parenthesize(item), in, inPath
		case "object":
			if values, ok := o.get("additionalProperties").(*object); ok && o.get("properties") == nil {
				item, in, inPath := t.describeType(values, path+".*")
				text, inner, innerPath = "map of "+parenthesize(item), in, inPath
				break
			}
			if place, recursive := t.open[o]; recursive {
				text += " (as " + cmp.Or(place, "the whole") + ")"
				break
			}
			inner, innerPath = o, path
		}
		if format, ok := o.get("format").(string); ok && name == "string" {
			text += " (" + format + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " or "), inner, innerPath
}

// parenthesize separates a type from the words around it.
func parenthesize(words string) string {
	if strings.Contains(words, " or ") || strings.HasPrefix(words, "one of ") {
		return "(" + words + ")"
	}
	return words
}
