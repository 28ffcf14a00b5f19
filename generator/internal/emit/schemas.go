package emit

// writeSchemas writes each schema once. They come last because they are long. Only the server needs
// those of tools.
func (w *writer) writeSchemas() {
	written := map[string]bool{"": true}
	write := func(id, text string) {
		if !written[id] {
			written[id] = true
			w.file.Line()
			w.file.Const().Id(id).Op("=").Add(rawLiteral(text))
		}
	}
	if w.pkg.Side.Serves() {
		for _, service := range w.pkg.Services {
			for _, tool := range service.Tools {
				write(tool.InputConst, tool.InputSchema)
				write(tool.OutputConst, tool.OutputSchema)
			}
		}
		for _, e := range w.pkg.Errors {
			if len(w.pkg.Services) > 0 {
				write(e.SchemaConst, e.Schema)
			}
		}
	}
	for _, input := range w.pkg.Inputs {
		write(input.SchemaConst, input.Schema)
	}
}
