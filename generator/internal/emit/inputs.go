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
	id, spec := model.SpecFunc(input.Name), w.runtimeName("InputSpec")
	addDoc(w.file.Group, id+" describes "+input.Name+" to the runtime.")
	members := []expr{keyedMember("Name", stringLiteral(input.Name))}
	if input.Message != "" {
		members = append(members, keyedMember("Message", stringLiteral(input.Message)))
	}
	members = append(members, keyedMember("Schema", nameExpr(model.SchemaConst(input.Name))))
	w.file.Func().Id(id).Params().Add(spec.code).Block(jen.Return(compositeLiteral(tabWidth+len("return "), spec, members...).code))
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
	params := []expr{
		paramExpr(ctx, w.qualifiedName("context", "Context")), paramExpr(task, pointerTo(w.runtimeName("Task"))),
		{jen.List(jen.Id(step), jen.Id(message)).String(), step + ", " + message + " string"},
	}
	ask := callExpr(tabWidth+len("return "), instantiate(w.runtimeName("Ask"), nameExpr(input.Name)),
		nameExpr(ctx), nameExpr(task), nameExpr(model.SpecFunc(input.Name)+"()"), nameExpr(step), nameExpr(message))
	w.file.Func().Id(id).Add(signatureExpr(len("func "+id), params, nameExpr(input.Name), nameExpr("error"))).Block(jen.Return(ask.code))
}

func (w *writer) writeAnswerFunc(input *model.Input) {
	id, f := model.AnswerFunc(input.Name), w.locals["f"]
	addDoc(w.file.Group, id+" returns an Answerer for a client. It answers questions for "+input.Name+" by calling "+f+".")
	parameters := []expr{w.qualifiedName("context", "Context"), w.runtimeName("Question")}
	codes, text := joinExprs(parameters)
	function := expr{jen.Func().Params(codes...).Params(jen.Id(input.Name), jen.Error()), "func(" + text + ") (" + input.Name + ", error)"}
	answer := callExpr(tabWidth+len("return "), w.runtimeName("Answer"), nameExpr(model.SpecFunc(input.Name)+"()"), nameExpr(f))
	w.file.Func().Id(id).Add(signatureExpr(len("func "+id), []expr{paramExpr(f, function)}, w.runtimeName("Answerer"))).Block(jen.Return(answer.code))
}
