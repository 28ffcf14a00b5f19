package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeClient writes the typed client of a service.
func (w *writer) writeClient(service *model.Service) {
	id, conn, mcptask := model.ClientType(service.Name), w.locals["conn"], w.imports[runtimePath]
	addDoc(w.file.Group, id+" calls the tools of "+service.Name+" on a server. The method of a tool waits for the result. It returns "+
		"*"+mcptask+".ToolError if the tool failed, *"+mcptask+".Error if the server refused the call, and "+
		mcptask+".ErrCancelled, ErrChanged, ErrDeadline, ErrExpired, ErrNotFound or ErrWorkerLost if the task ended without a result.")
	w.file.Type().Id(id).Struct(jen.Id("conn").Add(runtimeName("Conn")))
	constructor := model.ClientFunc(service.Name)
	addDoc(w.file.Group, constructor+" returns a client that uses "+conn+". It does not close "+conn+".")
	w.file.Func().Id(constructor).Params(jen.Id(conn).Add(runtimeName("Conn"))).Add(pointerTo(jen.Id(id))).Block(
		jen.Return(jen.Op("&").Id(id).Values(jen.Id("conn").Op(":").Id(conn))))
	for _, tool := range service.Tools {
		w.writePlainCall(id, tool)
		if tool.Policy.Task != model.Forbidden {
			w.writeStartCall(id, tool)
			w.writeResumeCall(id, tool)
		}
	}
}

// writeClientMethod writes a client method whose body calls the runtime.
func (w *writer) writeClientMethod(client, id, doc string, params []jen.Code, results *jen.Statement, body ...jen.Code) {
	addDoc(w.file.Group, doc)
	w.file.Func().Params(jen.Id(w.locals["c"]).Op("*").Id(client)).Id(id).Add(parameterList(params...)).Add(results).Block(body...)
}

func (w *writer) writePlainCall(client string, tool *model.Tool) {
	doc := tool.Doc
	if doc == "" {
		doc = tool.Method + " calls the tool " + tool.Name + "."
	}
	params, arguments := w.callArguments(tool)
	run := runtimeName("Run").Types(w.outType(tool)).Call(arguments...)
	if tool.Out == nil {
		err := w.locals["err"]
		w.writeClientMethod(client, tool.Method, doc, params, jen.Error(),
			jen.List(jen.Id("_"), jen.Id(err)).Op(":=").Add(run), jen.Return(jen.Id(err)))
		return
	}
	w.writeClientMethod(client, tool.Method, doc, params, jen.Params(w.outType(tool), jen.Error()), jen.Return(run))
}

func (w *writer) writeStartCall(client string, tool *model.Tool) {
	id := "Start" + tool.Method
	params, arguments := w.callArguments(tool)
	w.writeClientMethod(client, id, id+" starts "+tool.Method+" and returns as soon as the server has accepted the call.",
		params, w.callResults(tool), jen.Return(runtimeName("Start").Types(w.outType(tool)).Call(arguments...)))
}

func (w *writer) writeResumeCall(client string, tool *model.Tool) {
	id, token := "Resume"+tool.Method, w.locals["token"]
	current := jen.Id(token)
	if len(tool.Was) > 0 {
		current = current.Dot("Renamed").Call(append([]jen.Code{stringLiteral(tool.Name)}, formerNames(tool)...)...)
	}
	resume := runtimeName("Resume").Types(w.outType(tool)).Call(w.connection(), stringLiteral(tool.Name), current, w.options())
	w.writeClientMethod(client, id, id+" resumes a call of "+tool.Method+" by its token, even in another process.",
		[]jen.Code{jen.Id(token).Add(runtimeName("Token")), w.optionsParam()}, w.callResults(tool), jen.Return(resume))
}

// callResults returns the results of Start and Resume.
func (w *writer) callResults(tool *model.Tool) *jen.Statement {
	return jen.Params(pointerTo(runtimeName("Call")).Types(w.outType(tool)), jen.Error())
}

// callArguments returns the parameters of a client method and the arguments that it passes to the
// runtime.
func (w *writer) callArguments(tool *model.Tool) (params, arguments []jen.Code) {
	ctx, in := w.locals["ctx"], w.locals["in"]
	params = []jen.Code{jen.Id(ctx).Add(contextType())}
	arguments = []jen.Code{jen.Id(ctx), w.connection(), stringLiteral(tool.Name)}
	if tool.In != nil {
		params = append(params, jen.Id(in).Add(w.typeExpr(tool.In)))
		given := jen.Id(in)
		if tool.InputWritesNull {
			given = runtimeName("WithoutNull").Call(jen.Id(in), jen.Id(tool.InputConst))
		}
		arguments = append(arguments, given)
	} else {
		arguments = append(arguments, jen.Struct().Values())
	}
	return append(params, w.optionsParam()), append(arguments, w.options())
}

func (w *writer) connection() jen.Code { return jen.Id(w.locals["c"]).Dot("conn") }

func (w *writer) options() jen.Code { return jen.Id(w.locals["opts"]).Op("...") }

func (w *writer) optionsParam() jen.Code {
	return jen.Id(w.locals["opts"]).Op("...").Add(runtimeName("CallOption"))
}
