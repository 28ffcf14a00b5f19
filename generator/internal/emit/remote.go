package emit

import (
	"slices"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

const jsonPath = "encoding/json"

// Remote renders the file for a list of tools: the tools as an interface, the client that calls them,
// the function that serves them, and the types of their inputs and outputs.
func Remote(remote *model.Remote, protocol Protocol) ([]byte, error) {
	w := newWriter(&remote.Package)
	w.protocol = protocol
	for _, d := range remote.Types {
		if d.Type != nil {
			w.declared = append(w.declared, d.Type)
		}
		for _, f := range d.Fields {
			w.declared = append(w.declared, f.Type)
		}
	}
	w.chooseNames()
	w.file.ImportName(jsonPath, "json")
	if err := w.writeHeader("remote.tmpl", remote); err != nil {
		return nil, err
	}
	service := remote.Services[0]
	if remote.Side.Calls() {
		w.writeInterface(service)
		w.writeClient(service)
	}
	if remote.Side.Serves() {
		w.writeRemoteServer(service)
	}
	for _, d := range remote.Types {
		w.writeDeclaredType(d)
	}
	if remote.Side.Serves() {
		w.writeEntries(service)
	}
	return w.render(remote.Source)
}

// writeInterface writes the service as an interface, so that tests can replace the client.
func (w *writer) writeInterface(service *model.Service) {
	client := model.ClientType(service.Name)
	addDoc(w.file.Group, service.Name+" has a method for each tool of the server. "+client+" implements it; tests can use another implementation.")
	w.file.Type().Id(service.Name).InterfaceFunc(func(g *jen.Group) {
		for _, tool := range service.Tools {
			params, _ := w.callArguments(tool)
			g.Id(tool.Method).Add(parameterList(params...)).Params(w.outType(tool), jen.Error())
		}
	})
	w.file.Line()
	w.file.Var().Id("_").Id(service.Name).Op("=").Parens(jen.Op("*").Id(client)).Call(jen.Nil())
}

// writeDeclaredType writes a type and its constants or methods.
func (w *writer) writeDeclaredType(d *model.DeclaredType) {
	addDoc(w.file.Group, d.Doc)
	if d.Type != nil {
		w.file.Type().Id(d.Name).Add(w.typeExpr(d.Type))
		w.writeEnumConstants(d)
		return
	}
	w.file.Type().Id(d.Name).StructFunc(func(g *jen.Group) {
		for _, f := range d.Fields {
			if f.Doc != "" {
				addDoc(g, f.Doc)
			}
			g.Id(f.Name).Add(w.typeExpr(f.Type)).Op(jsonTag(f))
		}
	})
	open := slices.IndexFunc(d.Fields, func(f *model.Field) bool { return f.Rest })
	switch {
	case open >= 0:
		w.writeOpenMethods(d, d.Fields[open])
	case len(d.Filled) > 0:
		w.writeMarshalMethod(d, jen.Qual(jsonPath, "Marshal").Call(jen.Id("fields").Call(jen.Id("v"))))
	}
}

func jsonTag(f *model.Field) string {
	text := f.JSON
	switch {
	case f.Rest:
		text = "-"
	case f.Optional:
		text += ",omitzero"
	}
	return rawTag("json:" + strconv.Quote(text))
}

// writeEnumConstants writes the values of an enum.
func (w *writer) writeEnumConstants(d *model.DeclaredType) {
	if len(d.Consts) == 0 {
		return
	}
	addDoc(w.file.Group, "The values of "+d.Name+".")
	w.file.Const().DefsFunc(func(g *jen.Group) {
		for _, c := range d.Consts {
			if c.Doc != "" {
				addDoc(g, c.Doc)
			}
			g.Id(c.Name).Id(d.Name).Op("=").Add(stringLiteral(c.Value))
		}
	})
}

// writeMarshalMethod writes MarshalJSON. Its body ends with encode, which encodes v as fields, a
// type without methods.
func (w *writer) writeMarshalMethod(d *model.DeclaredType, encode jen.Code) {
	doc := "MarshalJSON implements json.Marshaler."
	if len(d.Filled) > 0 {
		doc += " It writes a required list or map that is nil as an empty one."
	}
	addDoc(w.file.Group, doc)
	w.file.Func().Params(jen.Id("v").Id(d.Name)).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).BlockFunc(func(g *jen.Group) {
		for _, f := range d.Filled {
			field := jen.Id("v").Dot(f.Name)
			g.If(jen.Add(field).Op("==").Nil()).Block(jen.Add(field).Op("=").Add(w.typeExpr(f.Type)).Values())
		}
		g.Type().Id("fields").Id(d.Name)
		g.Return(encode)
	})
}

// writeOpenMethods writes the methods that encode and decode additional properties.
func (w *writer) writeOpenMethods(d *model.DeclaredType, additional *model.Field) {
	rest := jen.Id("v").Dot(additional.Name)
	w.writeMarshalMethod(d, runtimeName("EncodeObject").Call(jen.Id("fields").Call(jen.Id("v")), rest))
	addDoc(w.file.Group, "UnmarshalJSON implements json.Unmarshaler.")
	w.file.Func().Params(jen.Id("v").Op("*").Id(d.Name)).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().Block(
		jen.Type().Id("fields").Id(d.Name),
		jen.Return(runtimeName("DecodeObject").Call(
			jen.Id("data"), jen.Parens(jen.Op("*").Id("fields")).Call(jen.Id("v")), jen.Op("&").Add(rest))))
}
