package validate

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// preset is a property that an object has if it is left out.
type preset struct{ name, value string }

// FillDefaults returns a value in which the properties that its objects leave out have the defaults
// of their schemas. The value must be one that Check takes. All else stays as it is, so a property
// that is null stays null, and an object that is left out is not made for the defaults inside.
//
// Defaults are found through properties, items, additional properties, $ref, allOf, and in anyOf and
// oneOf if null is the only alternative. No default is filled in that its own schema refuses, nor
// one in an object whose schema says that some members depend on others, such as by oneOf or
// maxProperties, because the result might not fit.
func (v *Schema) FillDefaults(value json.RawMessage) json.RawMessage {
	if !v.hasDefaults {
		return value
	}
	return fillDefaults(v.rule, value, func(r *rule) []preset { return r.presets })
}

// fillDefaults is FillDefaults with the presets of each rule.
func fillDefaults(r *rule, value json.RawMessage, presets func(*rule) []preset) json.RawMessage {
	d, err := read(context.Background(), value)
	if err != nil {
		return value
	}
	f := &filler{document: d, presets: presets}
	f.fill(r.inPlace, 0)
	return append(f.filled, d.text[f.copied:]...)
}

// filler writes a document anew with presets.
type filler struct {
	*document
	presets func(*rule) []preset
	filled  []byte
	copied  int // bytes of the text that are in filled
}

// fill fills the value of a node, to which all of some rules apply.
func (f *filler) fill(rules []*rule, i int32) {
	n := f.nodes[i]
	switch n.kind {
	case kindArray:
		index := 0
		for child := i + 1; child < n.next; child = f.nodes[child].next {
			var inner []*rule
			for _, r := range rules {
				if index < len(r.prefix) {
					inner = addInPlace(inner, r.prefix[index])
				} else {
					inner = addInPlace(inner, r.items)
				}
			}
			f.fill(inner, child)
			index++
		}
	case kindObject:
		if !slices.ContainsFunc(rules, (*rule).relatesMembers) {
			f.addPresets(rules, i)
		}
		for name := i + 1; name < n.next; name = f.nodes[name+1].next {
			if f.nodes[name+1].kind&(kindObject|kindArray) == 0 {
				continue
			}
			var inner []*rule
			for _, r := range rules {
				inner = r.addMemberRules(inner, f.string(name))
			}
			f.fill(inner, name+1)
		}
	}
}

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

// relatesMembers reports whether a member may make others necessary or forbidden.
func (r *rule) relatesMembers() bool {
	return r.not != nil || r.when != nil || len(r.dependents) > 0 || r.MaxProperties != nil ||
		len(r.anyOf)+len(r.oneOf) > 0 && r.onlyAlternative() == nil
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

// addDefaults prepares the rules for FillDefaults. It reports whether they have any defaults.
func (t *translator) addDefaults() bool {
	rules := slices.SortedFunc(maps.Values(t.rules), func(a, b *rule) int { return strings.Compare(a.Location, b.Location) })
	if !slices.ContainsFunc(rules, func(r *rule) bool { return r.Default != nil }) {
		return false
	}
	for _, r := range rules {
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
	done := map[*rule]bool{}
	for _, r := range rules {
		addPresets(r, done)
	}
	return true
}

// maxPreset bounds the bytes of a default with the defaults inside it.
const maxPreset = 64 << 10

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
		nested := fillDefaults(r.members[p.name].rule, json.RawMessage(p.value), func(in *rule) []preset { return addPresets(in, done) })
		if filled[i] = string(nested); len(nested) > maxPreset {
			filled[i] = p.value
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
