package emit

import "github.com/mcptaskgen/mcptaskgen/generator/internal/model"

// schemas writes the schemas last, because they are long. Those of tools are the server's.
func (w *writer) schemas() {
	services := w.pkg.Services
	if !w.pkg.Side.Serves() {
		services = nil
	}
	for _, service := range services {
		for _, tool := range service.Tools {
			w.schema(model.InputConst(service.Name, tool.Method), tool.InputSchema)
			if tool.OutKind == model.Structured {
				w.schema(model.OutputConst(service.Name, tool.Method), tool.OutputSchema)
			}
		}
	}
	for _, input := range w.pkg.Inputs {
		w.schema(model.SchemaConst(input.Name), input.Schema)
	}
}

func (w *writer) schema(id, text string) {
	w.file.Line()
	w.file.Const().Id(id).Op("=").Add(raw(text))
}
