package jsonschema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Field is a line of the table that a schema of an object is to a reader.
type Field struct {
	// Path leads to the value: stages[].name is in each item of a list, labels.* in each entry of a map.
	Path        string
	Type        string // in words, such as "list of string"
	Required    bool   // in the object that it stands in
	Description string
	// Limits are the other keywords of the schema, such as "minLength: 1", in their order.
	Limits []string
}

// Fields lists the properties of a schema of an object, those of objects in it below them, in the
// order of the schema. A type that holds itself is listed once.
func Fields(schema string) ([]Field, error) {
	value, err := decode([]byte(schema))
	if err != nil {
		return nil, err
	}
	root, ok := value.(*object)
	if !ok {
		return nil, errors.New("the schema is no object")
	}
	t := table{root: root, open: map[*object]string{}, naming: map[*object]string{}}
	t.properties(root, "")
	return t.fields, nil
}

// table lists the fields of one schema.
type table struct {
	root   *object
	fields []Field
	open   map[*object]string // the objects that are being listed, and where they began
	naming map[*object]string // the schemas whose type is being put in words, and where they began
}

// properties lists what is in an object.
func (t *table) properties(o *object, prefix string) {
	if _, recursive := t.open[o]; recursive {
		return
	}
	t.open[o] = strings.TrimSuffix(prefix, ".")
	defer delete(t.open, o)
	properties, ok := o.get("properties").(*object)
	if !ok {
		return
	}
	required, _ := o.get("required").([]any)
	for _, name := range properties.keys {
		t.field(properties.values[name], prefix+name, slices.Contains(required, any(name)))
	}
}

// field lists one value and what is in it.
func (t *table) field(schema any, path string, required bool) {
	t.fields = append(t.fields, Field{Path: path, Required: required})
	i := len(t.fields) - 1
	words, inner, innerPath := t.typeOf(schema, path)
	t.fields[i].Type = words
	for o := range t.chain(schema) {
		if text, ok := o.get("description").(string); ok && t.fields[i].Description == "" {
			t.fields[i].Description = text
		}
		for _, key := range o.keys {
			if !slices.Contains(told, key) {
				t.fields[i].Limits = append(t.fields[i].Limits, key+": "+oneLine(o.values[key]))
			}
		}
	}
	if inner != nil {
		t.properties(inner, innerPath+".")
	}
}

// told are the keywords that other columns tell, or that readers have no use for.
var told = []string{
	"$ref", "$defs", "type", "format", "title", "description", "enum", "const", "properties", "required",
	"items", "additionalProperties", "anyOf", "oneOf",
}

// chain goes through a schema and those that it refers to.
func (t *table) chain(schema any) func(yield func(*object) bool) {
	return func(yield func(*object) bool) {
		seen := map[*object]bool{}
		for o, ok := schema.(*object); ok && !seen[o]; o, ok = t.referred(o) {
			seen[o] = true
			if !yield(o) {
				return
			}
		}
	}
}

// referred is what the $ref of a schema leads to.
func (t *table) referred(o *object) (*object, bool) {
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
	found, ok := definitions.get(pointer.Replace(name)).(*object)
	return found, ok
}

// pointer undoes the escapes of a JSON pointer.
var pointer = strings.NewReplacer("~1", "/", "~0", "~")

// typeOf says in words what a value is, and finds the object whose properties are to be listed below
// it, with the path to that.
func (t *table) typeOf(schema any, path string) (words string, inner *object, innerPath string) {
	var last *object
	for o := range t.chain(schema) {
		last = o
		if key := firstOf(o, "enum", "const", "anyOf", "oneOf", "type"); key != "" {
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
	switch firstOf(last, "enum", "const", "anyOf", "oneOf", "type") {
	case "enum":
		values, _ := last.get("enum").([]any)
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = oneLine(value)
		}
		return "one of " + strings.Join(texts, ", "), nil, ""
	case "const":
		return oneLine(last.get("const")), nil, ""
	case "anyOf", "oneOf":
		alternatives, _ := last.get(firstOf(last, "anyOf", "oneOf")).([]any)
		return t.alternatives(alternatives, path)
	case "type":
		if list, ok := last.get("type").([]any); ok {
			return t.named(last, list, path)
		}
		return t.named(last, []any{last.get("type")}, path)
	}
	return "any", nil, ""
}

// firstOf is the first of the keywords that a schema has; empty where it has none.
func firstOf(o *object, keywords ...string) string {
	for _, keyword := range keywords {
		if _, ok := o.values[keyword]; ok {
			return keyword
		}
	}
	return ""
}

func (t *table) alternatives(schemas []any, path string) (words string, inner *object, innerPath string) {
	var texts []string
	for _, schema := range schemas {
		text, in, inPath := t.typeOf(schema, path)
		texts = append(texts, text)
		if inner == nil {
			inner, innerPath = in, inPath
		}
	}
	return strings.Join(texts, " or "), inner, innerPath
}

// named is a schema with a list of types.
func (t *table) named(o *object, names []any, path string) (words string, inner *object, innerPath string) {
	var texts []string
	for _, name := range names {
		text := fmt.Sprint(name)
		switch name {
		case "array":
			item, in, inPath := t.typeOf(o.get("items"), path+"[]")
			text, inner, innerPath = "list of "+grouped(item), in, inPath
		case "object":
			if values, ok := o.get("additionalProperties").(*object); ok && o.get("properties") == nil {
				item, in, inPath := t.typeOf(values, path+".*")
				text, inner, innerPath = "map of "+grouped(item), in, inPath
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

// grouped keeps what a type is made of apart from what stands around it.
func grouped(words string) string {
	if strings.Contains(words, " or ") || strings.HasPrefix(words, "one of ") {
		return "(" + words + ")"
	}
	return words
}
