package validate

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rule is a compiled schema in the form that a checker walks. The maps of the library are sorted lists here, and its
// numbers are decimals.
type rule struct {
	*jsonschema.Schema

	kinds    kind // 0 means any
	constant *constants
	enum     *constants
	min, max *decimal
	above    *decimal
	below    *decimal

	ref                           *rule
	allOf, anyOf, oneOf           []*rule
	not, when, whenTrue, whenElse *rule

	members            map[string]member
	required           int // the number of required members
	patterns           []namePattern
	otherMembers       *rule
	closed             bool // forbids other members
	countsMembers      bool // every member counts as evaluated
	names              *rule
	dependents         []dependent
	unevaluatedMembers *rule
	prefix             []*rule
	items              *rule
	ends               bool // forbids items after the prefix
	countsItems        bool // every item counts as evaluated
	contains           *rule
	unevaluatedItems   *rule

	inPlace []*rule // all rules that apply wherever it does, itself first
	presets []preset
}

// constants has the values that const or enum admit, by their keys.
type constants struct {
	kinds kind
	keys  map[string]struct{}
}

// member has the rules of a schema for the member of a name.
type member struct {
	rule     *rule // nil if the member is only required
	required bool
}

type namePattern struct {
	match jsonschema.Regexp
	rule  *rule
}

// dependent has the requirements of a schema if a member is present.
type dependent struct {
	name     string
	required []string
	rule     *rule
}

// translator converts compiled schemas to rules.
type translator struct {
	rules map[*jsonschema.Schema]*rule
	err   error
}

// translate converts a compiled schema to rules.
func translate(schema *jsonschema.Schema) (*Schema, error) {
	t := &translator{rules: map[*jsonschema.Schema]*rule{}}
	first := t.addRule(schema)
	if t.err != nil {
		return nil, t.err
	}
	v := &Schema{rule: first, properties: map[string]bool{}}
	for _, r := range t.rules {
		r.findInPlace()
		for name := range r.members {
			v.properties[name] = true
		}
	}
	v.hasDefaults = t.addDefaults()
	return v, nil
}

func (t *translator) addRule(s *jsonschema.Schema) *rule {
	if s == nil {
		return nil
	}
	if r, ok := t.rules[s]; ok {
		return r
	}
	r := &rule{Schema: s}
	t.rules[s] = r
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		t.err = errors.New("it uses $dynamicRef or $recursiveRef: use $ref")
	}
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			for k := kindNull; k != 0; k <<= 1 {
				if k.String() == name {
					r.kinds |= k
				}
			}
		}
	}
	if s.Const != nil {
		r.constant = t.encodeConstants(*s.Const)
	}
	if s.Enum != nil {
		r.enum = t.encodeConstants(s.Enum.Values...)
	}
	r.min, r.max = t.convertBound(s.Minimum), t.convertBound(s.Maximum)
	r.above, r.below = t.convertBound(s.ExclusiveMinimum), t.convertBound(s.ExclusiveMaximum)
	r.ref = t.addRule(s.Ref)
	r.allOf, r.anyOf, r.oneOf = t.addRules(s.AllOf), t.addRules(s.AnyOf), t.addRules(s.OneOf)
	r.not, r.when, r.whenTrue, r.whenElse = t.addRule(s.Not), t.addRule(s.If), t.addRule(s.Then), t.addRule(s.Else)
	t.addObjectRules(r)
	t.addArrayRules(r)
	return r
}

func (t *translator) addRules(schemas []*jsonschema.Schema) []*rule {
	var list []*rule
	for _, s := range schemas {
		list = append(list, t.addRule(s))
	}
	return list
}

func (t *translator) convertBound(r *big.Rat) *decimal {
	if r == nil {
		return nil
	}
	v := toDecimal(r)
	return &v
}

func (t *translator) encodeConstants(values ...any) *constants {
	c := &constants{keys: map[string]struct{}{}}
	for _, value := range values {
		data, err := json.Marshal(value)
		if err != nil {
			t.err = errors.Join(t.err, err)
			continue
		}
		d, err := read(context.Background(), data)
		if err != nil {
			t.err = errors.Join(t.err, err)
			continue
		}
		c.kinds |= d.nodes[0].kind
		c.keys[string((&checker{document: d, ctx: context.Background(), budget: unlimited}).appendKey(nil, 0))] = struct{}{}
	}
	return c
}

func (t *translator) addObjectRules(r *rule) {
	if len(r.Properties)+len(r.Required) > 0 {
		r.members = map[string]member{}
		for name, s := range r.Properties {
			r.members[name] = member{rule: t.addRule(s)}
		}
		for _, name := range r.Required {
			if m := r.members[name]; !m.required {
				m.required = true
				r.members[name] = m
				r.required++
			}
		}
	}
	for match, s := range r.PatternProperties {
		r.patterns = append(r.patterns, namePattern{match, t.addRule(s)})
	}
	slices.SortFunc(r.patterns, func(a, b namePattern) int { return strings.Compare(a.match.String(), b.match.String()) })
	r.countsMembers = r.AdditionalProperties != nil
	switch additional := r.AdditionalProperties.(type) {
	case bool:
		r.closed = !additional
	case *jsonschema.Schema:
		r.otherMembers = t.addRule(additional)
	}
	r.names = t.addRule(r.PropertyNames)
	for name, value := range r.Dependencies {
		switch value := value.(type) {
		case []string:
			r.dependents = append(r.dependents, dependent{name: name, required: value})
		case *jsonschema.Schema:
			r.dependents = append(r.dependents, dependent{name: name, rule: t.addRule(value)})
		}
	}
	for name, required := range r.DependentRequired {
		r.dependents = append(r.dependents, dependent{name: name, required: required})
	}
	for _, name := range slices.Sorted(maps.Keys(r.DependentSchemas)) {
		r.dependents = append(r.dependents, dependent{name: name, rule: t.addRule(r.DependentSchemas[name])})
	}
	slices.SortStableFunc(r.dependents, func(a, b dependent) int { return strings.Compare(a.name, b.name) })
	r.unevaluatedMembers = t.addRule(r.UnevaluatedProperties)
}

func (t *translator) addArrayRules(r *rule) {
	switch items := r.Items.(type) { // before 2020-12
	case *jsonschema.Schema:
		r.items = t.addRule(items)
	case []*jsonschema.Schema:
		r.prefix = t.addRules(items)
	}
	switch additional := r.AdditionalItems.(type) {
	case bool:
		r.ends = !additional
	case *jsonschema.Schema:
		r.items = t.addRule(additional)
	}
	if r.DraftVersion >= 2020 {
		r.prefix, r.items = t.addRules(r.PrefixItems), t.addRule(r.Items2020)
	}
	r.countsItems = r.items != nil || r.AdditionalItems != nil
	r.contains = t.addRule(r.Contains)
	r.unevaluatedItems = t.addRule(r.UnevaluatedItems)
}
