package terminal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
	"github.com/mcptaskgen/mcptaskgen/internal/nearest"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Arguments makes the arguments of a call from words that a person types. NAME=VALUE is read by the type that the
// tool's schema gives the argument. Text stays as it is. Numbers and booleans are those of JSON. A NAME that is given
// more than once makes a list. NAME:=JSON takes any value. The words add to base, a JSON object that may be nil.
//
// The error names the word or the argument, and the values that the tool takes. A schema that cannot be read refuses
// nothing: the server checks.
func Arguments(ctx context.Context, tool mcptask.ToolInfo, base json.RawMessage, words []string) (json.RawMessage, error) {
	arguments := map[string]json.RawMessage{}
	if len(base) > 0 {
		if err := json.Unmarshal(base, &arguments); err != nil || arguments == nil {
			return nil, errors.New("the arguments are not a JSON object")
		}
	}
	root := readSchema(tool.InputSchema)
	given := map[string][]string{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if name, isJSON := strings.CutSuffix(name, ":"); ok && isJSON {
			if !json.Valid([]byte(value)) {
				return nil, fmt.Errorf("%s: %.60q is not JSON; give text as %s=%s", name, value, name, value)
			}
			arguments[name] = json.RawMessage(value)
			continue
		}
		if !ok || name == "" {
			return nil, fmt.Errorf("%.60q is not an argument: write NAME=VALUE or NAME:=JSON", word)
		}
		given[name] = append(given[name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property, ok := root.property(name)
		if !ok {
			properties, _ := root.members()["properties"].(map[string]any)
			return nil, Unknown(tool.Name, "argument", name, slices.Sorted(maps.Keys(properties)))
		}
		value, err := property.parseAll(given[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		arguments[name] = value
	}
	encoded, err := encode(arguments)
	if err != nil {
		return nil, err
	}
	if err := Check(ctx, tool.InputSchema, encoded); err != nil {
		return nil, err
	}
	return encoded, nil
}

// Argument is an argument of a tool, as a person reads it.
type Argument struct {
	Name        string
	Kind        string   // such as "a number", or the values to choose from
	Values      []string // those, as a person types them
	Required    bool
	Default     any // as encoding/json decodes it; nil if there is none
	Description string
}

// DescribeArguments returns the arguments of a tool: the required ones first, then the others, both in the order of the
// tool's schema.
func DescribeArguments(tool mcptask.ToolInfo) []Argument {
	root := readSchema(tool.InputSchema)
	names, _ := root.members()["required"].([]any)
	var required, optional []Argument
	for _, name := range propertyNames(tool.InputSchema) {
		property, _ := root.property(name)
		m := property.members()
		a := Argument{Name: name, Kind: property.describeKind(maxLists), Values: property.values(), Required: slices.Contains(names, any(name)), Default: m["default"]}
		a.Description, _ = m["description"].(string)
		if a.Required {
			required = append(required, a)
		} else {
			optional = append(optional, a)
		}
	}
	return append(required, optional...)
}

// propertyNames returns the names of the properties of a schema, in its order.
func propertyNames(schema json.RawMessage) (names []string) {
	members, _ := form.DecodeMembers(schema) // a schema that is not an object has none
	for _, m := range members {
		if m.Name == "properties" {
			properties, _ := form.DecodeMembers(m.Value)
			for _, p := range properties {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// Unknown returns the error for a name that is not among the known ones. It suggests the nearest known name, or else
// lists them. owner has the names, such as a tool. kind is the kind of thing that they name, such as "argument".
func Unknown(owner, kind, name string, known []string) error {
	const most = 20
	text := fmt.Sprintf("%s has no %s %.60q", owner, kind, name)
	switch near := nearest.Name(name, known, len(name)/3+1); {
	case near != "":
		return fmt.Errorf("%s; did you mean %s?", text, near)
	case len(known) > most:
		return fmt.Errorf("%s; it has %s and %d more", text, strings.Join(known[:most], ", "), len(known)-most)
	case len(known) > 0:
		return fmt.Errorf("%s; it has %s", text, strings.Join(known, ", "))
	}
	return fmt.Errorf("%s: it has none", text)
}

// encode writes a value as JSON and leaves < > and & as they are.
func encode(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// schema has the keywords of a JSON Schema that this package reads.
type schema struct {
	root map[string]any // where $ref begins
	node any
}

// readSchema reads a schema. One that is not JSON allows everything.
func readSchema(text json.RawMessage) schema {
	var root map[string]any
	if json.Unmarshal(text, &root) != nil {
		return schema{}
	}
	return schema{root, root}
}

// maxReferences bounds how many $ref lie in one another.
const maxReferences = 16

// members returns the keywords of a schema, after its references within the document.
func (s schema) members() map[string]any {
	m, _ := s.node.(map[string]any)
	for range maxReferences {
		reference, ok := m["$ref"].(string)
		if !ok {
			break
		}
		var node any
		if path, ok := strings.CutPrefix(reference, "#"); ok {
			node = s.root
			for _, step := range strings.Split(path, "/")[1:] {
				parent, _ := node.(map[string]any)
				node = parent[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
			}
		}
		m, _ = node.(map[string]any)
	}
	return m
}

// property returns the schema of a property. ok is false if the object declares others and does not state that it takes
// more.
func (s schema) property(name string) (p schema, ok bool) {
	m := s.members()
	properties, _ := m["properties"].(map[string]any)
	if node, ok := properties[name]; ok {
		return schema{s.root, node}, true
	}
	more, says := m["additionalProperties"]
	if says && more != false {
		return schema{s.root, more}, true
	}
	_, patterns := m["patternProperties"]
	return schema{}, patterns || !says && properties == nil
}

// maxBranches bounds how many branches of anyOf, oneOf and allOf are read. They may refer to each other.
const maxBranches = 200

// kinds returns the types that the schema allows. An empty result means that it does not limit
// them.
func (s schema) kinds() []string {
	branches := maxBranches
	return s.kindsWithin(&branches)
}

// kindsWithin is kinds with the number of branches that may still be read.
func (s schema) kindsWithin(branches *int) (kinds []string) {
	m := s.members()
	switch kind := m["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		for _, k := range kind {
			kinds = append(kinds, fmt.Sprint(k))
		}
		return kinds
	}
	for _, value := range s.choices() {
		kinds = append(kinds, kindOf(value))
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		nodes, _ := m[keyword].([]any)
		for _, node := range nodes {
			if *branches--; *branches >= 0 {
				kinds = append(kinds, schema{s.root, node}.kindsWithin(branches)...)
			}
		}
	}
	return kinds
}

// choices returns the values of enum and const.
func (s schema) choices() []any {
	m := s.members()
	choices, _ := m["enum"].([]any)
	if value, ok := m["const"]; ok {
		choices = append(choices, value)
	}
	return choices
}

// values returns the values to choose from, as a person types them.
func (s schema) values() (values []string) {
	for _, choice := range s.choices() {
		if text, ok := choice.(string); ok {
			values = append(values, text)
		} else if text, err := encode(choice); err == nil {
			values = append(values, string(text))
		}
	}
	return values
}

// maxLists bounds how many lists within one another are described. One may refer to itself.
const maxLists = 4

// describeKind describes in words the values that a schema allows. lists is the number of lists that may be nested.
func (s schema) describeKind(lists int) string {
	const most = 20
	values, kinds := s.values(), s.kinds()
	switch {
	case len(values) > most:
		return strings.Join(values[:most], " or ") + " or …"
	case len(values) > 0:
		return strings.Join(values, " or ")
	case slices.Contains(kinds, "array") && lists > 1:
		return "a list, each " + schema{s.root, s.members()["items"]}.describeKind(lists-1)
	case slices.Contains(kinds, "array"):
		return "a list"
	}
	if words := describeKinds(kinds); words != "" {
		return words
	}
	return "any JSON"
}

// kindOf names the type of a JSON value.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// parseAll reads the values that one name was given.
func (s schema) parseAll(values []string) (json.RawMessage, error) {
	kinds := s.kinds()
	isList := slices.Contains(kinds, "array")
	if len(values) == 1 && (!isList || strings.HasPrefix(strings.TrimSpace(values[0]), "[")) {
		return s.parse(values[0], kinds)
	}
	if len(kinds) > 0 && !isList {
		return nil, fmt.Errorf("got %d values, want one", len(values))
	}
	items := schema{s.root, s.members()["items"]}
	var list []json.RawMessage
	for _, value := range values {
		item, err := items.parse(value, items.kinds())
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return encode(list)
}

// parse reads one value by the types that it may have. Text is the last choice, because it takes everything.
func (s schema) parse(value string, kinds []string) (json.RawMessage, error) {
	var parsed any
	if json.Unmarshal([]byte(value), &parsed) == nil {
		kind := kindOf(parsed)
		isText := kind == "string" || kind == "null" && slices.Contains(kinds, "string")
		fits := len(kinds) == 0 || slices.Contains(kinds, kind) || kind == "number" && slices.Contains(kinds, "integer")
		if fits && !isText {
			return json.RawMessage(value), nil
		}
	}
	if len(kinds) == 0 || slices.Contains(kinds, "string") {
		return encode(value)
	}
	return nil, fmt.Errorf("got %.60q, want %s", value, describeKinds(kinds))
}

// describeKinds names types for a person.
func describeKinds(kinds []string) string {
	words := map[string]string{
		"string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null",
		"array": "a list in JSON", "object": "an object in JSON",
	}
	var described []string
	for _, kind := range kinds {
		if word, ok := words[kind]; ok && !slices.Contains(described, word) {
			described = append(described, word)
		}
	}
	return strings.Join(described, " or ")
}
