package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeRemoteServer writes the interface that a server of a list of tools implements, and the function
// that binds an implementation to the tools.
func (w *writer) writeRemoteServer(service *model.Service) {
	id, bind, impl := model.ServerType(service.Name), model.ToolsFunc(service.Name), w.locals["impl"]
	tasks := false
	addDoc(w.file.Group, id+" has a method for each tool, which handles its calls. See "+bind+".")
	w.file.Type().Id(id).InterfaceFunc(func(g *jen.Group) {
		for _, tool := range service.Tools {
			tasks = tasks || tool.Task
			if !w.pkg.Side.Calls() { // the client's methods have it otherwise
				addDoc(g, tool.Doc)
			}
			g.Id(tool.Method).Add(parameterList(w.handlerParams(tool)...)).Params(w.outType(tool), jen.Error())
		}
	})
	addDoc(w.file.Group, bind+" binds impl to the tools, for ["+w.imports[runtimePath]+".NewServer]. The server lists the tools as they are in the list.")
	members := []jen.Code{member("Service", stringLiteral(service.Name)), member("Impl", jen.Id(impl))}
	if tasks {
		members = append(members, member("Capabilities", w.capabilities()))
	}
	var tools []jen.Code
	for _, tool := range service.Tools {
		spec := []jen.Code{member("Entry", jen.Id(tool.EntryConst))}
		if tool.Task {
			spec = append(spec, member("Policy", literal(runtimeName("Policy"), policyMembers(tool.Policy)...)))
		}
		tools = append(tools, runtimeName("NewTool").Call(literal(runtimeName("ToolSpec"), spec...), w.handler(tool)))
	}
	members = append(members, member("Tools", jen.Index().Add(runtimeName("Tool"), bracketed("{", "}", true, tools))))
	w.file.Func().Id(bind).Params(jen.Id(impl).Id(id)).Add(runtimeName("Tools")).Block(
		// The methods of a nil implementation have no values.
		jen.If(jen.Id(impl).Op("==").Nil()).Block(jen.Return(literal(runtimeName("Tools"), members[0])).Comment("which NewServer refuses")),
		jen.Return(literal(runtimeName("Tools"), members...)),
	)
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
