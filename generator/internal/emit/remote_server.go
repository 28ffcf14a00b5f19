package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeRemoteServer writes the interface that a server of a list of tools implements, and the function
// that binds an implementation to the tools.
func (w *writer) writeRemoteServer(service *model.Service) {
	id := model.ServerType(service.Name)
	tasks := false
	addDoc(w.file.Group, id+" has a method for each tool, which handles its calls. See "+model.ToolsFunc(service.Name)+".")
	w.file.Type().Id(id).InterfaceFunc(func(g *jen.Group) {
		for _, tool := range service.Tools {
			tasks = tasks || tool.Task
			if !w.pkg.Side.Calls() { // the client's methods have it otherwise
				addDoc(g, tool.Doc)
			}
			g.Id(tool.Method).Add(parameterList(w.handlerParams(tool)...)).Params(w.outType(tool), jen.Error())
		}
	})
	var capabilities jen.Code
	if tasks {
		capabilities = w.capabilities()
	}
	doc := ", for taskserver.New. The server lists the tools as they are in the list."
	w.writeToolsFunc(service, doc, id, capabilities)
}

// handlerParams returns the parameters of a tool's method on the server.
func (w *writer) handlerParams(tool *model.Tool) []jen.Code {
	params := []jen.Code{jen.Id(w.locals["ctx"]).Add(contextType())}
	if tool.Task {
		params = append(params, jen.Id(w.locals["task"]).Add(pointerTo(runtimeName("Task"))))
	}
	if tool.In != nil {
		params = append(params, jen.Id(w.locals["in"]).Add(w.typeExpr(tool.In)))
	}
	return params
}

// writeEntries writes the tools as the list has them. They come last because they are long.
func (w *writer) writeEntries(service *model.Service) {
	for _, tool := range service.Tools {
		w.file.Line()
		w.file.Const().Id(tool.EntryConst).Op("=").Add(rawLiteral(tool.Entry))
	}
}
