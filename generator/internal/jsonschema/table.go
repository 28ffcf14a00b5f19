package jsonschema

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
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
	root, err := jsontree.Parse([]byte(schema))
	if err != nil {
		return nil, err
	}
	if root.Kind != jsontree.Object {
		return nil, errors.New("the schema is not an object")
	}
	t := table{root: root, open: map[*jsontree.Node]string{}, naming: map[*jsontree.Node]string{}}
	t.addProperties(root, "")
	return t.fields, nil
}

// table lists the fields of one schema.
type table struct {
	root   *jsontree.Node
	fields []Field
	open   map[*jsontree.Node]string // the objects being listed, with their paths
	naming map[*jsontree.Node]string // the schemas whose type is being described, with their paths
}

// addProperties adds the properties of an object that is not being listed.
func (t *table) addProperties(o *jsontree.Node, prefix string) {
	t.open[o] = strings.TrimSuffix(prefix, ".")
	defer delete(t.open, o)
	properties := o.Get("properties")
	if properties == nil {
		return
	}
	for _, m := range properties.Members {
		t.addField(m.Value, prefix+m.Name, slices.ContainsFunc(items(o.Get("required")), func(name *jsontree.Node) bool { return name.Is(m.Name) }))
	}
}

// addField adds one value and what it contains.
func (t *table) addField(schema *jsontree.Node, path string, required bool) {
	t.fields = append(t.fields, Field{Path: path, Required: required})
	i := len(t.fields) - 1
	words, inner, innerPath := t.describeType(schema, path)
	t.fields[i].Type = words
	for o := range t.referenceChain(schema) {
		if text, ok := o.Get("description").Text(); ok && t.fields[i].Description == "" {
			t.fields[i].Description = text
		}
		for _, m := range o.Members {
			if !slices.Contains(describedKeywords, m.Name) {
				t.fields[i].Limits = append(t.fields[i].Limits, m.Name+": "+m.Value.Spaced())
			}
		}
	}
	if inner != nil {
		t.addProperties(inner, innerPath+".")
	}
}

// items returns the items of a list, or nil.
func items(list *jsontree.Node) []*jsontree.Node {
	if list == nil {
		return nil
	}
	return list.Items
}

// describedKeywords are the keywords that other columns show or that readers do not need.
var describedKeywords = []string{
	"$ref", "$defs", "type", "format", "title", "description", "enum", "const", "properties", "required",
	"items", "additionalProperties", "anyOf", "oneOf",
}

// referenceChain iterates over a schema and the schemas it refers to.
func (t *table) referenceChain(schema *jsontree.Node) func(yield func(*jsontree.Node) bool) {
	return func(yield func(*jsontree.Node) bool) {
		seen := map[*jsontree.Node]bool{}
		for o := schema; o != nil && !seen[o]; o = t.followReference(o) {
			seen[o] = true
			if !yield(o) {
				return
			}
		}
	}
}

// followReference returns the target of a schema's $ref, or nil.
func (t *table) followReference(o *jsontree.Node) *jsontree.Node {
	ref, _ := o.Get("$ref").Text()
	if ref == "#" {
		return t.root
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	if !ok {
		return nil
	}
	return t.root.Get("$defs").Get(pointerUnescaper.Replace(name))
}

// pointerUnescaper reverses the escapes of a JSON pointer.
var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

// describeType describes the type of a value. It also returns the object whose properties follow in
// the table, with its path.
func (t *table) describeType(schema *jsontree.Node, path string) (words string, inner *jsontree.Node, innerPath string) {
	var last *jsontree.Node
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
		var texts []string
		for _, value := range items(last.Get("enum")) {
			texts = append(texts, value.Spaced())
		}
		return "one of " + strings.Join(texts, ", "), nil, ""
	case "const":
		return last.Get("const").Spaced(), nil, ""
	case "anyOf", "oneOf":
		return t.describeAlternatives(items(last.Get(firstKeyword(last, "anyOf", "oneOf"))), path)
	case "type":
		if kind := last.Get("type"); kind.Kind != jsontree.Array {
			return t.describeTypes(last, []*jsontree.Node{kind}, path)
		}
		return t.describeTypes(last, last.Get("type").Items, path)
	}
	return "any", nil, ""
}

// firstKeyword returns the first of the keywords that a schema has, or "".
func firstKeyword(o *jsontree.Node, keywords ...string) string {
	for _, keyword := range keywords {
		if o.Get(keyword) != nil {
			return keyword
		}
	}
	return ""
}

func (t *table) describeAlternatives(schemas []*jsontree.Node, path string) (words string, inner *jsontree.Node, innerPath string) {
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
func (t *table) describeTypes(o *jsontree.Node, names []*jsontree.Node, path string) (words string, inner *jsontree.Node, innerPath string) {
	var texts []string
	for _, name := range names {
		text, _ := name.Text()
		switch text {
		case "array":
			item, in, inPath := t.describeType(o.Get("items"), path+"[]")
			text, inner, innerPath = "list of "+parenthesize(item), in, inPath
		case "object":
			if values := o.Get("additionalProperties"); values != nil && values.Kind == jsontree.Object && o.Get("properties") == nil {
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
		if format, ok := o.Get("format").Text(); ok && name.Is("string") {
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
