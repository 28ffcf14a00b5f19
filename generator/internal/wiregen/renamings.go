package main

import (
	"maps"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// withoutBase are the revisions that have code of their own; the others are spoken
// by translation, and nothing but their names reaches the runtime.
func withoutBase(surfaces []*schema.Surface) []*schema.Surface {
	return slices.DeleteFunc(slices.Clone(surfaces), func(s *schema.Surface) bool { return s.Base != "" })
}

// renderRenamings writes the names of the revisions that have a base.
func renderRenamings(surfaces []*schema.Surface) ([]byte, error) {
	f := newFile(runtimePath+"/internal/dialect", "dialect")
	f.ImportName(runtimePath, "mcptask")
	f.ImportAlias(runtimePath, "mcptask")
	addComment(f.Group, "Renamings are the revisions that differ from another in names and optional members alone.", 0)
	var list []jen.Code
	for _, s := range surfaces {
		if s.Base == "" {
			continue
		}
		renaming, err := schema.Rename(s, surfaces)
		if err != nil {
			return nil, err
		}
		list = append(list, renamingCode(renaming))
	}
	result := jen.Nil()
	if len(list) > 0 {
		result = jen.Index().Id("Renaming").ValuesFunc(lines(list))
	}
	f.Func().Id("Renamings").Params().Index().Id("Renaming").Block(jen.Return(result))
	return renderFile(f)
}

// lines are values, each on a line of its own.
func lines(values []jen.Code) func(*jen.Group) {
	return func(g *jen.Group) {
		for _, value := range values {
			g.Line().Add(value)
		}
		g.Line()
	}
}

func renamingCode(n *schema.Renaming) jen.Code {
	fields := []jen.Code{
		jen.Id("Revision").Op(":").Qual(runtimePath, "Revision"+revisionName(n.Own.Revision)),
		jen.Id("Protocol").Op(":").Lit(n.Own.ProtocolVersion),
		jen.Id("Base").Op(":").Qual(runtimePath, "Revision"+revisionName(n.Base.Revision)),
		jen.Id("BaseProtocol").Op(":").Lit(n.Base.ProtocolVersion),
	}
	for _, key := range n.Base.MetaKeys {
		if key.Means == "protocol-version" {
			fields = append(fields, jen.Id("VersionKey").Op(":").Lit(renamedKey(n, key)))
		}
	}
	if len(n.Methods) > 0 {
		fields = append(fields, jen.Id("Methods").Op(":").Add(namesCode(n.Methods)))
	}
	for _, of := range []struct {
		name   string
		shapes map[string]*schema.Shape
	}{{"Params", n.Params}, {"Results", n.Results}} {
		if code := shapesCode(of.shapes); code != nil {
			fields = append(fields, jen.Id(of.name).Op(":").Add(code))
		}
	}
	for _, of := range []struct {
		name  string
		shape *schema.Shape
	}{{"Request", n.Request}, {"Notice", n.Notice}, {"Result", n.Result}, {"Failure", n.Failure}} {
		if of.shape != nil {
			fields = append(fields, jen.Id(of.name).Op(":").Op("&").Id("Shape").Add(shapeCode(of.shape)))
		}
	}
	return jen.ValuesFunc(lines(fields))
}

// renamedKey is what the revision calls a key of _meta.
func renamedKey(n *schema.Renaming, key schema.MetaKey) string {
	i := slices.IndexFunc(n.Own.MetaKeys, func(k schema.MetaKey) bool { return k.Means == key.Means })
	return n.Own.MetaKeys[i].Key
}

// shapesCode is a map of shapes, nil where there are none.
func shapesCode(shapes map[string]*schema.Shape) jen.Code {
	var entries []jen.Code
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		if shapes[name] != nil {
			entries = append(entries, jen.Lit(name).Op(":").Add(shapeCode(shapes[name])))
		}
	}
	if entries == nil {
		return nil
	}
	return jen.Map(jen.String()).Op("*").Id("Shape").ValuesFunc(lines(entries))
}

// shapeCode is the body of a shape.
func shapeCode(s *schema.Shape) jen.Code {
	var fields []jen.Code
	if len(s.Names) > 0 {
		fields = append(fields, jen.Id("Names").Op(":").Add(namesCode(s.Names)))
	}
	if len(s.Values) > 0 {
		fields = append(fields, jen.Id("Values").Op(":").Add(namesCode(s.Values)))
	}
	if code := shapesCode(s.Members); code != nil {
		fields = append(fields, jen.Id("Members").Op(":").Add(code))
	}
	if s.Each != nil {
		fields = append(fields, jen.Id("Each").Op(":").Op("&").Id("Shape").Add(shapeCode(s.Each)))
	}
	if s.By != "" {
		fields = append(fields, jen.Id("By").Op(":").Lit(s.By))
		if code := shapesCode(s.Of); code != nil {
			fields = append(fields, jen.Id("Of").Op(":").Add(code))
		}
	}
	return jen.ValuesFunc(lines(fields))
}

func namesCode(names map[string]string) jen.Code {
	var entries []jen.Code
	for _, from := range slices.Sorted(maps.Keys(names)) {
		entries = append(entries, jen.Lit(from).Op(":").Lit(names[from]))
	}
	return jen.Map(jen.String()).String().ValuesFunc(lines(entries))
}
