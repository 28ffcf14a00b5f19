package schema

import (
	"encoding/json"
	"maps"
	"strings"
)

// Patch is a place at which a surface deliberately differs from the official schema, because the
// specification's text contradicts the schema. [Compare] and [Fingerprint] treat the official value
// at this place as equal to ours. Any other value is a difference.
type Patch struct {
	Definition string `json:"definition"`
	// Pointer is the place in the definition, as a JSON pointer.
	Pointer string `json:"pointer"`
	// Official is the official schema's value at that place.
	Official json.RawMessage `json:"official"`
	// Reason justifies the patch in a sentence.
	Reason string `json:"reason"`
}

// applyPatches applies the surface's patches to definitions that have the official values.
func (s *Surface) applyPatches(definitions map[string]any) map[string]any {
	own := (&Document{Definitions: s.Definitions}).valuesByName()
	for _, patch := range s.Patched {
		value, ok := valueAt(own[patch.Definition], patch.Pointer) // ParseSurface reports what is missing
		if ok && patch.applies(definitions) {
			definitions[patch.Definition] = withValue(definitions[patch.Definition], pointerSteps(patch.Pointer), value)
		}
	}
	return definitions
}

// applies reports whether definitions have the official value at the place of the patch.
func (p Patch) applies(definitions map[string]any) bool {
	theirs, ok := valueAt(definitions[p.Definition], p.Pointer)
	official, err := decodeJSON(p.Official)
	return ok && err == nil && canonicalJSON(theirs) == canonicalJSON(official)
}

// valueAt returns the value that a JSON pointer names. It does not step into lists.
func valueAt(value any, pointer string) (any, bool) {
	for _, step := range pointerSteps(pointer) {
		object, _ := value.(map[string]any)
		inner, ok := object[step]
		if !ok {
			return nil, false
		}
		value = inner
	}
	return value, true
}

// withValue returns a copy of an object with the value at the end of the steps.
func withValue(object any, steps []string, value any) any {
	if len(steps) == 0 {
		return value
	}
	out := map[string]any{}
	from, _ := object.(map[string]any)
	maps.Copy(out, from)
	out[steps[0]] = withValue(from[steps[0]], steps[1:], value)
	return out
}

func pointerSteps(pointer string) []string {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, step := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps
}
