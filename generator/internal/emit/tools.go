package emit

import (
	"strconv"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeToolsFunc writes the function that binds an implementation to the tools of a service.
func (w *writer) writeToolsFunc(service *model.Service) {
	id := model.ToolsFunc(service.Name)
	impl := w.locals["impl"]
	addDoc(w.file.Group, id+" binds impl to the tools of "+service.Name+", for ["+w.imports[runtimePath]+".NewServer].")
	head := signatureExpr(len("func "+id), []expr{paramExpr(impl, nameExpr(service.Name))}, w.runtimeName("Tools"))
	w.file.Func().Id(id).Add(head).BlockFunc(func(g *jen.Group) {
		members := []expr{keyedMember("Service", stringLiteral(service.Name)), keyedMember("Impl", nameExpr(impl))}
		if service.Fallback {
			members = append(members, keyedMember("Fallback", w.runtimeName("FallbackTools")))
		}
		if service.Prefix != "" {
			members = append(members, keyedMember("Prefix", stringLiteral(service.Prefix)))
		}
		if service.Fallback && len(w.pkg.Inputs) > 0 {
			members = append(members, keyedMember("Asks", nameExpr("true")))
		}
		members = append(members, keyedMember("Capabilities", nameExpr("taskCapabilities()")))
		var tools []jen.Code
		for _, tool := range service.Tools {
			tools = append(tools, w.toolEntry(service, tool))
		}
		table := jen.Index().Add(w.runtimeName("Tool").code).Custom(onePerLine, tools...)
		members = append(members, keyedMember("Tools", expr{table, ""}))
		codes, _ := joinExprs(members)
		g.Return(jen.Add(w.runtimeName("Tools").code).Custom(onePerLine, codes...))
	})
}

// onePerLine formats a literal with one item per line.
var onePerLine = jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}

// toolEntry returns a tool's entry in the table: its description and its handler.
func (w *writer) toolEntry(service *model.Service, tool *model.Tool) jen.Code {
	const indent = 4 * tabWidth
	fields := []expr{keyedMember("Name", stringLiteral(tool.Name))}
	if tool.Title != "" {
		fields = append(fields, keyedMember("Title", stringLiteral(tool.Title)))
	}
	if tool.Description != "" {
		fields = append(fields, keyedMember("Description", stringLiteral(tool.Description)))
	}
	fields = append(fields, keyedMember("InputSchema", nameExpr(model.InputConst(service.Name, tool.Method))))
	if tool.OutKind == model.Structured {
		fields = append(fields, keyedMember("OutputSchema", nameExpr(model.OutputConst(service.Name, tool.Method))))
	}
	if hints := w.annotationMembers(tool.Annotations); len(hints) > 0 {
		fields = append(fields, keyedMember("Annotations", compositeLiteral(indent+len("Annotations:  ,"), w.runtimeName("Annotations"), hints...)))
	}
	fields = append(fields, keyedMember("Policy", compositeLiteral(indent+len("Annotations:  ,"), w.runtimeName("Policy"), w.policyMembers(tool.Policy)...)))
	if len(tool.Questions) > 0 {
		var questions []expr
		for _, input := range tool.Questions {
			questions = append(questions, nameExpr(model.SpecFunc(input.Name)+"()"))
		}
		spec := w.runtimeName("InputSpec")
		fields = append(fields, keyedMember("Questions", compositeLiteral(indent+len("Annotations:  ,"), expr{jen.Index().Add(spec.code), "[]" + spec.text}, questions...)))
	}
	codes, _ := joinExprs(fields)
	spec := jen.Add(w.runtimeName("ToolSpec").code).Custom(onePerLine, codes...)
	return jen.Add(w.runtimeName("NewTool").code).Call(spec, w.handlerClosure(tool))
}

func (w *writer) policyMembers(p model.Policy) []expr {
	constants := map[model.Support]string{
		model.Forbidden: "TaskForbidden", model.Optional: "TaskOptional", model.Required: "TaskRequired",
	}
	members := []expr{keyedMember("Task", w.runtimeName(constants[p.Task]))}
	for _, setting := range []struct {
		key   string
		value time.Duration
	}{{"TTL", p.TTL}, {"Poll", p.Poll}, {"Grace", p.Grace}, {"Wait", p.Wait}, {"Deadline", p.Deadline}} {
		if setting.value != 0 {
			members = append(members, keyedMember(setting.key, w.durationExpr(setting.value)))
		}
	}
	if p.Restart {
		members = append(members, keyedMember("OnLost", w.runtimeName("RestartWhenLost")))
	}
	if p.Attempts != 0 {
		members = append(members, keyedMember("Attempts", intLiteral(int64(p.Attempts))))
	}
	if p.Immediate != "" {
		members = append(members, keyedMember("Immediate", stringLiteral(p.Immediate)))
	}
	return members
}

func (w *writer) annotationMembers(a model.Annotations) []expr {
	var members []expr
	for _, hint := range []struct {
		key   string
		value *bool
	}{{"ReadOnly", a.ReadOnly}, {"Destructive", a.Destructive}, {"Idempotent", a.Idempotent}, {"OpenWorld", a.OpenWorld}} {
		if hint.value != nil {
			members = append(members, keyedMember(hint.key, callExpr(0, w.runtimeName("Hint"), nameExpr(strconv.FormatBool(*hint.value)))))
		}
	}
	return members
}

// handlerClosure returns the closure that calls the implementation. A method value would panic on a
// nil implementation while the server is being created.
func (w *writer) handlerClosure(tool *model.Tool) jen.Code {
	const indent = 3 * tabWidth
	ctx, task, in := w.locals["ctx"], w.locals["task"], w.locals["in"]
	arguments := []expr{nameExpr(ctx)}
	if tool.Task {
		arguments = append(arguments, nameExpr(task))
	}
	inType := expr{jen.Struct(), "struct{}"}
	if tool.In != nil {
		arguments = append(arguments, nameExpr(in))
		inType = w.typeExpr(tool.In)
	} else {
		in = "_"
	}
	if !tool.Task && len(tool.Questions) == 0 {
		task = "_"
	}
	params := []expr{paramExpr(ctx, w.qualifiedName("context", "Context")), paramExpr(task, pointerTo(w.runtimeName("Task"))), paramExpr(in, inType)}
	outType := w.outType(tool)
	body := func(g *jen.Group) {
		if len(tool.Questions) > 0 {
			g.Var().Id(w.locals["zero"]).Add(outType.code)
		}
		for i, input := range tool.Questions {
			answer, err := w.locals[answerName(i)], w.locals["err"]
			asked := callExpr(indent+tabWidth, instantiate(w.runtimeName("Asked"), nameExpr(input.Name)), nameExpr(task), intLiteral(int64(i)))
			g.List(jen.Id(answer), jen.Id(err)).Op(":=").Add(asked.code)
			g.If(jen.Id(err).Op("!=").Nil()).Block(jen.Return(jen.Id(w.locals["zero"]), jen.Id(err)))
			arguments = append(arguments, nameExpr(answer))
		}
		method := expr{jen.Id(w.locals["impl"]).Dot(tool.Method), w.locals["impl"] + "." + tool.Method}
		result := callExpr(indent+tabWidth+len("return struct{}{}, "), method, arguments...)
		if tool.Out == nil {
			g.Return(jen.Struct().Values(), result.code)
			return
		}
		g.Return(result.code)
	}
	return jen.Func().Add(signatureExpr(indent+len("}, func"), params, outType, nameExpr("error"))).BlockFunc(body)
}

// outType returns a tool's output type as the runtime's generic functions take it.
func (w *writer) outType(tool *model.Tool) expr {
	if tool.Out == nil {
		return expr{jen.Struct(), "struct{}"}
	}
	return w.typeExpr(tool.Out)
}
