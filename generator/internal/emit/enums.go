package emit

import (
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"
)

// Protocol is what every generated file says about MCP, from the schemas of its revisions.
type Protocol struct {
	Statuses     []Status
	Codes        []Code
	Capabilities []Capability
}

// Status is a state of a task. Its Doc starts with a verb, as does that of a Code.
type Status struct{ Name, Doc string }

// Code is an error code of JSON-RPC.
type Code struct {
	Name  string
	Value int
	Doc   string
}

// Capability is what a server declares in one revision: the JSON object merged into its capabilities.
type Capability struct{ Revision, JSON string }

// Names are the identifiers that a protocol brings to every package.
func (p Protocol) Names() []string {
	names := []string{"TaskStatus", "taskCapabilities"}
	for _, s := range p.Statuses {
		names = append(names, statusName(s.Name))
	}
	for _, c := range p.Codes {
		names = append(names, codeName(c.Name))
	}
	return names
}

// statusName is the constant of a status: TaskStatusInputRequired of input_required.
func statusName(status string) string {
	var b strings.Builder
	b.WriteString("TaskStatus")
	for word := range strings.SplitSeq(status, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func codeName(name string) string { return "Code" + name }

// sentence puts a name before the documentation of the schemas, which starts with its verb.
func sentence(name, doc string) string {
	if doc == "" {
		return name + " has no description."
	}
	return name + " " + strings.ToLower(doc[:1]) + doc[1:]
}

func (w *writer) enums() {
	addDoc(w.file.Group, "TaskStatus is the state of a task as its requestor sees it.")
	w.file.Type().Id("TaskStatus").Op("=").Add(w.runtime("Status").code)
	addDoc(w.file.Group, "The states of a task.")
	w.file.Const().DefsFunc(func(g *jen.Group) {
		for _, s := range w.protocol.Statuses {
			addDoc(g, sentence(statusName(s.Name), s.Doc))
			g.Id(statusName(s.Name)).Id("TaskStatus").Op("=").Lit(s.Name)
		}
	})
	addDoc(w.file.Group, "The codes of the errors that a server sends.")
	w.file.Const().DefsFunc(func(g *jen.Group) {
		for _, c := range w.protocol.Codes {
			addDoc(g, sentence(codeName(c.Name), c.Doc))
			g.Id(codeName(c.Name)).Op("=").Op(strconv.Itoa(c.Value))
		}
	})
}

func (w *writer) capabilities() {
	addDoc(w.file.Group, "taskCapabilities is what a server declares of tasks, by revision of the protocol.")
	w.file.Func().Id("taskCapabilities").Params().Add(w.runtime("Capabilities").code).BlockFunc(func(g *jen.Group) {
		var members []expr
		for _, c := range w.protocol.Capabilities {
			members = append(members, expr{jen.Lit(c.Revision).Op(":").Add(raw(c.JSON)), strings.Repeat(" ", lineWidth)})
		}
		g.Return(composite(0, w.runtime("Capabilities"), members...).code)
	})
}
