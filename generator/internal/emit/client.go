package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeClient writes the typed client of a service.
func (w *writer) writeClient(service *model.Service) {
	id, conn, mcptask := model.ClientType(service.Name), w.locals["conn"], w.imports[runtimePath]
	addDoc(w.file.Group, id+" calls the tools of "+service.Name+" on a server. A method returns "+
		"*"+mcptask+".ToolError if the tool failed, *"+mcptask+".Error if the server refused the call, and "+
		mcptask+".ErrCancelled, ErrExpired, ErrNotFound or ErrWorkerLost if the task ended without a result.")
	w.file.Type().Id(id).Struct(jen.Id("conn").Add(w.runtimeName("Conn").code))
	constructor := model.ClientFunc(service.Name)
	addDoc(w.file.Group, constructor+" returns a client that uses "+conn+". It does not close "+conn+".")
	head := signatureExpr(len("func "+constructor), []expr{paramExpr(conn, w.runtimeName("Conn"))}, pointerTo(nameExpr(id)))
	w.file.Func().Id(constructor).Add(head).Block(jen.Return(jen.Op("&").Id(id).Values(jen.Id("conn").Op(":").Id(conn))))
	for _, tool := range service.Tools {
		w.writePlainCall(id, tool)
		if tool.Policy.Task != model.Forbidden {
			w.writeStartCall(id, tool)
			w.writeResumeCall(id, tool)
		}
	}
}

// writeClientMethod writes a client method whose body calls the runtime.
func (w *writer) writeClientMethod(client, id, doc string, params, results []expr, body ...jen.Code) {
	addDoc(w.file.Group, doc)
	c := w.locals["c"]
	receiver := "func (" + c + " *" + client + ") " + id
	w.file.Func().Params(jen.Id(c).Op("*").Id(client)).Id(id).Add(signatureExpr(len(receiver), params, results...)).Block(body...)
}

func (w *writer) writePlainCall(client string, tool *model.Tool) {
	doc := tool.Doc
	if doc == "" {
		doc = tool.Method + " calls the tool " + tool.Name + "."
		if len(doc) > docWidth-len("// ") {
			doc = tool.Method + " calls the tool of the same name."
		}
	}
	if tool.Policy.Task != model.Forbidden {
		doc += "\n\nIt waits until the task ends."
	}
	params, arguments := w.callArguments(tool)
	if tool.Out == nil {
		run := callExpr(tabWidth+len("_, err := "), instantiate(w.runtimeName("Run"), w.outType(tool)), arguments...)
		w.writeClientMethod(client, tool.Method, doc, params, []expr{nameExpr("error")},
			jen.List(jen.Id("_"), jen.Id(w.locals["err"])).Op(":=").Add(run.code), jen.Return(jen.Id(w.locals["err"])))
		return
	}
	run := callExpr(tabWidth+len("return "), instantiate(w.runtimeName("Run"), w.outType(tool)), arguments...)
	w.writeClientMethod(client, tool.Method, doc, params, []expr{w.outType(tool), nameExpr("error")}, jen.Return(run.code))
}

func (w *writer) writeStartCall(client string, tool *model.Tool) {
	id := "Start" + tool.Method
	params, arguments := w.callArguments(tool)
	start := callExpr(tabWidth+len("return "), instantiate(w.runtimeName("Start"), w.outType(tool)), arguments...)
	w.writeClientMethod(client, id, id+" starts "+tool.Method+" and returns as soon as the server has accepted the call.",
		params, w.callResults(tool), jen.Return(start.code))
}

func (w *writer) writeResumeCall(client string, tool *model.Tool) {
	id := "Resume" + tool.Method
	token := w.locals["token"]
	resume := callExpr(tabWidth+len("return "), instantiate(w.runtimeName("Resume"), w.outType(tool)),
		w.connectionExpr(), stringLiteral(tool.Name), nameExpr(token), w.optionsExpr())
	w.writeClientMethod(client, id, id+" resumes a call of "+tool.Method+" by its token, even in another process.",
		[]expr{paramExpr(token, w.runtimeName("Token")), w.optionsParam()}, w.callResults(tool), jen.Return(resume.code))
}

// callResults returns the results of Start and Resume.
func (w *writer) callResults(tool *model.Tool) []expr {
	return []expr{pointerTo(instantiate(w.runtimeName("Call"), w.outType(tool))), nameExpr("error")}
}

// callArguments returns the parameters of a client method and the arguments that it passes to the
// runtime.
func (w *writer) callArguments(tool *model.Tool) (params, arguments []expr) {
	ctx, in := w.locals["ctx"], w.locals["in"]
	params = []expr{paramExpr(ctx, w.qualifiedName("context", "Context"))}
	arguments = []expr{nameExpr(ctx), w.connectionExpr(), stringLiteral(tool.Name)}
	if tool.In != nil {
		params = append(params, paramExpr(in, w.typeExpr(tool.In)))
		arguments = append(arguments, nameExpr(in))
	} else {
		arguments = append(arguments, expr{jen.Struct().Values(), "struct{}{}"})
	}
	return append(params, w.optionsParam()), append(arguments, w.optionsExpr())
}

func (w *writer) connectionExpr() expr {
	return expr{jen.Id(w.locals["c"]).Dot("conn"), w.locals["c"] + ".conn"}
}

func (w *writer) optionsExpr() expr {
	return expr{jen.Id(w.locals["opts"]).Op("..."), w.locals["opts"] + "..."}
}

func (w *writer) optionsParam() expr {
	option := w.runtimeName("CallOption")
	return paramExpr(w.locals["opts"], expr{jen.Op("...").Add(option.code), "..." + option.text})
}
