package emit

import (
	"strconv"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeToolsFunc writes the function that binds an implementation of an interface to the tools of a
// service. capabilities is nil if no revision declares any.
func (w *writer) writeToolsFunc(service *model.Service, doc, implements string, capabilities jen.Code) {
	id, impl := model.ToolsFunc(service.Name), w.locals["impl"]
	name := member("Service", stringLiteral(service.Name))
	members := []jen.Code{name, member("Impl", jen.Id(impl))}
	if service.Fallback {
		members = append(members, member("Fallback", runtimeName("FallbackTools")))
	}
	if service.Prefix != "" {
		members = append(members, member("Prefix", stringLiteral(service.Prefix)))
	}
	if service.Fallback && w.pkg.MayAsk(service) {
		members = append(members, member("Asks", jen.True()))
	}
	if capabilities != nil {
		members = append(members, member("Capabilities", capabilities))
	}
	var tools []jen.Code
	for _, tool := range service.Tools {
		tools = append(tools, runtimeName("NewTool").Call(w.toolSpec(tool), w.handler(tool)))
	}
	if len(w.pkg.Errors) > 0 {
		var errors []jen.Code
		for _, e := range w.pkg.Errors {
			errors = append(errors, jen.Id(model.ErrorSpecFunc(e.Name)).Call())
		}
		members = append(members, member("Errors", literal(jen.Index().Add(runtimeName("ErrorSpec")), errors...)))
	}
	members = append(members, member("Tools", jen.Index().Add(runtimeName("Tool"), bracketed("{", "}", true, tools))))
	addDoc(w.file.Group, id+" binds "+impl+" to the tools"+doc)
	w.file.Func().Id(id).Params(jen.Id(impl).Id(implements)).Add(runtimeName("Tools")).Block(
		// The methods of a nil implementation have no values.
		jen.If(jen.Id(impl).Op("==").Nil()).Block(jen.Return(literal(runtimeName("Tools"), name)).Comment("which taskserver.New refuses")),
		jen.Return(literal(runtimeName("Tools"), members...)),
	)
}

// formerNames returns the names that a tool had before.
func formerNames(tool *model.Tool) (names []jen.Code) {
	for _, name := range tool.Was {
		names = append(names, jen.Lit(name))
	}
	return names
}

// toolSpec returns the description of a tool.
func (w *writer) toolSpec(tool *model.Tool) jen.Code {
	policy := member("Policy", literal(runtimeName("Policy"), policyMembers(tool.Policy)...))
	if tool.EntryConst != "" {
		fields := []jen.Code{member("Entry", jen.Id(tool.EntryConst))}
		if tool.Task {
			fields = append(fields, policy)
		}
		return literal(runtimeName("ToolSpec"), fields...)
	}
	fields := []jen.Code{member("Name", stringLiteral(tool.Name))}
	if tool.Title != "" {
		fields = append(fields, member("Title", stringLiteral(tool.Title)))
	}
	if len(tool.Was) > 0 {
		fields = append(fields, member("Was", jen.Index().String().Values(formerNames(tool)...)))
	}
	if tool.Description != "" {
		fields = append(fields, member("Description", stringLiteral(tool.Description)))
	}
	input := runtimeName("NoArguments")
	if tool.InputConst != "" {
		input = jen.Id(tool.InputConst)
	}
	fields = append(fields, member("InputSchema", input))
	if tool.OutputConst != "" {
		fields = append(fields, member("OutputSchema", jen.Id(tool.OutputConst)))
	}
	if hints := annotationMembers(tool.Annotations); len(hints) > 0 {
		fields = append(fields, member("Annotations", literal(runtimeName("Annotations"), hints...)))
	}
	fields = append(fields, policy)
	if len(tool.Questions) > 0 {
		var questions []jen.Code
		for _, input := range tool.Questions {
			questions = append(questions, jen.Id(w.pkg.SpecFunc(input.Name)).Call())
		}
		fields = append(fields, member("Questions", literal(jen.Index().Add(runtimeName("InputSpec")), questions...)))
	}
	return jen.Add(runtimeName("ToolSpec"), bracketed("{", "}", true, fields))
}

func policyMembers(p model.Policy) []jen.Code {
	constants := map[model.Support]string{
		model.Forbidden: "TaskForbidden", model.Optional: "TaskOptional", model.Required: "TaskRequired",
	}
	members := []jen.Code{member("Task", runtimeName(constants[p.Task]))}
	for _, setting := range []struct {
		key   string
		value time.Duration
	}{{"TTL", p.TTL}, {"Poll", p.Poll}, {"Grace", p.Grace}, {"Wait", p.Wait}, {"Deadline", p.Deadline}} {
		if setting.value != 0 {
			members = append(members, member(setting.key, durationExpr(setting.value)))
		}
	}
	if p.Concurrency != 0 {
		members = append(members, member("Concurrency", intLiteral(int64(p.Concurrency))))
	}
	if p.Restart {
		members = append(members, member("OnLost", runtimeName("RestartWhenLost")))
	}
	if p.RunChanged {
		members = append(members, member("OnChange", runtimeName("RunOnChange")))
	}
	if p.Keep {
		members = append(members, member("OnLeave", runtimeName("KeepOnLeave")))
	}
	if p.Attempts != 0 {
		members = append(members, member("Attempts", intLiteral(int64(p.Attempts))))
	}
	if p.Immediate != "" {
		members = append(members, member("Immediate", stringLiteral(p.Immediate)))
	}
	return members
}

func annotationMembers(a model.Annotations) []jen.Code {
	var members []jen.Code
	for _, hint := range []struct {
		key   string
		value *bool
	}{{"ReadOnly", a.ReadOnly}, {"Destructive", a.Destructive}, {"Idempotent", a.Idempotent}, {"OpenWorld", a.OpenWorld}} {
		if hint.value != nil {
			members = append(members, member(hint.key, runtimeName("Hint").Call(jen.Id(strconv.FormatBool(*hint.value)))))
		}
	}
	return members
}

// isHandler reports whether a tool's method has the signature of a handler.
func isHandler(tool *model.Tool) bool {
	return tool.Task && tool.In != nil && len(tool.Questions) == 0 && tool.Out != nil
}

// handler returns the handler of a tool: its method, or a closure that calls the method.
func (w *writer) handler(tool *model.Tool) jen.Code {
	ctx, task, in := w.locals["ctx"], w.locals["task"], w.locals["in"]
	method := jen.Id(w.locals["impl"]).Dot(tool.Method)
	if isHandler(tool) {
		return method
	}
	arguments := []jen.Code{jen.Id(ctx)}
	if tool.Task {
		arguments = append(arguments, jen.Id(task))
	}
	inType := jen.Struct()
	if tool.In != nil {
		arguments = append(arguments, jen.Id(in))
		inType = w.typeExpr(tool.In)
	} else {
		in = "_"
	}
	if !tool.Task && len(tool.Questions) == 0 {
		task = "_"
	}
	params := parameterList(jen.Id(ctx).Add(contextType()), jen.Id(task).Add(pointerTo(runtimeName("Task"))), jen.Id(in).Add(inType))
	return jen.Func().Add(params).Params(w.outType(tool), jen.Error()).BlockFunc(func(g *jen.Group) {
		if len(tool.Questions) > 0 {
			g.Var().Id(w.locals["zero"]).Add(w.outType(tool))
		}
		for i, input := range tool.Questions {
			answer, err := w.locals[answerName(i)], w.locals["err"]
			g.List(jen.Id(answer), jen.Id(err)).Op(":=").Add(runtimeName("Asked")).Types(jen.Id(input.Name)).Call(jen.Id(task), intLiteral(int64(i)))
			g.If(jen.Id(err).Op("!=").Nil()).Block(jen.Return(jen.Id(w.locals["zero"]), jen.Id(err)))
			arguments = append(arguments, jen.Id(answer))
		}
		call := method.Call(arguments...)
		if tool.Out == nil {
			g.Return(jen.Struct().Values(), call)
			return
		}
		g.Return(call)
	})
}

// outType returns a tool's output type as the runtime's generic functions take it.
func (w *writer) outType(tool *model.Tool) jen.Code {
	if tool.Out == nil {
		return jen.Struct()
	}
	return w.typeExpr(tool.Out)
}
