package schema

import (
	"fmt"
	"slices"
	"strings"
)

// checkCycles refuses a definition that refers to itself only through $ref, allOf, anyOf and oneOf,
// because it has no meaning. A cycle through the members of an object or array is a recursive type.
func checkCycles(order []Definition, definitions map[string]any) error {
	const (
		open = iota + 1
		done
	)
	state := map[string]int{}
	var visit func(name string, chain []string) error
	visit = func(name string, chain []string) error {
		if state[name] == done {
			return nil
		}
		chain = append(chain, name)
		if state[name] == open {
			chain = chain[slices.Index(chain, name):]
			return fmt.Errorf("%s: the definition refers to itself: %s", name, strings.Join(chain, " -> "))
		}
		state[name] = open
		for _, next := range directReferences(definitions[name], nil) {
			if err := visit(next, chain); err != nil {
				return err
			}
		}
		state[name] = done
		return nil
	}
	for _, definition := range order {
		if err := visit(definition.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// directReferences appends the definitions that a schema applies to the same value.
func directReferences(schema any, names []string) []string {
	object, ok := schema.(map[string]any)
	if !ok {
		return names
	}
	if ref, ok := object["$ref"].(string); ok {
		if name, ok := refName(ref); ok {
			names = append(names, name)
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		members, _ := object[keyword].([]any)
		for _, member := range members {
			names = directReferences(member, names)
		}
	}
	return names
}
