package emit

import (
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Protocol is what every generated file says about MCP, read from the schemas of its revisions.
type Protocol struct {
	Statuses     []schema.Status
	Codes        []schema.ErrorCode
	Capabilities []Capability
}

// Capability is the JSON object that a server merges into its capabilities in one revision.
type Capability struct{ Revision, JSON string }

// Names returns the identifiers that a protocol adds to every package.
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

// statusName names the constant of a status: input_required becomes TaskStatusInputRequired.
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

func (w *writer) writeEnums() {
	addDoc(w.file.Group, "TaskStatus is the state of a task as its requestor sees it.")
	w.file.Type().Id("TaskStatus").Op("=").Add(w.runtimeName("Status").code)
	addDoc(w.file.Group, "The states of a task.")
	w.file.Const().DefsFunc(func(g *jen.Group) {
		for _, s := range w.protocol.Statuses {
			addDoc(g, words.AfterName(statusName(s.Name), s.Doc))
			g.Id(statusName(s.Name)).Id("TaskStatus").Op("=").Lit(s.Name)
		}
	})
	addDoc(w.file.Group, "The error codes that a server sends.")
	w.file.Const().DefsFunc(func(g *jen.Group) {
		for _, c := range w.protocol.Codes {
			addDoc(g, words.AfterName(codeName(c.Name), c.Doc))
			g.Id(codeName(c.Name)).Op("=").Op(strconv.Itoa(c.Code))
		}
	})
}

func (w *writer) writeCapabilities() {
	addDoc(w.file.Group, "taskCapabilities returns the task capabilities that a server declares in each protocol revision.")
	w.file.Func().Id("taskCapabilities").Params().Add(w.runtimeName("Capabilities").code).BlockFunc(func(g *jen.Group) {
		var members []expr
		for _, c := range w.protocol.Capabilities {
			members = append(members, expr{jen.Lit(c.Revision).Op(":").Add(rawLiteral(c.JSON)), strings.Repeat(" ", lineWidth)})
		}
		g.Return(compositeLiteral(0, w.runtimeName("Capabilities"), members...).code)
	})
}
