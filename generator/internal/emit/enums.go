package emit

import (
	"strings"

	"github.com/dave/jennifer/jen"
)

// Protocol has the names and capabilities of MCP that every generated file has. They are read from
// the schemas of its revisions.
type Protocol struct {
	Statuses     []string // as on the wire
	Capabilities []Capability
}

// Capability is the JSON object that a server merges into its capabilities in one revision.
type Capability struct{ Revision, JSON string }

// Names returns the identifiers that a protocol adds to every package, unless the package declares
// them itself. Each stands for the name of the runtime to which it is mapped.
func (p Protocol) Names() map[string]string {
	names := map[string]string{"TaskStatus": "Status"}
	for _, s := range p.Statuses {
		names["Task"+statusName(s)] = statusName(s)
	}
	return names
}

// statusName names the runtime's constant of a status: input_required becomes StatusInputRequired.
func statusName(status string) string {
	var b strings.Builder
	b.WriteString("Status")
	for word := range strings.SplitSeq(status, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// writeProtocolNames writes the names of [Protocol.Names] that the package does not declare itself.
func (w *writer) writeProtocolNames() {
	if !w.pkg.Own["TaskStatus"] {
		addDoc(w.file.Group, "TaskStatus is the status of a task as its requestor sees it.")
		w.file.Type().Id("TaskStatus").Op("=").Add(runtimeName("Status"))
	}
	var statuses []jen.Code
	for _, s := range w.protocol.Statuses {
		if id := "Task" + statusName(s); !w.pkg.Own[id] {
			statuses = append(statuses, jen.Id(id).Op("=").Add(runtimeName(statusName(s))))
		}
	}
	if len(statuses) > 0 {
		addDoc(w.file.Group, "The statuses of a task. Package mcptask describes them.")
		w.file.Const().Defs(statuses...)
	}
}

func (w *writer) writeCapabilities() {
	addDoc(w.file.Group, "taskCapabilities returns the task capabilities in each protocol revision. The server leaves out those that it cannot offer to a caller.")
	w.file.Func().Id("taskCapabilities").Params().Add(runtimeName("Capabilities")).Block(jen.Return(w.capabilities()))
}

// capabilities returns the task capabilities in each revision.
func (w *writer) capabilities() jen.Code {
	var members []jen.Code
	for _, c := range w.protocol.Capabilities {
		members = append(members, jen.Lit(c.Revision).Op(":").Add(rawLiteral(c.JSON)))
	}
	return jen.Add(runtimeName("Capabilities"), bracketed("{", "}", true, members))
}
