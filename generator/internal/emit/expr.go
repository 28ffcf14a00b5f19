package emit

import (
	"go/types"
	"time"

	"github.com/dave/jennifer/jen"
)

// mostOnLine is the number of parameters that stand on one line. More of them stand one a line.
const mostOnLine = 3

// runtimeName returns a name of the runtime.
func runtimeName(name string) *jen.Statement { return jen.Qual(runtimePath, name) }

func contextType() *jen.Statement { return jen.Qual("context", "Context") }

func pointerTo(code jen.Code) *jen.Statement { return jen.Op("*").Add(code) }

// member returns a key and its value in a composite literal.
func member(key string, value jen.Code) jen.Code { return jen.Id(key).Op(":").Add(value) }

// literal returns a composite literal with one member a line, or all on one line if there is only one.
func literal(t jen.Code, members ...jen.Code) *jen.Statement {
	return jen.Add(t).Add(bracketed("{", "}", len(members) > 1, members))
}

// parameterList returns the parameters of a function.
func parameterList(params ...jen.Code) *jen.Statement {
	return bracketed("(", ")", len(params) > mostOnLine, params)
}

// bracketed returns a list of items in brackets. apart puts each item on a line of its own.
func bracketed(open, end string, apart bool, items []jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: open, Close: end, Separator: ",", Multi: apart}, items...)
}

// durationExpr writes a duration in the largest unit that divides it.
func durationExpr(d time.Duration) jen.Code {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{
		{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"},
		{time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"}, {time.Nanosecond, "Nanosecond"},
	} {
		if d%unit.size != 0 {
			continue
		}
		u := jen.Qual("time", unit.name)
		if d == unit.size {
			return u
		}
		return intLiteral(int64(d / unit.size)).Op("*").Add(u)
	}
	return jen.Lit(0)
}

// typeExpr writes a type with the package names of the generated file.
func (w *writer) typeExpr(t types.Type) *jen.Statement {
	switch t := t.(type) {
	case *types.Basic:
		return jen.Id(t.Name())
	case *types.Named:
		return w.typeName(t.Obj(), t.TypeArgs())
	case *types.Alias:
		return w.typeName(t.Obj(), t.TypeArgs())
	case *types.Pointer:
		return pointerTo(w.typeExpr(t.Elem()))
	case *types.Slice:
		return jen.Index().Add(w.typeExpr(t.Elem()))
	case *types.Array:
		return jen.Index(intLiteral(t.Len())).Add(w.typeExpr(t.Elem()))
	case *types.Map:
		return jen.Map(w.typeExpr(t.Key())).Add(w.typeExpr(t.Elem()))
	case *types.Struct:
		return w.structType(t)
	}
	// Interfaces, functions and channels are in fields that JSON omits.
	return jen.Op(types.TypeString(t, func(p *types.Package) string { return w.imports[p.Path()] }))
}

func (w *writer) typeName(obj *types.TypeName, args *types.TypeList) *jen.Statement {
	var code *jen.Statement
	if obj.Pkg() == nil {
		code = jen.Id(obj.Name())
	} else {
		code = jen.Qual(obj.Pkg().Path(), obj.Name())
	}
	if args.Len() == 0 {
		return code
	}
	var codes []jen.Code
	for i := range args.Len() {
		codes = append(codes, w.typeExpr(args.At(i)))
	}
	return code.Types(codes...)
}

func (w *writer) structType(t *types.Struct) *jen.Statement {
	var fields []jen.Code
	for i := range t.NumFields() {
		f := t.Field(i)
		field := jen.Null()
		if !f.Embedded() {
			field.Id(f.Name())
		}
		field.Add(w.typeExpr(f.Type()))
		if tag := t.Tag(i); tag != "" {
			field.Op(rawTag(tag))
		}
		fields = append(fields, field)
	}
	return jen.Struct(fields...)
}
