package jsonschema

import (
	"cmp"
	"errors"
	"iter"
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
	if whole := findWhole(root); whole != nil {
		t.open[whole] = ""
	}
	t.addProperties(root, "")
	return t.fields, nil
}

// findWhole returns the definition of a schema that is the schema itself, for references to it, or nil.
func findWhole(root *jsontree.Node) *jsontree.Node {
	definitions := root.Get("$defs")
	if definitions == nil {
		return nil
	}
	properties := root.Get("properties")
	for _, m := range definitions.Members {
		if of := m.Value.Get("properties"); of != nil && properties != nil && of.Compact() == properties.Compact() {
			return m.Value
		}
	}
	return nil
}

// table lists the fields of one schema.
type table struct {
	root   *jsontree.Node
	fields []Field
	open   map[*jsontree.Node]string // the objects being listed, with their paths
	naming map[*jsontree.Node]string // the schemas whose type is being described, with their paths

	// inner is the first object in the type that was described last, or nil. Its properties follow in
	// the table.
	inner     *jsontree.Node
	innerPath string
}

// addProperties adds the properties of an object that is not being listed.
func (t *table) addProperties(o *jsontree.Node, path string) {
	t.open[o] = path
	defer delete(t.open, o)
	if path != "" {
		path += "."
	}
	properties, required := o.Get("properties"), o.Get("required")
	if properties == nil {
		return
	}
	for _, m := range properties.Members {
		t.addField(m.Value, path+m.Name, required != nil && slices.ContainsFunc(required.Items, func(name *jsontree.Node) bool { return name.Is(m.Name) }))
	}
}

// addField adds one value and its parts.
func (t *table) addField(schema *jsontree.Node, path string, required bool) {
	t.inner = nil
	f := Field{Path: path, Required: required, Type: t.describeType(schema, path)}
	for o := range t.referenceChain(schema) {
		if text, ok := o.Get("description").Text(); ok && f.Description == "" {
			f.Description = text
		}
		for _, m := range o.Members {
			if !slices.Contains(describedKeywords, m.Name) {
				f.Limits = append(f.Limits, m.Name+": "+m.Value.Spaced())
			}
		}
	}
	t.fields = append(t.fields, f)
	if t.inner != nil {
		t.addProperties(t.inner, t.innerPath)
	}
}

// describedKeywords are the keywords that other columns show or that readers do not need.
var describedKeywords = []string{
	"$ref", "$defs", "type", "format", "title", "description", "enum", "const", "properties", "required",
	"items", "additionalProperties", "anyOf", "oneOf",
}

// referenceChain iterates over a schema and the schemas it refers to.
func (t *table) referenceChain(schema *jsontree.Node) iter.Seq[*jsontree.Node] {
	return func(yield func(*jsontree.Node) bool) {
		seen := map[*jsontree.Node]bool{}
		for o := schema; o != nil && !seen[o] && yield(o); o = t.followReference(o) {
			seen[o] = true
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
	return t.root.Get("$defs").Get(strings.NewReplacer("~1", "/", "~0", "~").Replace(name)) // as in a JSON pointer
}

// describeType describes the type of a value in words, and sets t.inner if there is an object in it.
func (t *table) describeType(schema *jsontree.Node, path string) string {
	var last, value *jsontree.Node
	keyword := ""
	for o := range t.referenceChain(schema) {
		last = o
		if keyword, value = firstKeyword(o, "enum", "const", "anyOf", "oneOf", "type"); value != nil {
			break
		}
	}
	if place, recursive := t.naming[last]; recursive { // a list of itself
		return "the same (as " + place + ")"
	}
	t.naming[last] = path
	defer delete(t.naming, last)
	var texts []string
	switch keyword {
	case "enum":
		for _, choice := range value.Items {
			texts = append(texts, choice.Spaced())
		}
		return "one of " + strings.Join(texts, ", ")
	case "const":
		return value.Spaced()
	case "anyOf", "oneOf":
		for _, alternative := range value.Items {
			texts = append(texts, t.describeType(alternative, path))
		}
	case "type":
		names := value.Items
		if value.Kind != jsontree.Array {
			names = []*jsontree.Node{value}
		}
		for _, name := range names {
			text, _ := name.Text()
			texts = append(texts, t.describeKind(last, text, path))
		}
	default:
		return "any"
	}
	return strings.Join(texts, " or ")
}

// firstKeyword returns the first of the keywords that a schema has, and its value.
func firstKeyword(o *jsontree.Node, keywords ...string) (string, *jsontree.Node) {
	for _, keyword := range keywords {
		if value := o.Get(keyword); value != nil {
			return keyword, value
		}
	}
	return "", nil
}

// describeKind describes the values of one JSON type that a schema admits.
func (t *table) describeKind(o *jsontree.Node, kind, path string) string {
	values := o.Get("additionalProperties")
	format, formatted := o.Get("format").Text()
	switch {
	case kind == "array":
		return "list of " + parenthesize(t.describeType(o.Get("items"), path+"[]"))
	case kind == "object" && values != nil && values.Kind == jsontree.Object && o.Get("properties") == nil:
		return "map of " + parenthesize(t.describeType(values, path+".*"))
	case kind == "object":
		if place, recursive := t.open[o]; recursive {
			return kind + " (as " + cmp.Or(place, "the whole") + ")"
		}
		if t.inner == nil {
			t.inner, t.innerPath = o, path
		}
	case kind == "string" && formatted:
		return kind + " (" + format + ")"
	}
	return kind
}

// parenthesize separates a type from the words around it.
func parenthesize(words string) string {
	if strings.Contains(words, " or ") || strings.HasPrefix(words, "one of ") {
		return "(" + words + ")"
	}
	return words
}
