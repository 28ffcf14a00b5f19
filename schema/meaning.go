package schema

import (
	"fmt"
	"slices"
	"strings"
)

// This file reads the parts of surface.json that describe changes to users. Each part refers to its
// meaning by a canonical name of canon.json.

// Field is a member of a message. Other revisions may have a member with the same meaning but
// another name, place or unit.
type Field struct {
	// Means is its canonical name.
	Means string `json:"means"`
	// In is the owner that a reader sees: task, params, result, tool or the name of a notification.
	In string `json:"in"`
	// At is the place in the definitions: the name of a definition and the members below it, as in
	// a JSON pointer without the first slash.
	At string `json:"at"`
	// Unit is the unit of a quantity. Clock is what a duration counts from.
	Unit  string `json:"unit"`
	Clock string `json:"clock"`
	// Values maps canonical values to those of the revision, for a field with renamed values.
	Values map[string]string `json:"values"`
	// Note is a condition or a remark.
	Note string `json:"note"`
}

// Place returns the field's place for a reader, such as "task.ttl" or
// `params._meta["modelcontextprotocol.io/task"].keepAlive`.
func (f Field) Place() string {
	steps := pointerSteps(f.At)[1:]
	if len(steps) > 1 && steps[0] == f.In {
		steps = steps[1:]
	}
	return f.In + joinPath(steps)
}

// joinPath joins members as in code.
func joinPath(steps []string) string {
	var out strings.Builder
	for _, step := range steps {
		if strings.ContainsAny(step, "./-") {
			fmt.Fprintf(&out, "[%q]", step)
		} else {
			out.WriteString("." + step)
		}
	}
	return out.String()
}

// Refusal is a receiver's answer to a request that it cannot fulfill.
type Refusal struct {
	// Case is the canonical name of the case.
	Case string `json:"case"`
	// Code names the error code. If it is empty, Answer describes the answer.
	Code   string `json:"code"`
	Answer string `json:"answer"`
	// Own means that the revision does not specify the answer and this project chose it.
	Own bool `json:"own"`
}

// CapabilityPlaces maps the canonical names of capabilities to their places, as JSON pointers into
// the capabilities of each party.
type CapabilityPlaces struct {
	Server map[string]string `json:"server"`
	Client map[string]string `json:"client"`
}

// checkMeanings checks the canonical names against the vocabulary and the definitions.
func (s *Surface) checkMeanings() error {
	c, err := loadVocabulary()
	if err != nil {
		return err
	}
	var faults []string
	known := func(where string, list words, names ...string) {
		for _, name := range names {
			if list.phrase(name) == "" {
				faults = append(faults, fmt.Sprintf("%s: %q is not in canon.json", where, name))
			}
		}
	}
	for _, status := range s.Statuses {
		known("status "+status.Name, c.Statuses, status.Means...)
		for _, next := range status.Next {
			if !slices.ContainsFunc(s.Statuses, func(o Status) bool { return o.Name == next }) {
				faults = append(faults, fmt.Sprintf("status %s: unknown next status %s", status.Name, next))
			}
		}
	}
	for _, m := range s.Methods {
		known("method "+m.Name, c.Purposes, m.Serves...)
	}
	for _, n := range s.Notifications {
		known("notification "+n.Name, c.Purposes, n.Serves...)
	}
	for _, key := range s.MetaKeys {
		if key.Means != "" {
			known("_meta key "+key.Name, c.MetaKeys, key.Means)
		}
	}
	for _, f := range s.Fields {
		known("field "+f.At, c.Fields, f.Means)
		known("field "+f.At, c.Support, sortedKeys(f.Values)...)
		if _, _, ok := s.lookupMember(f.At); !ok {
			faults = append(faults, fmt.Sprintf("field %s: tasks.schema.json does not have it", f.At))
		}
	}
	for _, r := range s.Refusals {
		known("refusal", c.Cases, r.Case)
		if (r.Code == "") == (r.Answer == "") || r.Code != "" && s.errorCode(r.Code).Code == 0 {
			faults = append(faults, fmt.Sprintf("refusal %s: needs either a known error code or an answer", r.Case))
		}
	}
	known("server capability", c.Capabilities, sortedKeys(s.Capabilities.Server)...)
	known("client capability", c.Capabilities, sortedKeys(s.Capabilities.Client)...)
	known("aspect", c.Aspects, sortedKeys(s.Aspects)...)
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return nil
}

// errorCode returns the error code with that name. Its Code is 0 if there is none.
func (s *Surface) errorCode(name string) ErrorCode {
	code, _ := find(s.ErrorCodes, func(c ErrorCode) bool { return c.Name == name })
	return code
}

// lookupMember finds a member by its place and reports whether it is required.
func (s *Surface) lookupMember(at string) (value map[string]any, required, ok bool) {
	steps := pointerSteps(at)
	d, ok := s.Definition(steps[0])
	if !ok {
		return nil, false, false
	}
	root, _ := d.value.(map[string]any)
	found := []map[string]any{root}
	for _, step := range steps[1:] {
		var next []map[string]any
		required = false
		for _, inside := range found {
			s.visitProperty(inside, step, 0, func(member map[string]any, needed bool) {
				next = append(next, member)
				required = required || needed
			})
		}
		if len(next) == 0 {
			return nil, false, false
		}
		found = next
	}
	return found[len(found)-1], required, true // a later part of an allOf narrows an earlier one
}

// visitProperty calls each for every schema of a property, including those in the owner's
// references and parts, with whether it is required there.
func (s *Surface) visitProperty(owner map[string]any, name string, depth int, each func(member map[string]any, required bool)) {
	const deepest = 20 // stops circular references
	if depth > deepest {
		return
	}
	if _, target := s.target(owner); target != nil {
		s.visitProperty(target, name, depth+1, each)
	}
	list, _ := stringList(owner["required"])
	properties, _ := owner["properties"].(map[string]any)
	if member, ok := properties[name].(map[string]any); ok {
		each(member, slices.Contains(list, name))
	}
	parts, _ := owner["allOf"].([]any)
	for _, part := range parts {
		inner, _ := part.(map[string]any)
		s.visitProperty(inner, name, depth+1, each)
	}
}

// target returns the definition that a schema refers to.
func (s *Surface) target(value map[string]any) (name string, schema map[string]any) {
	ref, _ := value["$ref"].(string)
	name, _ = refName(ref)
	d, _ := s.Definition(name)
	schema, _ = d.value.(map[string]any)
	return name, schema
}

// describeType describes the values that a schema accepts: "integer or null".
func (s *Surface) describeType(value map[string]any, depth int) string {
	const deepest = 20
	if name, target := s.target(value); target != nil && depth < deepest {
		for _, keyword := range []string{"enum", "properties", "allOf", "anyOf", "additionalProperties"} {
			if target[keyword] != nil {
				return name
			}
		}
		return s.describeType(target, depth+1)
	}
	if alternatives, ok := value["anyOf"].([]any); ok {
		var kinds []string
		for _, alternative := range alternatives {
			inner, _ := alternative.(map[string]any)
			if kind := s.describeType(inner, depth+1); !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
		return orList(kinds)
	}
	if list, ok := stringList(value["enum"]); ok {
		return orList(quoteAll(list))
	}
	if fixed, ok := value["const"].(string); ok {
		return fmt.Sprintf("%q", fixed)
	}
	if items, _ := value["items"].(map[string]any); items != nil {
		return "list of " + s.describeType(items, depth+1)
	}
	switch t := value["type"].(type) {
	case string:
		return t
	case []any:
		list, _ := stringList(value["type"])
		return orList(list)
	}
	return "anything"
}

func quoteAll(list []string) []string {
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = fmt.Sprintf("%q", text)
	}
	return out
}

func orList(list []string) string  { return joinWith(list, "or") }
func andList(list []string) string { return joinWith(list, "and") }

func joinWith(list []string, word string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " " + word + " " + list[last]
}
