package toolschema

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	validator "github.com/santhosh-tekuri/jsonschema/v6"

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

// servedName matches the names of tools that the runtime offers.
var servedName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// serverFault says why no server of the runtime can offer a tool, and where.
func (t *tool) serverFault() (at *jsontree.Node, fault string) {
	if !servedName.MatchString(t.name) {
		return t.at, "the name " + words.QuoteJSON(t.name) + " is not 1 to 128 letters, digits, underscores, hyphens or dots"
	}
	if t.input != nil && !t.input.Get("type").Is("object") {
		return t.input, `an inputSchema needs "type": "object"`
	}
	for _, schema := range []*jsontree.Node{t.input, t.output} {
		if schema == nil {
			continue
		}
		if err := compile(schema); err != nil {
			text := strings.Join(strings.Fields(err.Error()), " ")
			return schema, "this is no schema that values can be checked with: " + text
		}
	}
	return nil, ""
}

// compile compiles a schema as the runtime does.
func compile(schema *jsontree.Node) error {
	value, err := validator.UnmarshalJSON(bytes.NewReader([]byte(schema.Compact())))
	if err != nil {
		return err
	}
	c := validator.NewCompiler()
	c.UseLoader(noDocuments{})
	c.DefaultDraft(validator.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema:tool", value); err != nil {
		return err
	}
	_, err = c.Compile("schema:tool")
	return err
}

// noDocuments loads no other documents.
type noDocuments struct{}

func (noDocuments) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is another document", url)
}

// formatEntry formats a tool for people: a line for each member, and in schemas for each keyword and
// each property.
func formatEntry(n *jsontree.Node) string {
	var b strings.Builder
	writeMembers(&b, n, "")
	return b.String()
}

func writeMembers(b *strings.Builder, n *jsontree.Node, indent string) {
	b.WriteString("{")
	for i, m := range n.Members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + "  " + words.QuoteJSON(m.Name) + ": ")
		writeSpread(b, m.Name, m.Value, indent+"  ")
	}
	b.WriteString("\n" + indent + "}")
}

// writeSpread writes a value on one line, unless it has schemas with properties in it.
func writeSpread(b *strings.Builder, name string, n *jsontree.Node, indent string) {
	switch {
	case n.Kind == jsontree.Object && len(n.Members) > 0 && (isSpread(name) || spreads(n)):
		writeMembers(b, n, indent)
	case n.Kind == jsontree.Array && spreads(n):
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n" + indent + "  ")
			writeSpread(b, "", item, indent+"  ")
		}
		b.WriteString("\n" + indent + "]")
	default:
		b.WriteString(n.Spaced())
	}
}

func isSpread(name string) bool {
	return name == "properties" || name == "$defs" || name == "definitions"
}

// spreads reports whether a value has schemas with properties in it.
func spreads(n *jsontree.Node) bool {
	for _, m := range n.Members {
		if isSpread(m.Name) && m.Value.Kind == jsontree.Object && len(m.Value.Members) > 0 || spreads(m.Value) {
			return true
		}
	}
	for _, item := range n.Items {
		if spreads(item) {
			return true
		}
	}
	return false
}
