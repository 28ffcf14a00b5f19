package toolschema

import (
	"errors"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// checkServer finds tools that no server of the runtime can offer. Without the client's half these
// are mistakes. Otherwise the server's half is left out, with a note.
func (l *toolList) checkServer(side model.Side) model.Side {
	if !side.Serves() {
		return side
	}
	for _, t := range l.tools {
		at, fault := t.serverFault()
		switch {
		case fault == "":
		case side == model.ServerSide:
			l.addProblem(at, "the runtime cannot offer this tool: "+fault, "change the list, or generate only a client, with --client-only")
		default:
			l.problems.AddNote(l.file.Position(at.Offset), "no server is generated, because "+fault+"; --client-only leaves it out without this note")
			return model.ClientSide
		}
	}
	return side
}

// serverFault returns the reason why no server of the runtime can offer a tool, and its place.
func (t *tool) serverFault() (at *jsontree.Node, fault string) {
	if !model.IsToolName(t.name) {
		return t.at, "the name " + words.QuoteJSON(t.name) + " is not 1 to 128 letters, digits, underscores, hyphens or dots"
	}
	for _, keyword := range []string{"inputSchema", "outputSchema"} {
		schema := t.at.Get(keyword)
		if schema == nil {
			continue
		}
		if !schema.Get("type").Is("object") {
			return schema, "the " + keyword + ` needs "type": "object"`
		}
		invalid := &jsontree.SchemaError{}
		if _, err := schema.CompileSchema(); errors.As(err, &invalid) {
			return invalid.At, "this is no schema that values can be checked with: " + invalid.Message
		}
	}
	for _, keyword := range []string{"annotations", "execution"} {
		if value := t.at.Get(keyword); value != nil && !value.Is(nil) && value.Kind != jsontree.Object {
			return value, keyword + " is " + value.Kind.String() + ", not an object"
		}
	}
	for _, hint := range hints {
		if value := t.at.Get("annotations").Get(hint.key); value != nil && !value.Is(nil) && value.Kind != jsontree.Boolean {
			return value, hint.key + " is " + value.Kind.String() + ", not a boolean"
		}
	}
	return nil, ""
}

// formatEntry formats a tool for people: a line for each member, and in schemas for each keyword and
// each property.
func formatEntry(n *jsontree.Node) string { return n.Spread(hasProperties) }

// hasProperties reports whether a value has schemas with properties in it.
func hasProperties(m jsontree.Member) bool {
	lists := m.Name == "properties" || m.Name == "$defs" || m.Name == "definitions"
	return lists && len(m.Value.Members) > 0 || slices.ContainsFunc(m.Value.Members, hasProperties) ||
		slices.ContainsFunc(m.Value.Items, func(n *jsontree.Node) bool { return hasProperties(jsontree.Member{Value: n}) })
}
