package emit

import (
	"fmt"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// writeEnums writes the methods by which enums write and read the names of their constants.
func (w *writer) writeEnums() {
	for _, e := range w.pkg.Enums {
		w.writeMarshalText(e)
		w.writeUnmarshalText(e)
	}
}

// writeImportedEnums lets the file compile only if the enums of other packages have their methods. Without them, the
// values would be numbers, which the schemas refuse.
func (w *writer) writeImportedEnums() {
	if len(w.pkg.ImportedEnums) == 0 {
		return
	}
	var assertions []jen.Code
	for _, enum := range w.pkg.ImportedEnums {
		value := jen.Qual(enum.Pkg().Path(), enum.Name()).Call(jen.Lit(0))
		assertions = append(assertions, jen.Id("_").Qual("encoding", "TextMarshaler").Op("=").Add(value))
	}
	addDoc(w.file.Group, "These types have //mcptask:enum strings, and the schemas have the names of their constants. "+
		"If a line does not compile, run mcptaskgen in the package of its type, and then in this one.")
	w.file.Var().Defs(assertions...)
}

func (w *writer) writeMarshalText(e *model.Enum) {
	v := w.locals["v"]
	addDoc(w.file.Group, fmt.Sprintf("MarshalText returns the name of %s. A value that is none of the constants of %s is an error.", v, e.Name))
	w.file.Func().Params(jen.Id(v).Id(e.Name)).Id("MarshalText").Params().Params(jen.Index().Byte(), jen.Error()).Block(
		jen.Switch(jen.Id(v)).BlockFunc(func(g *jen.Group) {
			for _, c := range e.Consts {
				g.Case(jen.Id(c.Name)).Block(jen.Return(jen.Index().Byte().Call(jen.Lit(c.Value)), jen.Nil()))
			}
		}),
		jen.Return(jen.Nil(), jen.Qual("fmt", "Errorf").Call(
			jen.Lit(fmt.Sprintf("%s.%s(%%d) has no name, because it is none of the constants", w.pkg.Name, e.Name)), jen.Id(v))),
	)
}

func (w *writer) writeUnmarshalText(e *model.Enum) {
	v, text := w.locals["v"], w.locals["text"]
	var names []string
	for _, c := range e.Consts {
		names = append(names, c.Value)
	}
	addDoc(w.file.Group, fmt.Sprintf("UnmarshalText sets %s to the constant of %s that %s names.", v, e.Name, text))
	w.file.Func().Params(jen.Id(v).Op("*").Id(e.Name)).Id("UnmarshalText").Params(jen.Id(text).Index().Byte()).Error().Block(
		jen.Switch(jen.String().Call(jen.Id(text))).BlockFunc(func(g *jen.Group) {
			for _, c := range e.Consts {
				g.Case(jen.Lit(c.Value)).Block(jen.Op("*").Id(v).Op("=").Id(c.Name))
			}
			g.Default().Block(jen.Return(jen.Qual("fmt", "Errorf").Call(
				jen.Lit(fmt.Sprintf("%%q is not a name of %s.%s; its names are %s", w.pkg.Name, e.Name, strings.Join(names, ", "))), jen.Id(text))))
		}),
		jen.Return(jen.Nil()),
	)
}
