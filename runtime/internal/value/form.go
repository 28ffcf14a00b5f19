package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// IsSameForm reports whether two schemas of questions ask for the same: the descriptions and defaults of their properties
// do not matter.
func IsSameForm(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || reflect.DeepEqual(readForm(a), readForm(b))
}

// readForm decodes a schema without what IsSameForm leaves out.
func readForm(schema json.RawMessage) any {
	v, err := Decode[any](schema)
	if err != nil {
		return string(schema)
	}
	return stripSchema(v)
}

// stripSchema strips a decoded schema for readForm, in place.
func stripSchema(v any) any {
	switch v := v.(type) {
	case []any:
		for _, schema := range v {
			stripSchema(schema)
		}
	case map[string]any:
		for name, member := range v {
			switch name {
			case "description", "default", "$comment", "examples":
				delete(v, name)
			case "required", "enum": // sets
				if set, ok := member.([]any); ok {
					slices.SortFunc(set, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				}
			case "const":
			case "properties", "$defs":
				if named, ok := member.(map[string]any); ok {
					for _, schema := range named {
						stripSchema(schema)
					}
				}
			default:
				stripSchema(member)
			}
		}
	}
	return v
}
