package emit

import (
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
	rest := false
	for _, d := range remote.Types {
		if d.Type != nil {
			w.declared = append(w.declared, d.Type)
		}
		for _, f := range d.Fields {
			w.declared = append(w.declared, f.Type)
		}
		rest = rest || d.Rest != nil
	}
	w.chooseNames()
	w.file.ImportName(jsonPath, "json")
	w.file.ImportName("slices", "slices")
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
		w.writeDeclaredType(d, service)
	}
	if rest {
		w.writeRestCodec(service)
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
func (w *writer) writeDeclaredType(d *model.DeclaredType, service *model.Service) {
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
	switch {
	case d.Rest != nil:
		w.writeOpenMethods(d, service)
	case len(d.Filled) > 0:
		w.writeMarshalMethod(d, func(g *jen.Group) {
			g.Return(jen.Qual(jsonPath, "Marshal").Call(jen.Id("fields").Call(jen.Id("v"))))
		})
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

// writeMarshalMethod writes MarshalJSON. Its last statements encode v as fields, a type without
// methods.
func (w *writer) writeMarshalMethod(d *model.DeclaredType, last func(*jen.Group)) {
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
		last(g)
	})
}

// writeOpenMethods writes the methods that encode and decode additional properties.
func (w *writer) writeOpenMethods(d *model.DeclaredType, service *model.Service) {
	rest := d.Fields[len(d.Fields)-1].Name
	join, split := model.RestFuncs(service.Name)
	w.writeMarshalMethod(d, func(g *jen.Group) {
		g.Return(jen.Id(join).Call(jen.Id("fields").Call(jen.Id("v")), jen.Id("v").Dot(rest)))
	})
	addDoc(w.file.Group, "UnmarshalJSON implements json.Unmarshaler.")
	arguments := []jen.Code{jen.Id("data"), jen.Parens(jen.Op("*").Id("fields")).Call(jen.Id("v")), jen.Op("&").Id("v").Dot(rest)}
	for _, f := range d.Fields[:len(d.Fields)-1] {
		arguments = append(arguments, stringLiteral(f.JSON))
	}
	w.file.Func().Params(jen.Id("v").Op("*").Id(d.Name)).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().Block(
		jen.Type().Id("fields").Id(d.Name),
		jen.Return(jen.Id(split).Add(parameterList(arguments...))))
}

// writeRestCodec writes the functions that the methods of writeOpenMethods call.
func (w *writer) writeRestCodec(service *model.Service) {
	join, split := model.RestFuncs(service.Name)
	marshal, unmarshal := jen.Qual(jsonPath, "Marshal"), jen.Qual(jsonPath, "Unmarshal")
	addDoc(w.file.Group, join+" encodes a struct and its additional properties as one object.")
	w.file.Func().Id(join).Types(jen.Id("T").Any()).Params(jen.Id("fields").Any(), jen.Id("rest").Map(jen.String()).Id("T")).
		Params(jen.Index().Byte(), jen.Error()).Block(
		jen.List(jen.Id("data"), jen.Err()).Op(":=").Add(marshal).Call(jen.Id("fields")),
		jen.If(jen.Err().Op("!=").Nil().Op("||").Len(jen.Id("rest")).Op("==").Lit(0)).Block(jen.Return(jen.Id("data"), jen.Err())),
		jen.List(jen.Id("more"), jen.Err()).Op(":=").Add(marshal).Call(jen.Id("rest")),
		jen.If(jen.Err().Op("!=").Nil().Op("||").String().Call(jen.Id("data")).Op("==").Lit("{}")).Block(jen.Return(jen.Id("more"), jen.Err())),
		jen.Id("data").Index(jen.Len(jen.Id("data")).Op("-").Lit(1)).Op("=").LitRune(','),
		jen.Return(jen.Append(jen.Id("data"), jen.Id("more").Index(jen.Lit(1), jen.Empty()).Op("...")), jen.Nil()),
	)
	addDoc(w.file.Group, split+" decodes an object into a struct, and its additional properties into rest.")
	w.file.Func().Id(split).Types(jen.Id("T").Any()).Params(
		jen.Id("data").Index().Byte(), jen.Id("fields").Any(), jen.Id("rest").Op("*").Map(jen.String()).Id("T"), jen.Id("known").Op("...").String(),
	).Error().Block(
		jen.If(jen.Err().Op(":=").Add(unmarshal).Call(jen.Id("data"), jen.Id("fields")), jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Err())),
		jen.Var().Id("all").Map(jen.String()).Qual(jsonPath, "RawMessage"),
		jen.If(jen.Err().Op(":=").Add(unmarshal).Call(jen.Id("data"), jen.Op("&").Id("all")), jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Err())),
		jen.Op("*").Id("rest").Op("=").Nil(),
		jen.For(jen.List(jen.Id("name"), jen.Id("value")).Op(":=").Range().Id("all")).Block(
			jen.If(jen.Qual("slices", "Contains").Call(jen.Id("known"), jen.Id("name"))).Block(jen.Continue()),
			jen.Var().Id("v").Id("T"),
			jen.If(jen.Err().Op(":=").Add(unmarshal).Call(jen.Id("value"), jen.Op("&").Id("v")), jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Err())),
			jen.If(jen.Op("*").Id("rest").Op("==").Nil()).Block(jen.Op("*").Id("rest").Op("=").Map(jen.String()).Id("T").Values()),
			jen.Parens(jen.Op("*").Id("rest")).Index(jen.Id("name")).Op("=").Id("v"),
		),
		jen.Return(jen.Nil()),
	)
}
