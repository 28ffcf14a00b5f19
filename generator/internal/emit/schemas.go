package emit

// writeSchemas writes each schema once. They come last because they are long. A client needs the schema of an input only
// to send it without null.
func (w *writer) writeSchemas() {
	written := map[string]bool{"": true}
	write := func(id, text string) {
		if !written[id] {
			written[id] = true
			w.file.Line()
			w.file.Const().Id(id).Op("=").Add(rawLiteral(text))
		}
	}
	for _, service := range w.pkg.Services {
		for _, tool := range service.Tools {
			if w.pkg.Side.Serves() || tool.InputWritesNull {
				write(tool.InputConst, tool.InputSchema)
			}
			if w.pkg.Side.Serves() {
				write(tool.OutputConst, tool.OutputSchema)
			}
		}
	}
	if w.pkg.Side.Serves() {
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
