package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// client writes the typed client of a service.
func (w *writer) client(service *model.Service) {
	id, conn, mcptask := model.ClientType(service.Name), w.locals["conn"], w.imports[runtimePath]
	addDoc(w.file.Group, id+" calls the tools of "+service.Name+" on a server. A method fails with "+
		"*"+mcptask+".ToolError where the tool did, with *"+mcptask+".Error where the server refused the call, and with one of "+
		mcptask+".ErrCancelled, ErrExpired, ErrNotFound and ErrWorkerLost where the task ended without a result.")
	w.file.Type().Id(id).Struct(jen.Id("conn").Add(w.runtime("Conn").code))
	constructor := model.ClientFunc(service.Name)
	addDoc(w.file.Group, constructor+" makes a client on a connection, which stays the caller's to close.")
	head := signature(len("func "+constructor), []expr{param(conn, w.runtime("Conn"))}, pointer(name(id)))
	w.file.Func().Id(constructor).Add(head).Block(jen.Return(jen.Op("&").Id(id).Values(jen.Id("conn").Op(":").Id(conn))))
	for _, tool := range service.Tools {
		w.plainCall(id, tool)
		if tool.Policy.Task != model.Forbidden {
			w.startCall(id, tool)
			w.resumeCall(id, tool)
		}
	}
}

// method writes a method of a client that returns what one call of the runtime does.
func (w *writer) method(client, id, doc string, params, results []expr, body ...jen.Code) {
	addDoc(w.file.Group, doc)
	c := w.locals["c"]
	receiver := "func (" + c + " *" + client + ") " + id
	w.file.Func().Params(jen.Id(c).Op("*").Id(client)).Id(id).Add(signature(len(receiver), params, results...)).Block(body...)
}

func (w *writer) plainCall(client string, tool *model.Tool) {
	doc := tool.Doc
	if doc == "" {
		doc = tool.Method + " calls the tool " + tool.Name + "."
		if len(doc) > docWidth-len("// ") {
			doc = tool.Method + " calls the tool of its name."
		}
	}
	if tool.Policy.Task != model.Forbidden {
		doc += "\n\nIt waits until the task ends."
	}
	params, arguments := w.arguments(tool)
	if tool.Out == nil {
		run := call(tabWidth+len("_, err := "), generic(w.runtime("Run"), w.outType(tool)), arguments...)
		w.method(client, tool.Method, doc, params, []expr{name("error")},
			jen.List(jen.Id("_"), jen.Id(w.locals["err"])).Op(":=").Add(run.code), jen.Return(jen.Id(w.locals["err"])))
		return
	}
	run := call(tabWidth+len("return "), generic(w.runtime("Run"), w.outType(tool)), arguments...)
	w.method(client, tool.Method, doc, params, []expr{w.outType(tool), name("error")}, jen.Return(run.code))
}

func (w *writer) startCall(client string, tool *model.Tool) {
	id := "Start" + tool.Method
	params, arguments := w.arguments(tool)
	start := call(tabWidth+len("return "), generic(w.runtime("Start"), w.outType(tool)), arguments...)
	w.method(client, id, id+" is "+tool.Method+" without the wait: it returns once the server has taken the call.",
		params, w.handle(tool), jen.Return(start.code))
}

func (w *writer) resumeCall(client string, tool *model.Tool) {
	id := "Resume" + tool.Method
	token := w.locals["token"]
	resume := call(tabWidth+len("return "), generic(w.runtime("Resume"), w.outType(tool)),
		w.connection(), literal(tool.Name), name(token), w.options())
	w.method(client, id, id+" takes up a call of "+tool.Method+" again by its token, also in another process.",
		[]expr{param(token, w.runtime("Token")), w.optionsParam()}, w.handle(tool), jen.Return(resume.code))
}

// handle is what Start and Resume return.
func (w *writer) handle(tool *model.Tool) []expr {
	return []expr{pointer(generic(w.runtime("Call"), w.outType(tool))), name("error")}
}

// arguments are the parameters of a call, and what it hands to the runtime.
func (w *writer) arguments(tool *model.Tool) (params, arguments []expr) {
	ctx, in := w.locals["ctx"], w.locals["in"]
	params = []expr{param(ctx, w.qualified("context", "Context"))}
	arguments = []expr{name(ctx), w.connection(), literal(tool.Name)}
	if tool.In != nil {
		params = append(params, param(in, w.typeOf(tool.In)))
		arguments = append(arguments, name(in))
	} else {
		arguments = append(arguments, expr{jen.Struct().Values(), "struct{}{}"})
	}
	return append(params, w.optionsParam()), append(arguments, w.options())
}

func (w *writer) connection() expr {
	return expr{jen.Id(w.locals["c"]).Dot("conn"), w.locals["c"] + ".conn"}
}

func (w *writer) options() expr {
	return expr{jen.Id(w.locals["opts"]).Op("..."), w.locals["opts"] + "..."}
}

func (w *writer) optionsParam() expr {
	option := w.runtime("CallOption")
	return param(w.locals["opts"], expr{jen.Op("...").Add(option.code), "..." + option.text})
}
