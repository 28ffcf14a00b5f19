package terminal

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Argument is an argument of a tool.
type Argument struct {
	Name     string
	Values   []string // to choose from, as a person types them
	Required bool
	// Example is a value of an argument that is written as JSON, because it has objects. It is nil for others.
	Example json.RawMessage
}

// ListArguments returns the arguments of a tool: the required ones first, then the others, both in the order of the
// tool's schema.
func ListArguments(tool mcptask.ToolInfo) (arguments []Argument) {
	o := newOutline(tool.InputSchema)
	for _, p := range o.properties(o.root) {
		a := Argument{Name: p.name, Values: o.schemaOf(p.raw).values(), Required: p.isRequired}
		if len(o.properties(p.raw)) > 0 {
			a.Example = o.example(p.name, p.raw, maxDepth)
		}
		arguments = append(arguments, a)
	}
	return arguments
}

// DescribeTool writes what a tool does, takes and returns. command returns the command line that calls the tool with
// arguments.
func DescribeTool(w io.Writer, tool mcptask.ToolInfo, command func(arguments ...string) string) error {
	p := page{width: math.MaxInt, look: newStyle(false)}
	if columns := windowWidth(w); columns > 0 {
		p.width, p.look = columns-1, newStyle(os.Getenv("TERM") != "dumb")
	}
	if text := strings.TrimSpace(Printable(tool.Description, true)); text != "" {
		p.add(wrap(text, p.width)...)
		p.add("")
	}
	var words []string
	nested := ""
	for _, a := range ListArguments(tool) {
		switch {
		case a.Required && a.Example != nil:
			words = append(words, a.Name+":="+string(a.Example))
		case a.Required:
			words = append(words, a.Name+"="+strings.ToUpper(a.Name))
		case a.Example != nil && nested == "":
			nested = a.Name + ":=" + string(a.Example)
		}
	}
	p.add("  " + command(words...))
	p.addOutline("Arguments", newOutline(tool.InputSchema))
	if nested != "" {
		p.add("", "An object is written as JSON:", "", "  "+command(append(words, nested)...))
	}
	result := newOutline(tool.OutputSchema)
	result.isResult = true
	p.addOutline("Result", result)
	switch tool.TaskSupport {
	case mcptask.TaskRequired:
		p.add("", "It always runs as a task.")
	case mcptask.TaskOptional:
		p.add("", "It may run as a task.")
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// page is a text for a window.
type page struct {
	strings.Builder
	width int
	look  style
}

// add adds lines as they are.
func (p *page) add(lines ...string) {
	for _, line := range lines {
		p.WriteString(line + "\n")
	}
}

// These constants bound the columns of an outline.
const (
	widestName = 32
	widestKind = 40
)

// addOutline fills an outline and adds it, if it has properties. The descriptions stand beside the types if the window
// has room for all of one, and else below.
func (p *page) addOutline(title string, o *outline) {
	o.add(0, o.root)
	if o.isTooLong {
		p.add("", title+": the schema is too long to describe")
	}
	if len(o.rows) == 0 {
		return
	}
	p.add("", p.look.bold(title))
	names, kinds := 0, 0
	for _, r := range o.rows {
		names = max(names, min(columns(r.name), widestName))
		kinds = max(kinds, min(columns(r.kind), widestKind))
	}
	pad := func(text string, to int) string { return text + strings.Repeat(" ", max(to-columns(text), 0)) + "  " }
	for _, r := range o.rows {
		left := "  " + pad(r.name, names)
		kind := pad(r.kind, kinds)
		if columns(left)+columns(kind)+columns(r.description) <= p.width {
			line := left + kind + p.look.faint(r.description)
			p.add(strings.TrimRight(line, " "))
			continue
		}
		indent := strings.Repeat(" ", names+4)
		for i, line := range wrap(r.kind, p.width-columns(left)) {
			if i > 0 {
				left = indent
			}
			p.add(left + line)
		}
		for _, line := range wrap(r.description, p.width-names-6) {
			p.add(indent + "  " + p.look.faint(line))
		}
	}
}
