package terminal

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/internal/form"
)

// These constants bound an outline. A schema may refer to itself.
const (
	maxOutlined = 64 << 10 // bytes of the schema
	maxDepth    = 4        // of objects within one another
	maxRows     = 200      // properties
	maxReads    = 1000     // schemas
	maxSteps    = 1000     // of references, together
	maxChoices  = 50       // of anyOf, and of other keywords that combine schemas
	maxExamples = 100      // values in examples
)

// outline lists the properties of a schema as a tree.
type outline struct {
	root json.RawMessage // where $ref begins
	// decoded is root, for the parts of which the order does not matter.
	decoded document
	// isResult means that the schema is that of a result, whose required properties are the usual ones.
	isResult bool
	// isTooLong means that the schema was left out.
	isTooLong bool
	open      []string // the schemas around the one that add reads
	rows      []row
	known     map[string][]property      // of schemas, by their text
	targets   map[string]json.RawMessage // of references
	steps     int                        // how many steps of references find has taken
	within    int                        // how many schemas are being read, each within the last
	examples  int                        // how many values example has made
}

// row is a line of an outline.
type row struct{ name, kind, description string }

// property is a property of an object.
type property struct {
	name       string
	raw        json.RawMessage
	isRequired bool
}

// newOutline returns an empty outline of a schema. One that is too long has no properties.
func newOutline(schema json.RawMessage) *outline {
	isTooLong := len(schema) > maxOutlined
	if isTooLong {
		schema = nil
	}
	return &outline{isTooLong: isTooLong, root: schema, decoded: readSchema(schema).root, known: map[string][]property{}, targets: map[string]json.RawMessage{}}
}

// schemaOf returns a part of the document.
func (o *outline) schemaOf(raw json.RawMessage) schema {
	var node any
	_ = json.Unmarshal(raw, &node) // one that is not JSON allows everything
	return schema{o.decoded, node}
}

// add adds the properties of a schema, and below each those of the objects in it.
func (o *outline) add(depth int, raw json.RawMessage) {
	for _, p := range o.properties(raw) {
		if len(o.rows) == maxRows {
			o.rows = append(o.rows, row{name: "…"})
		}
		if len(o.rows) > maxRows {
			return
		}
		s := o.schemaOf(p.raw)
		r := row{name: strings.Repeat("  ", depth) + brief(p.name, maxLabel), kind: s.describe(maxLists)}
		m := s.members()
		switch {
		case p.isRequired && !o.isResult:
			r.kind += ", required"
		case !p.isRequired && o.isResult:
			r.kind += ", may be missing"
		}
		if value, ok := m["default"]; ok && value != nil {
			r.kind += ", " + brief(string(encodeDecoded(value)), maxDefault) + " by default"
		}
		text, _ := m["description"].(string)
		r.description = brief(text, maxDescription)
		r.kind = brief(r.kind, maxDescription)
		o.rows = append(o.rows, r)
		if len(o.properties(p.raw)) == 0 {
			continue
		}
		if text := string(o.resolve(p.raw)); depth+1 == maxDepth || slices.Contains(o.open, text) {
			o.rows = append(o.rows, row{name: strings.Repeat("  ", depth+1) + "…"})
		} else {
			o.open = append(o.open, text)
			o.add(depth+1, p.raw)
			o.open = o.open[:len(o.open)-1]
		}
	}
}

// properties returns the properties of an object, of the items of a list, or of the values of a map: the required ones
// first, then the others, both in the order of the schema.
func (o *outline) properties(raw json.RawMessage) []property {
	all := slices.Clone(o.readProperties(raw))
	slices.SortStableFunc(all, func(a, b property) int {
		switch {
		case a.isRequired == b.isRequired:
			return 0
		case a.isRequired:
			return -1
		}
		return 1
	})
	return all
}

// readProperties is properties in the order of the schema. Within a schema that refers to itself, it returns nil.
func (o *outline) readProperties(raw json.RawMessage) []property {
	resolved := o.resolve(raw)
	text := string(resolved)
	if all, ok := o.known[text]; ok || len(resolved) == 0 || len(o.known) == maxReads || o.within == maxReferences {
		return all
	}
	o.within++
	defer func() { o.within-- }()
	o.known[text] = nil
	o.known[text] = o.readMembers(rawMembers(resolved))
	return o.known[text]
}

// readMembers reads the properties from the members of a schema.
func (o *outline) readMembers(members map[string]json.RawMessage) (all []property) {
	var required []string
	_ = json.Unmarshal(members["required"], &required) // nothing else requires anything
	own, _ := form.DecodeMembers(members["properties"])
	for _, m := range own {
		all = append(all, property{m.Name, m.Value, slices.Contains(required, m.Name)})
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		var branch []json.RawMessage
		_ = json.Unmarshal(members[keyword], &branch)
		objects := 0
		for _, b := range branch[:min(len(branch), maxChoices)] {
			within := o.readProperties(b)
			if len(within) > 0 {
				objects++
			}
			for _, p := range within {
				if slices.ContainsFunc(all, func(have property) bool { return have.name == p.name }) {
					continue
				}
				p.isRequired = p.isRequired || slices.Contains(required, p.name)
				all = append(all, p)
			}
		}
		if keyword != "allOf" && objects > 1 { // which of them are required depends on the branch
			for i := range all {
				all[i].isRequired = slices.Contains(required, all[i].name)
			}
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if len(all) == 0 {
			all = o.readProperties(members[keyword])
		}
	}
	return all
}

// resolve returns the schema that a schema refers to within the document.
func (o *outline) resolve(raw json.RawMessage) json.RawMessage {
	for range maxReferences {
		var reference string
		if json.Unmarshal(rawMembers(raw)["$ref"], &reference) != nil {
			return raw
		}
		target, ok := o.targets[reference]
		if !ok {
			target = o.find(reference)
			o.targets[reference] = target
		}
		raw = target
	}
	return nil
}

// find returns the part of the document that a reference names, or nil.
func (o *outline) find(reference string) json.RawMessage {
	path, ok := strings.CutPrefix(reference, "#")
	if !ok || len(o.targets) == maxReads {
		return nil
	}
	part := o.root
	for _, step := range strings.Split(path, "/")[1:] {
		if o.steps++; o.steps > maxSteps { // each reads a part anew
			return nil
		}
		part = rawMembers(part)[unescapeStep(step)]
	}
	return part
}

// rawMembers returns the members of a JSON object, or nil.
func rawMembers(raw json.RawMessage) (members map[string]json.RawMessage) {
	_ = json.Unmarshal(raw, &members)
	return members
}

// example returns a value that a schema takes, as far as the schema says so. name names text.
func (o *outline) example(name string, raw json.RawMessage, depth int) json.RawMessage {
	if o.examples++; o.examples > maxExamples {
		return json.RawMessage("null")
	}
	s := o.schemaOf(raw)
	m := s.members()
	if examples, ok := m["examples"].([]any); ok && len(examples) > 0 {
		return encodeDecoded(examples[0])
	}
	if value, ok := m["default"]; ok && value != nil {
		return encodeDecoded(value)
	}
	if choices := s.choices(); len(choices) > 0 {
		return encodeDecoded(choices[0])
	}
	kinds := s.kinds()
	has := func(kind string) bool { return slices.Contains(kinds, kind) }
	properties := o.properties(raw)
	switch {
	case has("array"):
		items := rawMembers(o.resolve(raw))["items"]
		if depth == 0 || len(items) == 0 {
			return json.RawMessage("[]")
		}
		return json.RawMessage("[" + string(o.example(name, items, depth-1)) + "]")
	case has("object") || len(properties) > 0:
		var members []form.Member
		for i, p := range properties {
			if depth > 0 && (p.isRequired || i == 0) {
				members = append(members, form.Member{Name: p.name, Value: o.example(p.name, p.raw, depth-1)})
			}
		}
		return form.EncodeMembers(members)
	case has("integer"), has("number"):
		least, _ := m["minimum"].(float64)
		return json.RawMessage(strconv.FormatFloat(cmp.Or(least, 1), 'f', -1, 64))
	case has("boolean"):
		return json.RawMessage("true")
	}
	format, _ := m["format"].(string)
	return encodeDecoded(cmp.Or(formats[format].example, strings.ToUpper(name)))
}

// encodeDecoded encodes a value that was decoded from JSON.
func encodeDecoded(value any) json.RawMessage {
	text, _ := encode(value) // it always can be
	return text
}
