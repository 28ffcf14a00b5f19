package emit

import "github.com/mcptaskgen/mcptaskgen/generator/internal/model"

// writeSchemas writes the schemas last because they are long. Only the server needs those of tools.
func (w *writer) writeSchemas() {
	services := w.pkg.Services
	if !w.pkg.Side.Serves() {
		services = nil
	}
	for _, service := range services {
		for _, tool := range service.Tools {
			w.writeSchema(model.InputConst(service.Name, tool.Method), tool.InputSchema)
			if tool.OutKind == model.Structured {
				w.writeSchema(model.OutputConst(service.Name, tool.Method), tool.OutputSchema)
			}
		}
	}
	for _, input := range w.pkg.Inputs {
		w.writeSchema(model.SchemaConst(input.Name), input.Schema)
	}
}

func (w *writer) writeSchema(id, text string) {
	w.file.Line()
	w.file.Const().Id(id).Op("=").Add(rawLiteral(text))
}
