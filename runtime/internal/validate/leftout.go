package validate

import (
	"context"
	"encoding/json"
)

// DropLeftOut returns an object without the members by which it says that it leaves a property out: some programs that
// show forms send null, or "" for no choice. The property is not required, its schema refuses the value, and a property
// with "" is one of choices. DropLeftOut returns a value that is not an object, or has a member twice, unchanged.
func (v *Schema) DropLeftOut(ctx context.Context, value json.RawMessage) json.RawMessage {
	d, err := read(ctx, value)
	if err != nil || d.repeated > 0 || d.nodes[0].kind != kindObject {
		return value
	}
	var leftOut []string
	for name := int32(1); name < d.nodes[0].next; name = d.nodes[name+1].next {
		property, given := v.rule.members[d.string(name)], d.nodes[name+1]
		isEmpty := given.kind == kindText && given.size == 0 && property.rule.isChoice()
		if property.rule == nil || property.required || given.kind != kindNull && !isEmpty {
			continue
		}
		c := &checker{document: d, ctx: ctx, budget: BaseSteps, poll: pollEvery}
		if !c.check(property.rule, name+1, nil) && c.err == nil {
			leftOut = append(leftOut, d.string(name))
		}
	}
	var members map[string]json.RawMessage
	if leftOut == nil || json.Unmarshal(value, &members) != nil {
		return value
	}
	for _, name := range leftOut {
		delete(members, name)
	}
	return json.RawMessage(marshal(members))
}

// isChoice reports whether a schema lists the values that it takes.
func (r *rule) isChoice() bool {
	return r != nil && (r.enum != nil || r.constant != nil || len(r.anyOf)+len(r.oneOf) > 0)
}
