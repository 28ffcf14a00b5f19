package emit

import (
	"go/types"
	"strings"
	"time"

	"github.com/dave/jennifer/jen"
)

// expr is code together with its text on one line, which tells whether it fits.
type expr struct {
	code jen.Code
	text string
}

func nameExpr(s string) expr { return expr{jen.Id(s), s} }

// qualifiedName returns a name of another package.
func (w *writer) qualifiedName(path, name string) expr {
	return expr{jen.Qual(path, name), w.imports[path] + "." + name}
}

func (w *writer) runtimeName(name string) expr { return w.qualifiedName(runtimePath, name) }

func pointerTo(e expr) expr { return expr{jen.Op("*").Add(e.code), "*" + e.text} }

func joinExprs(list []expr) (codes []jen.Code, text string) {
	texts := make([]string, len(list))
	for i, e := range list {
		codes, texts[i] = append(codes, e.code), e.text
	}
	return codes, strings.Join(texts, ", ")
}

func instantiate(e expr, args ...expr) expr {
	codes, text := joinExprs(args)
	return expr{jen.Add(e.code).Types(codes...), e.text + "[" + text + "]"}
}

// bracketList writes items between brackets. It puts them on one line if the whole line, of which
// taken columns are already used, has at most lineWidth columns. Otherwise it writes one item per
// line.
func bracketList(open, end string, taken int, items []expr) expr {
	codes, text := joinExprs(items)
	text = open + text + end
	multi := taken+len(text) > lineWidth
	code := jen.Custom(jen.Options{Open: open, Close: end, Separator: ",", Multi: multi}, codes...)
	return expr{code, text}
}

// callExpr returns a function call. taken is the number of columns already used on its line.
func callExpr(taken int, f expr, args ...expr) expr {
	arguments := bracketList("(", ")", taken+len(f.text), args)
	return expr{jen.Add(f.code).Add(arguments.code), f.text + arguments.text}
}

// keyedMember returns a key and its value in a composite literal.
func keyedMember(key string, value expr) expr {
	return expr{jen.Id(key).Op(":").Add(value.code), key + ": " + value.text}
}

// compositeLiteral returns a composite literal.
func compositeLiteral(taken int, t expr, members ...expr) expr {
	body := bracketList("{", "}", taken+len(t.text), members)
	return expr{jen.Add(t.code).Add(body.code), t.text + body.text}
}

// paramExpr returns a parameter of a function.
func paramExpr(id string, t expr) expr {
	return expr{jen.Id(id).Add(t.code), id + " " + t.text}
}

// signatureExpr returns a function's parameters and its results, of which there is at least one. It
// writes one parameter per line if they do not fit.
func signatureExpr(taken int, params []expr, results ...expr) jen.Code {
	codes, text := joinExprs(results)
	end := " " + text
	if len(results) > 1 {
		end = " (" + text + ")"
	}
	in := bracketList("(", ")", taken+len(end)+len(" {"), params)
	if len(results) == 1 {
		return jen.Add(in.code).Add(codes[0])
	}
	return jen.Add(in.code).Params(codes...)
}

// durationExpr writes a duration in the largest unit that divides it.
func (w *writer) durationExpr(d time.Duration) expr {
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
		u := w.qualifiedName("time", unit.name)
		if d == unit.size {
			return u
		}
		n := intLiteral(int64(d / unit.size))
		return expr{jen.Add(n.code).Op("*").Add(u.code), n.text + " * " + u.text}
	}
	return nameExpr("0")
}

// typeExpr writes a type with the package names of the generated file.
func (w *writer) typeExpr(t types.Type) expr {
	text := types.TypeString(t, func(p *types.Package) string { return w.imports[p.Path()] })
	return expr{w.typeCode(t), text}
}

func (w *writer) typeCode(t types.Type) *jen.Statement {
	switch t := t.(type) {
	case *types.Basic:
		return jen.Id(t.Name())
	case *types.Named:
		return w.typeName(t.Obj(), t.TypeArgs())
	case *types.Alias:
		return w.typeName(t.Obj(), t.TypeArgs())
	case *types.Pointer:
		return jen.Op("*").Add(w.typeCode(t.Elem()))
	case *types.Slice:
		return jen.Index().Add(w.typeCode(t.Elem()))
	case *types.Array:
		return jen.Index(jen.Op(intLiteral(t.Len()).text)).Add(w.typeCode(t.Elem()))
	case *types.Map:
		return jen.Map(w.typeCode(t.Key())).Add(w.typeCode(t.Elem()))
	case *types.Struct:
		return w.structCode(t)
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
		codes = append(codes, w.typeCode(args.At(i)))
	}
	return code.Types(codes...)
}

func (w *writer) structCode(t *types.Struct) *jen.Statement {
	var fields []jen.Code
	for i := range t.NumFields() {
		f := t.Field(i)
		field := jen.Null()
		if !f.Embedded() {
			field.Id(f.Name())
		}
		field.Add(w.typeCode(f.Type()))
		if tag := t.Tag(i); tag != "" {
			field.Op(rawTag(tag))
		}
		fields = append(fields, field)
	}
	return jen.Struct(fields...)
}
