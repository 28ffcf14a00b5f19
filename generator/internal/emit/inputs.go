package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeInputs writes the functions that describe, ask for and answer each input.
func (w *writer) writeInputs() {
	for _, input := range w.pkg.Inputs {
		w.writeInputSpec(input)
		if w.pkg.Side.Serves() {
			w.writeAskFunc(input)
		}
		if w.pkg.Side.Calls() {
			w.writeAnswerFunc(input)
		}
	}
}

func (w *writer) writeInputSpec(input *model.Input) {
	id := w.pkg.SpecFunc(input.Name)
	doc := id + " describes " + input.Name + " to the runtime."
	if w.pkg.Side.Serves() && w.pkg.AsksInWorkflows() {
		doc = id + " describes " + input.Name + " to the runtime, and to workflows that ask for it."
	}
	addDoc(w.file.Group, doc)
	members := []jen.Code{member("Name", stringLiteral(input.Name))}
	if input.Message != "" {
		members = append(members, member("Message", stringLiteral(input.Message)))
	}
	members = append(members, member("Schema", jen.Id(input.SchemaConst)))
	w.file.Func().Id(id).Params().Add(runtimeName("InputSpec")).Block(jen.Return(literal(runtimeName("InputSpec"), members...)))
}

func (w *writer) writeAskFunc(input *model.Input) {
	id, mcptask := model.AskFunc(input.Name), w.imports[runtimePath]
	ctx, task, step, message := w.locals["ctx"], w.locals["task"], w.locals["step"], w.locals["message"]
	doc := id + " asks for " + input.Name + " and waits for the answer. The step names the question within the task: " +
		"a handler that runs again gets the stored answer of the same step."
	if input.Message != "" {
		doc += " If message is empty, the declared message is used."
	}
	addDoc(w.file.Group, doc+" It returns "+mcptask+".ErrDeclined, ErrDismissed or ErrCannotAsk if there is no answer.")
	w.file.Func().Id(id).Add(parameterList(
		jen.Id(ctx).Add(contextType()),
		jen.Id(task).Add(pointerTo(runtimeName("Task"))),
		jen.List(jen.Id(step), jen.Id(message)).String(),
	)).Params(jen.Id(input.Name), jen.Error()).Block(
		jen.Return(runtimeName("Ask").Types(jen.Id(input.Name)).Call(
			jen.Id(ctx), jen.Id(task), jen.Id(w.pkg.SpecFunc(input.Name)).Call(), jen.Id(step), jen.Id(message))))
}

func (w *writer) writeAnswerFunc(input *model.Input) {
	id, f := model.AnswerFunc(input.Name), w.locals["f"]
	addDoc(w.file.Group, id+" returns an Answerer that answers questions for "+input.Name+" by calling "+f+".")
	function := jen.Func().Params(contextType(), runtimeName("Question")).Params(jen.Id(input.Name), jen.Error())
	w.file.Func().Id(id).Params(jen.Id(f).Add(function)).Add(runtimeName("Answerer")).Block(
		jen.Return(runtimeName("Answer").Call(jen.Id(w.pkg.SpecFunc(input.Name)).Call(), jen.Id(f))))
}
