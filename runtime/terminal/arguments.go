package terminal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/form"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// Arguments makes the arguments of a call from words that a person types. NAME=VALUE is read by the type that the tool's
// schema gives the argument: text stays as it is, numbers and booleans are those of JSON, and a NAME that is given more
// than once makes a list. NAME:=JSON takes any value. The words add to base, a JSON object that may be nil.
//
// The error names the word or the argument, and says what the tool wants. A schema that cannot be read refuses nothing: the
// server checks.
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
				return nil, fmt.Errorf("%s: %s is not JSON; give text as %s=%s", name, quote(value), name, value)
			}
			arguments[name] = json.RawMessage(value)
			continue
		}
		if !ok || name == "" {
			return nil, fmt.Errorf("%s is not an argument: write NAME=VALUE or NAME:=JSON", quote(word))
		}
		given[name] = append(given[name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		property, ok := root.property(name)
		if !ok {
			return nil, Unknown(tool.Name, "argument", name, root.names())
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
	schema, err := validate.Compile(string(tool.InputSchema), false)
	if err != nil {
		return encoded, nil //nolint:nilerr // the server checks
	}
	if err := schema.Check(ctx, encoded); err != nil {
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
	required, _ := root.members()["required"].([]any)
	var described []Argument
	for _, name := range orderNames(root.names(), tool.InputSchema) {
		property, _ := root.property(name)
		m := property.members()
		description, _ := m["description"].(string)
		if title, _ := m["title"].(string); description == "" {
			description = title
		}
		described = append(described, Argument{
			Name: name, Kind: property.describeKind(), Values: property.values(), Required: slices.Contains(required, any(name)),
			Default: m["default"], Description: description,
		})
	}
	slices.SortStableFunc(described, func(a, b Argument) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return described
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

// describeKind says in words what values a schema allows.
func (s schema) describeKind() string { return s.describeKindWithin(maxLists) }

// describeKindWithin is describeKind with the number of lists that may still lie in one another.
func (s schema) describeKindWithin(lists int) string {
	if values := s.values(); len(values) > 0 {
		const most = 20
		if len(values) > most {
			values = append(values[:most:most], "…")
		}
		return strings.Join(values, " or ")
	}
	kinds := s.kinds()
	if slices.Contains(kinds, "array") {
		if lists == 1 {
			return "a list"
		}
		items := schema{s.root, s.members()["items"]}
		return "a list, each " + items.describeKindWithin(lists-1)
	}
	if words := describeKinds(kinds); words != "" {
		return words
	}
	return "any JSON"
}

// Unknown returns the error for a name that is not among the known ones. It suggests the nearest known name, or else lists all
// of them. owner is what has the names, such as a tool, and kind what they name, such as "argument".
func Unknown(owner, kind, name string, known []string) error {
	const most = 20
	switch near := nearest(name, known); {
	case near != "":
		return fmt.Errorf("%s has no %s %s; did you mean %s?", owner, kind, quote(name), near)
	case len(known) > most:
		return fmt.Errorf("%s has no %s %s; it has %s and %d more", owner, kind, quote(name), strings.Join(known[:most], ", "), len(known)-most)
	case len(known) > 0:
		return fmt.Errorf("%s has no %s %s; it has %s", owner, kind, quote(name), strings.Join(known, ", "))
	}
	return fmt.Errorf("%s has no %s %s: it has none", owner, kind, quote(name))
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

// maxReferences bounds how many $ref lie in one another.
const maxReferences = 16

// schema is what this package reads of a JSON Schema.
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

// members returns the keywords of a schema, after its references.
func (s schema) members() map[string]any {
	m, _ := s.node.(map[string]any)
	for range maxReferences {
		reference, ok := m["$ref"].(string)
		if !ok {
			break
		}
		m = s.resolve(reference)
	}
	return m
}

// resolve follows a reference within the document. It returns nil for any other.
func (s schema) resolve(reference string) map[string]any {
	path, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil
	}
	var node any = s.root
	for _, step := range strings.Split(path, "/")[1:] {
		parent, _ := node.(map[string]any)
		node = parent[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	m, _ := node.(map[string]any)
	return m
}

// names returns the names of the properties, sorted.
func (s schema) names() []string {
	properties, _ := s.members()["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// orderNames returns names in the order in which the text of a schema has them as properties. Others come first.
func orderNames(names []string, schema json.RawMessage) []string {
	members, _ := form.DecodeMembers(schema)
	place := map[string]int{}
	for _, m := range members {
		if m.Name == "properties" {
			properties, _ := form.DecodeMembers(m.Value)
			for i, p := range properties {
				place[p.Name] = i
			}
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
	return names
}

// property returns the schema of a property. ok is false if the object declares others and does not say that it takes
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

// kinds returns the types that the schema allows. None means that it does not say.
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
			if name, ok := k.(string); ok {
				kinds = append(kinds, name)
			}
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
	if len(values) == 1 && (!slices.Contains(kinds, "array") || strings.HasPrefix(strings.TrimSpace(values[0]), "[")) {
		return s.parse(values[0], kinds)
	}
	if len(kinds) > 0 && !slices.Contains(kinds, "array") {
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
	return nil, fmt.Errorf("got %s, want %s", quote(value), describeKinds(kinds))
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

// quote quotes what a person has typed, shortened.
func quote(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// nearest returns the known name that a mistyped one is likely to mean, or "".
func nearest(name string, known []string) string {
	best, least := "", len(name)/3+2 // more edits make another word
	for _, candidate := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance counts the bytes to insert, remove or replace to make b from a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
