package emit

import (
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// tools writes the function that binds an implementation to the tools of a service.
func (w *writer) tools(service *model.Service) {
	id := model.ToolsFunc(service.Name)
	impl := w.locals["impl"]
	addDoc(w.file.Group, id+" binds impl to the tools of "+service.Name+", for ["+w.imports[runtimePath]+".NewServer].")
	head := signature(len("func "+id), []expr{param(impl, name(service.Name))}, w.runtime("Tools"))
	w.file.Func().Id(id).Add(head).BlockFunc(func(g *jen.Group) {
		members := []expr{member("Service", literal(service.Name)), member("Impl", name(impl))}
		if service.Fallback {
			members = append(members, member("Fallback", w.runtime("FallbackTools")))
		}
		if service.Prefix != "" {
			members = append(members, member("Prefix", literal(service.Prefix)))
		}
		if service.Fallback && len(w.pkg.Inputs) > 0 {
			members = append(members, member("Asks", name("true")))
		}
		members = append(members, member("Capabilities", name("taskCapabilities()")))
		var tools []jen.Code
		for _, tool := range service.Tools {
			tools = append(tools, w.tool(service, tool))
		}
		table := jen.Index().Add(w.runtime("Tool").code).Custom(block, tools...)
		members = append(members, member("Tools", expr{table, ""}))
		var codes []jen.Code
		for _, m := range members {
			codes = append(codes, m.code)
		}
		g.Return(jen.Add(w.runtime("Tools").code).Custom(block, codes...))
	})
}

// block is a literal with one item a line.
var block = jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}

// tool writes one entry of the table: what the tool is, and how it is called.
func (w *writer) tool(service *model.Service, tool *model.Tool) jen.Code {
	const indent = 4 * tabWidth
	fields := []expr{member("Name", literal(tool.Name))}
	if tool.Title != "" {
		fields = append(fields, member("Title", literal(tool.Title)))
	}
	if tool.Description != "" {
		fields = append(fields, member("Description", literal(tool.Description)))
	}
	fields = append(fields, member("InputSchema", name(model.InputConst(service.Name, tool.Method))))
	if tool.OutKind == model.Structured {
		fields = append(fields, member("OutputSchema", name(model.OutputConst(service.Name, tool.Method))))
	}
	if hints := w.annotations(tool.Annotations); len(hints) > 0 {
		fields = append(fields, member("Annotations", composite(indent+len("Annotations:  ,"), w.runtime("Annotations"), hints...)))
	}
	fields = append(fields, member("Policy", composite(indent+len("Annotations:  ,"), w.runtime("Policy"), w.policy(tool.Policy)...)))
	if len(tool.Questions) > 0 {
		var questions []expr
		for _, input := range tool.Questions {
			questions = append(questions, name(model.SpecFunc(input.Name)+"()"))
		}
		spec := w.runtime("InputSpec")
		fields = append(fields, member("Questions", composite(indent+len("Annotations:  ,"), expr{jen.Index().Add(spec.code), "[]" + spec.text}, questions...)))
	}
	var codes []jen.Code
	for _, f := range fields {
		codes = append(codes, f.code)
	}
	spec := jen.Add(w.runtime("ToolSpec").code).Custom(block, codes...)
	return jen.Add(w.runtime("NewTool").code).Call(spec, w.handler(tool))
}

func (w *writer) policy(p model.Policy) []expr {
	constants := map[model.Support]string{
		model.Forbidden: "TaskForbidden", model.Optional: "TaskOptional", model.Required: "TaskRequired",
	}
	members := []expr{member("Task", w.runtime(constants[p.Task]))}
	if p.TTL != 0 {
		members = append(members, member("TTL", w.duration(p.TTL)))
	}
	if p.Poll != 0 {
		members = append(members, member("Poll", w.duration(p.Poll)))
	}
	if p.Grace != 0 {
		members = append(members, member("Grace", w.duration(p.Grace)))
	}
	if p.Wait != 0 {
		members = append(members, member("Wait", w.duration(p.Wait)))
	}
	if p.Deadline != 0 {
		members = append(members, member("Deadline", w.duration(p.Deadline)))
	}
	if p.Restart {
		members = append(members, member("OnLost", w.runtime("RestartWhenLost")))
	}
	if p.Immediate != "" {
		members = append(members, member("Immediate", literal(p.Immediate)))
	}
	return members
}

func (w *writer) annotations(a model.Annotations) []expr {
	var members []expr
	for _, hint := range []struct {
		key   string
		value *bool
	}{{"ReadOnly", a.ReadOnly}, {"Destructive", a.Destructive}, {"Idempotent", a.Idempotent}, {"OpenWorld", a.OpenWorld}} {
		if hint.value != nil {
			members = append(members, member(hint.key, call(0, w.runtime("Hint"), name(strconv.FormatBool(*hint.value)))))
		}
	}
	return members
}

// handler writes the closure that calls the implementation. It is a closure, not a method value,
// because the latter panics on a nil implementation while the server is being made.
func (w *writer) handler(tool *model.Tool) jen.Code {
	const indent = 3 * tabWidth
	ctx, task, in := w.locals["ctx"], w.locals["task"], w.locals["in"]
	arguments := []expr{name(ctx)}
	if tool.Task {
		arguments = append(arguments, name(task))
	}
	inType := expr{jen.Struct(), "struct{}"}
	if tool.In != nil {
		arguments = append(arguments, name(in))
		inType = w.typeOf(tool.In)
	} else {
		in = "_"
	}
	if !tool.Task && len(tool.Questions) == 0 {
		task = "_"
	}
	params := []expr{param(ctx, w.qualified("context", "Context")), param(task, pointer(w.runtime("Task"))), param(in, inType)}
	outType := w.outType(tool)
	body := func(g *jen.Group) {
		if len(tool.Questions) > 0 {
			g.Var().Id(w.locals["zero"]).Add(outType.code)
		}
		for i, input := range tool.Questions {
			answer, err := w.locals[answerName(i)], w.locals["err"]
			asked := call(indent+tabWidth, generic(w.runtime("Asked"), name(input.Name)), name(task), literalInt(int64(i)))
			g.List(jen.Id(answer), jen.Id(err)).Op(":=").Add(asked.code)
			g.If(jen.Id(err).Op("!=").Nil()).Block(jen.Return(jen.Id(w.locals["zero"]), jen.Id(err)))
			arguments = append(arguments, name(answer))
		}
		method := expr{jen.Id(w.locals["impl"]).Dot(tool.Method), w.locals["impl"] + "." + tool.Method}
		result := call(indent+tabWidth+len("return struct{}{}, "), method, arguments...)
		if tool.Out == nil {
			g.Return(jen.Struct().Values(), result.code)
			return
		}
		g.Return(result.code)
	}
	return jen.Func().Add(signature(indent+len("}, func"), params, outType, name("error"))).BlockFunc(body)
}

// outType is the output of a tool as the runtime's generics have it.
func (w *writer) outType(tool *model.Tool) expr {
	if tool.Out == nil {
		return expr{jen.Struct(), "struct{}"}
	}
	return w.typeOf(tool.Out)
}
