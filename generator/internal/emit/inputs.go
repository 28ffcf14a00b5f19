package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// inputs writes for each input what describes it, asks for it and answers it.
func (w *writer) inputs() {
	for _, input := range w.pkg.Inputs {
		w.inputSpec(input)
		if w.pkg.Side.Serves() {
			w.ask(input)
		}
		if w.pkg.Side.Calls() {
			w.answer(input)
		}
	}
}

func (w *writer) inputSpec(input *model.Input) {
	id, spec := model.SpecFunc(input.Name), w.runtime("InputSpec")
	addDoc(w.file.Group, id+" describes "+input.Name+" to the runtime.")
	members := []expr{member("Name", literal(input.Name))}
	if input.Message != "" {
		members = append(members, member("Message", literal(input.Message)))
	}
	members = append(members, member("Schema", name(model.SchemaConst(input.Name))))
	w.file.Func().Id(id).Params().Add(spec.code).Block(jen.Return(composite(tabWidth+len("return "), spec, members...).code))
}

func (w *writer) ask(input *model.Input) {
	id, mcptask := model.AskFunc(input.Name), w.imports[runtimePath]
	ctx, task, step, message := w.locals["ctx"], w.locals["task"], w.locals["step"], w.locals["message"]
	doc := id + " asks for " + input.Name + " and waits for the answer. The step names the question within the task: " +
		"a handler that runs again gets the answer that is stored under it."
	if input.Message != "" {
		doc += " An empty message is the declared one."
	}
	addDoc(w.file.Group, doc+" It fails with "+mcptask+".ErrDeclined, ErrDismissed or ErrCannotAsk.")
	params := []expr{
		param(ctx, w.qualified("context", "Context")), param(task, pointer(w.runtime("Task"))),
		{jen.List(jen.Id(step), jen.Id(message)).String(), step + ", " + message + " string"},
	}
	ask := call(tabWidth+len("return "), generic(w.runtime("Ask"), name(input.Name)),
		name(ctx), name(task), name(model.SpecFunc(input.Name)+"()"), name(step), name(message))
	w.file.Func().Id(id).Add(signature(len("func "+id), params, name(input.Name), name("error"))).Block(jen.Return(ask.code))
}

func (w *writer) answer(input *model.Input) {
	id, f := model.AnswerFunc(input.Name), w.locals["f"]
	addDoc(w.file.Group, id+" answers the questions for "+input.Name+" with f, on a client.")
	parameters := []expr{w.qualified("context", "Context"), w.runtime("Question")}
	codes, text := join(parameters)
	function := expr{jen.Func().Params(codes...).Params(jen.Id(input.Name), jen.Error()), "func(" + text + ") (" + input.Name + ", error)"}
	answer := call(tabWidth+len("return "), w.runtime("Answer"), name(model.SpecFunc(input.Name)+"()"), name(f))
	w.file.Func().Id(id).Add(signature(len("func "+id), []expr{param(f, function)}, w.runtime("Answerer"))).Block(jen.Return(answer.code))
}
