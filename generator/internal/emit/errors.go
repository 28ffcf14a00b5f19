package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeErrors writes the code of each error, and its description for the tools of a server.
func (w *writer) writeErrors() {
	for _, e := range w.pkg.Errors {
		receiver := jen.Id(e.Name)
		if e.Pointer {
			receiver = pointerTo(receiver)
		}
		addDoc(w.file.Group, model.CodeMethod+" returns the code by which clients know "+e.Name+".")
		w.file.Func().Params(receiver).Id(model.CodeMethod).Params().String().Block(jen.Return(stringLiteral(e.Code)))
		if !w.pkg.Side.Serves() || len(w.pkg.Services) == 0 {
			continue
		}
		id := model.ErrorSpecFunc(e.Name)
		members := []jen.Code{member("Code", stringLiteral(e.Code))}
		if e.Description != "" {
			members = append(members, member("Description", stringLiteral(e.Description)))
		}
		members = append(members, member("Schema", jen.Id(e.SchemaConst)))
		addDoc(w.file.Group, id+" describes "+e.Name+" to the runtime.")
		w.file.Func().Id(id).Params().Add(runtimeName("ErrorSpec")).Block(jen.Return(literal(runtimeName("ErrorSpec"), members...)))
	}
}
