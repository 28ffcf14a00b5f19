package emit

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

const jsonPath = "encoding/json"

// Remote writes the file for somebody else's server: its tools as an interface, the client that calls
// them, and the types of what they take and give.
func Remote(remote *model.Remote) ([]byte, error) {
	w := &writer{
		pkg: &remote.Package, file: jen.NewFilePathName(remote.Path, remote.Name),
		imports: map[string]string{}, locals: map[string]string{},
	}
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
	if err := w.header("remote.tmpl", remote); err != nil {
		return nil, err
	}
	service := remote.Services[0]
	w.contract(service)
	w.client(service)
	for _, d := range remote.Types {
		w.declare(d, service)
	}
	if rest {
		w.restCodec(service)
	}
	var b bytes.Buffer
	if err := w.file.Render(&b); err != nil {
		return nil, fmt.Errorf("the generated code of %s cannot be formatted: %w", remote.Source, err)
	}
	return b.Bytes(), nil
}

// contract writes the service as an interface, for what is to run without a server.
func (w *writer) contract(service *model.Service) {
	client := model.ClientType(service.Name)
	addDoc(w.file.Group, service.Name+" is what the tools of the server do. "+client+" calls them; a test may put something else in its place.")
	w.file.Type().Id(service.Name).InterfaceFunc(func(g *jen.Group) {
		for _, tool := range service.Tools {
			params, _ := w.arguments(tool)
			g.Id(tool.Method).Add(signature(tabWidth+len(tool.Method), params, w.outType(tool), name("error")))
		}
	})
	w.file.Line()
	w.file.Var().Id("_").Id(service.Name).Op("=").Parens(jen.Op("*").Id(client)).Call(jen.Nil())
}

// declare writes a type and its constants or methods.
func (w *writer) declare(d *model.Declared, service *model.Service) {
	addDoc(w.file.Group, d.Doc)
	if d.Type != nil {
		w.file.Type().Id(d.Name).Add(w.typeOf(d.Type).code)
		w.constants(d)
		return
	}
	apart := w.longestRow(d.Fields) > lineWidth
	w.file.Type().Id(d.Name).StructFunc(func(g *jen.Group) {
		for i, f := range d.Fields {
			if i > 0 && apart && f.Doc == "" {
				g.Line() // or gofmt aligns it with the one before, beyond the last column
			}
			if f.Doc != "" {
				addDoc(g, f.Doc)
			}
			g.Id(f.Name).Add(w.typeOf(f.Type).code).Op(tag(f))
		}
	})
	switch {
	case d.Rest != nil:
		w.openMethods(d, service)
	case len(d.Filled) > 0:
		w.marshalMethod(d, func(g *jen.Group) {
			g.Return(jen.Qual(jsonPath, "Marshal").Call(jen.Id("fields").Call(jen.Id("v"))))
		})
	}
}

// longestRow is how long the lines get that gofmt aligns with each other.
func (w *writer) longestRow(fields []*model.Field) int {
	var names, types, tags int
	for _, f := range fields {
		names = max(names, len([]rune(f.Name)))
		types = max(types, len([]rune(w.typeOf(f.Type).text)))
		tags = max(tags, len([]rune(tag(f))))
	}
	return tabWidth + names + types + tags + len("  ")
}

func tag(f *model.Field) string {
	text := f.JSON
	switch {
	case f.Rest:
		text = "-"
	case f.Optional:
		text += ",omitzero"
	}
	return rawTag("json:" + strconv.Quote(text))
}

// constants writes the values of an enum.
func (w *writer) constants(d *model.Declared) {
	if len(d.Consts) == 0 {
		return
	}
	head := 0
	for _, c := range d.Consts {
		head = max(head, tabWidth+len([]rune(c.Name))+len([]rune(d.Name))+len("  = "))
	}
	addDoc(w.file.Group, "The values of "+d.Name+".")
	w.file.Const().DefsFunc(func(g *jen.Group) {
		for _, c := range d.Consts {
			if c.Doc != "" {
				addDoc(g, c.Doc)
			}
			value := literal(c.Value)
			code := jen.Add(value.code)
			if head+len(value.text) > lineWidth {
				code = jen.Lit("").Op("+").Line().Add(value.code)
			}
			g.Id(c.Name).Id(d.Name).Op("=").Add(code)
		}
	})
}

// marshalMethod writes MarshalJSON, whose last statements write v as fields, a type without methods.
func (w *writer) marshalMethod(d *model.Declared, last func(*jen.Group)) {
	doc := "MarshalJSON implements json.Marshaler."
	if len(d.Filled) > 0 {
		doc += " A required list or map that is nil is written as an empty one."
	}
	addDoc(w.file.Group, doc)
	w.file.Func().Params(jen.Id("v").Id(d.Name)).Id("MarshalJSON").Params().Params(jen.Index().Byte(), jen.Error()).BlockFunc(func(g *jen.Group) {
		for _, f := range d.Filled {
			field := jen.Id("v").Dot(f.Name)
			g.If(jen.Add(field).Op("==").Nil()).Block(jen.Add(field).Op("=").Add(w.typeOf(f.Type).code).Values())
		}
		g.Type().Id("fields").Id(d.Name)
		last(g)
	})
}

// openMethods write and read the properties that have no field.
func (w *writer) openMethods(d *model.Declared, service *model.Service) {
	rest := d.Fields[len(d.Fields)-1].Name
	join, split := model.RestFuncs(service.Name)
	w.marshalMethod(d, func(g *jen.Group) {
		g.Return(jen.Id(join).Call(jen.Id("fields").Call(jen.Id("v")), jen.Id("v").Dot(rest)))
	})
	addDoc(w.file.Group, "UnmarshalJSON implements json.Unmarshaler.")
	arguments := []expr{name("data"), name("(*fields)(v)"), name("&v." + rest)}
	for _, f := range d.Fields[:len(d.Fields)-1] {
		arguments = append(arguments, literal(f.JSON))
	}
	w.file.Func().Params(jen.Id("v").Op("*").Id(d.Name)).Id("UnmarshalJSON").Params(jen.Id("data").Index().Byte()).Error().Block(
		jen.Type().Id("fields").Id(d.Name),
		jen.Return(call(tabWidth+len("return "), name(split), arguments...).code))
}

// restCodec writes the functions behind openMethods.
func (w *writer) restCodec(service *model.Service) {
	join, split := model.RestFuncs(service.Name)
	marshal, unmarshal := jen.Qual(jsonPath, "Marshal"), jen.Qual(jsonPath, "Unmarshal")
	addDoc(w.file.Group, join+" writes a struct and the properties that have no field in it as one object.")
	w.file.Func().Id(join).Types(jen.Id("T").Any()).Params(jen.Id("fields").Any(), jen.Id("rest").Map(jen.String()).Id("T")).
		Params(jen.Index().Byte(), jen.Error()).Block(
		jen.List(jen.Id("data"), jen.Err()).Op(":=").Add(marshal).Call(jen.Id("fields")),
		jen.If(jen.Err().Op("!=").Nil().Op("||").Len(jen.Id("rest")).Op("==").Lit(0)).Block(jen.Return(jen.Id("data"), jen.Err())),
		jen.List(jen.Id("more"), jen.Err()).Op(":=").Add(marshal).Call(jen.Id("rest")),
		jen.If(jen.Err().Op("!=").Nil().Op("||").String().Call(jen.Id("data")).Op("==").Lit("{}")).Block(jen.Return(jen.Id("more"), jen.Err())),
		jen.Id("data").Index(jen.Len(jen.Id("data")).Op("-").Lit(1)).Op("=").LitRune(','),
		jen.Return(jen.Append(jen.Id("data"), jen.Id("more").Index(jen.Lit(1), jen.Empty()).Op("...")), jen.Nil()),
	)
	addDoc(w.file.Group, split+" reads an object into a struct, and its properties without a field into rest.")
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
