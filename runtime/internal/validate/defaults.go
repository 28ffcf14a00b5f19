package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// BaseFilled and FilledPerByte bound the bytes of a value with its defaults: many small objects
	// may get a long default each.
	BaseFilled = 1 << 20
	// FilledPerByte is how many bytes each byte of the value adds.
	FilledPerByte = 16
	// maxPreset bounds the bytes of a default with the defaults inside it.
	maxPreset = 64 << 10
)

// preset is a property that an object has if it is left out.
type preset struct{ name, value string }

// Defaults returns an object that has the defaults and no other property. It may lack required ones.
func (v *Schema) Defaults() json.RawMessage {
	empty := &document{text: "{}", nodes: []node{{kind: kindObject, next: 1}}}
	filled, err := fillDefaults(v.rule, empty, BaseFilled, func(r *rule) []preset { return r.presets })
	if err != nil {
		return json.RawMessage(empty.text)
	}
	return filled
}

// fillDefaults returns a document with the presets of the rules that its values fit. most bounds the bytes.
func fillDefaults(r *rule, d *document, most int, presets func(*rule) []preset) (json.RawMessage, error) {
	f := &filler{document: d, presets: presets, most: most}
	if !f.fill(r.inPlace, 0) {
		return nil, fmt.Errorf("it has more than %d bytes with the defaults of its schema: send fewer objects", most)
	}
	return append(f.filled, d.text[f.copied:]...), nil
}

// filler writes a document anew with presets.
type filler struct {
	*document
	presets func(*rule) []preset
	filled  []byte
	copied  int // bytes of the text that are in filled
	most    int // bytes
}

// fill fills the value of a node, to which all of some rules apply. It reports whether the result is short enough.
func (f *filler) fill(rules []*rule, i int32) bool {
	n := f.nodes[i]
	switch n.kind {
	case kindArray:
		index := 0
		for child := i + 1; child < n.next; child = f.nodes[child].next {
			if f.hasValues(child) {
				if !f.fill(itemRules(rules, index), child) {
					return false
				}
			}
			index++
		}
	case kindObject:
		f.addPresets(rules, i)
		for name := i + 1; name < n.next; name = f.nodes[name+1].next {
			if !f.hasValues(name + 1) {
				continue
			}
			if !f.fill(memberRules(rules, f.string(name)), name+1) {
				return false
			}
		}
	}
	return len(f.filled) <= f.most
}

// hasValues reports whether a node is an object or an array.
func (f *filler) hasValues(i int32) bool { return f.nodes[i].kind&(kindObject|kindArray) != 0 }

// addPresets writes the presets that an object leaves out, before its own members.
func (f *filler) addPresets(rules []*rule, i int32) {
	var presets []preset
	for _, r := range rules {
		presets = append(presets, f.presets(r)...)
	}
	if presets == nil {
		return
	}
	n := f.nodes[i]
	has := make(map[string]bool, n.size)
	for name := i + 1; name < n.next; name = f.nodes[name+1].next {
		has[f.string(name)] = true
	}
	f.filled = append(f.filled, f.text[f.copied:n.start+1]...)
	f.copied = int(n.start) + 1
	separator := ""
	for _, p := range presets {
		if !has[p.name] {
			f.filled = append(f.filled, separator+marshal(p.name)+":"+p.value...)
			has[p.name], separator = true, ","
		}
	}
	if n.size > 0 {
		f.filled = append(f.filled, separator...)
	}
}

// itemRules returns the rules for an item of an array, to which all of some rules apply.
func itemRules(rules []*rule, index int) (inner []*rule) {
	for _, r := range rules {
		if index < len(r.prefix) {
			inner = addInPlace(inner, r.prefix[index])
		} else {
			inner = addInPlace(inner, r.items)
		}
	}
	return inner
}

// memberRules returns the rules for the member of a name of an object, to which all of some rules apply.
func memberRules(rules []*rule, name string) (inner []*rule) {
	for _, r := range rules {
		inner = r.addMemberRules(inner, name)
	}
	return inner
}

// addMemberRules adds the rules for the member of a name.
func (r *rule) addMemberRules(rules []*rule, name string) []*rule {
	known := r.members[name].rule
	rules = addInPlace(rules, known)
	for _, p := range r.patterns {
		if p.match.MatchString(name) {
			known, rules = p.rule, addInPlace(rules, p.rule)
		}
	}
	if known == nil {
		rules = addInPlace(rules, r.otherMembers)
	}
	return rules
}

// addInPlace adds the rules that apply wherever a rule does.
func addInPlace(rules []*rule, r *rule) []*rule {
	switch {
	case r == nil:
		return rules
	case rules == nil:
		return slices.Clip(r.inPlace)
	}
	for _, in := range r.inPlace {
		if !slices.Contains(rules, in) {
			rules = append(rules, in)
		}
	}
	return rules
}

// onlyAlternative returns the alternative of anyOf or oneOf to null, or nil.
func (r *rule) onlyAlternative() *rule {
	isNull := func(alternative *rule) bool { return alternative.kinds == kindNull }
	others := slices.DeleteFunc(slices.Concat(r.anyOf, r.oneOf), isNull)
	if len(others) != 1 {
		return nil
	}
	return others[0]
}

// findInPlace finds all rules that apply wherever a rule does.
func (r *rule) findInPlace() {
	r.inPlace = []*rule{r}
	for i := 0; i < len(r.inPlace); i++ { // inPlace grows
		in := r.inPlace[i]
		for _, next := range append(slices.Clone(in.allOf), in.ref, in.onlyAlternative()) {
			if next != nil && !slices.Contains(r.inPlace, next) {
				r.inPlace = append(r.inPlace, next)
			}
		}
	}
}

// addDefaults adds the defaults to the rules.
func (t *translator) addDefaults() (found bool) {
	rules := slices.SortedFunc(maps.Values(t.rules), func(a, b *rule) int { return strings.Compare(a.Location, b.Location) })
	if !slices.ContainsFunc(rules, func(r *rule) bool { return r.Default != nil }) {
		return false
	}
	done := map[*rule]bool{}
	for _, r := range rules {
		addPresets(r, done)
	}
	return true
}

// addPresets adds the defaults of a rule's properties, filled in the same way. A default within
// itself stays as its schema has it.
func addPresets(r *rule, done map[*rule]bool) []preset {
	if done[r] {
		return r.presets
	}
	done[r] = true
	for _, name := range slices.Sorted(maps.Keys(r.members)) {
		m := r.members[name]
		if value, ok := m.rule.defaultValue(); ok && !m.required {
			r.presets = append(r.presets, preset{name, value})
		}
	}
	filled := make([]string, len(r.presets))
	for i, p := range r.presets {
		filled[i] = p.value
		d, err := read(context.Background(), []byte(p.value))
		if err != nil {
			continue
		}
		if nested, err := fillDefaults(r.members[p.name].rule, d, maxPreset, func(in *rule) []preset { return addPresets(in, done) }); err == nil {
			filled[i] = string(nested)
		}
	}
	for i := range filled {
		r.presets[i].value = filled[i]
	}
	return r.presets
}

// defaultValue returns the default of a property that fits its schema, which may be nil.
func (r *rule) defaultValue() (value string, ok bool) {
	if r == nil {
		return "", false
	}
	for _, in := range r.inPlace {
		if in.Default == nil {
			continue
		}
		value = marshal(*in.Default)
		v := &Schema{rule: r}
		return value, v.Check(context.Background(), json.RawMessage(value)) == nil
	}
	return "", false
}
