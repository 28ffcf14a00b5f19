package emit

import (
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeWorkflows writes the type that implements the tools of a service that are workflows, if it has
// any.
func (w *writer) writeWorkflows(service *model.Service) {
	tools := service.Workflows()
	if len(tools) == 0 {
		return
	}
	id := model.WorkflowsType(service.Name)
	doc := id + " implements the tools of " + service.Name + " that are workflows. Embed it in the implementation of " + service.Name + "."
	if len(tools) == len(service.Tools) {
		doc = id + " implements " + service.Name + ", whose tools are all workflows."
	}
	addDoc(w.file.Group, doc)
	w.file.Type().Id(id).StructFunc(func(g *jen.Group) {
		addDoc(g, model.RunnerField+" runs the workflows, such as the one of package "+runtimePath+"/temporal.")
		g.Id(model.RunnerField).Add(runtimeName("WorkflowRunner"))
	})
	for _, tool := range tools {
		w.writeWorkflowMethod(id, tool)
	}
}

// writeWorkflowMethod writes the method of a tool that runs its workflow. The workflow gets the input and
// then the answers to the questions.
func (w *writer) writeWorkflowMethod(id string, tool *model.Tool) {
	receiver, ctx, task := w.locals["w"], w.locals["ctx"], w.locals["task"]
	params := []jen.Code{jen.Id(ctx).Add(contextType()), jen.Id(task).Add(pointerTo(runtimeName("Task")))}
	arguments := []jen.Code{jen.Id(ctx), jen.Id(receiver).Dot(model.RunnerField), jen.Id(task), stringLiteral(tool.Workflow)}
	if tool.In != nil {
		params = append(params, jen.Id(w.locals["in"]).Add(w.typeExpr(tool.In)))
		arguments = append(arguments, jen.Id(w.locals["in"]))
	}
	for i, input := range tool.Questions {
		answer := w.locals[answerName(i)]
		params = append(params, jen.Id(answer).Id(input.Name))
		arguments = append(arguments, jen.Id(answer))
	}
	results, run := jen.Params(w.outType(tool), jen.Error()), runtimeName("RunWorkflow").Types(w.outType(tool)).Call(arguments...)
	body := []jen.Code{jen.Return(run)}
	if tool.Out == nil {
		err := w.locals["err"]
		results = jen.Error()
		body = []jen.Code{jen.List(jen.Id("_"), jen.Id(err)).Op(":=").Add(run), jen.Return(jen.Id(err))}
	}
	addDoc(w.file.Group, tool.Method+" runs the workflow "+shownWorkflow(tool.Workflow)+".")
	w.file.Func().Params(jen.Id(receiver).Id(id)).Id(tool.Method).Add(parameterList(params...)).Add(results).Block(body...)
}

// shownWorkflow returns the name of a workflow's type for a comment, quoted unless it is one plain word.
func shownWorkflow(name string) string {
	if model.IsToolName(name) {
		return name
	}
	return strconv.Quote(name)
}
