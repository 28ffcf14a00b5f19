package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// findExtraArguments returns the names that the caller's program adds to all arguments, without those of the tool's
// properties.
func findExtraArguments(s *taskserver.Backend, caller taskserver.Caller, tool mcptask.ToolSpec) []string {
	extra := s.ClientProfile(caller).ExtraArguments
	if len(extra) == 0 {
		return nil
	}
	schema := wire.NewObject(json.RawMessage(tool.InputSchema))
	isComposed := slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf"}, func(keyword string) bool { return schema.Has(keyword) })
	if !isComposed && string(schema.Get("additionalProperties")) != "false" {
		return nil // it takes them, and they may be meant
	}
	return slices.DeleteFunc(slices.Clone(extra), func(name string) bool {
		// The properties of a composed schema may be anywhere in it.
		return schema.Has("properties", name) || isComposed && strings.Contains(tool.InputSchema, `"`+name+`"`)
	})
}

// dropArguments returns arguments without the members of these names.
func dropArguments(arguments json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 {
		return arguments
	}
	var edits []wire.Edit
	object := wire.NewObject(arguments)
	for _, name := range names {
		if object.Has(name) {
			edits = append(edits, wire.Delete(name))
		}
	}
	edited, err := object.Edited(edits...)
	if err != nil { // the arguments are not an object: their check says so
		return arguments
	}
	return edited
}
