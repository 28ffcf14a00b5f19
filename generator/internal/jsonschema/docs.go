package jsonschema

import (
	"cmp"
	"go/ast"
	"go/build"
	godoc "go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// docs finds the comments of types, constants and fields by where they stand. Of other packages it parses just
// the files that are asked for.
type docs struct {
	fset  *token.FileSet
	own   map[string]bool          // files of the package that is generated
	files map[string]map[spot]note // by file name
}

// spot is a name in a line of a file; export data keeps no columns.
type spot struct {
	line int
	name string
}

type note struct {
	doc    string
	column int           // export data keeps none
	tag    *ast.BasicLit // of a field
}

func newDocs(fset *token.FileSet, pkg *load.Package) *docs {
	d := &docs{fset: fset, own: map[string]bool{}, files: map[string]map[spot]note{}}
	for _, file := range pkg.Files {
		name := fset.Position(file.Package).Filename
		d.own[name] = true
		d.files[name] = notes(fset, file)
	}
	return d
}

// find returns what is written at a name: of a type or a constant the first sentence.
func (d *docs) find(obj types.Object) note {
	pos := d.fset.Position(obj.Pos())
	if !pos.IsValid() {
		return note{}
	}
	found, ok := d.files[pos.Filename]
	if !ok && !standard(pos.Filename) {
		fset := token.NewFileSet()
		// A file that is not there or does not parse has no comments for us.
		file, err := parser.ParseFile(fset, pos.Filename, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			found = notes(fset, file)
		}
		d.files[pos.Filename] = found
	}
	return found[spot{pos.Line, obj.Name()}]
}

// isOwn tells whether an object stands in the package that is generated.
func (d *docs) isOwn(obj types.Object) bool {
	return d.own[d.fset.Position(obj.Pos()).Filename]
}

// standard tells whether a file is the standard library's. Its comments change with the Go release,
// and what is generated must not.
func standard(name string) bool {
	root := build.Default.GOROOT
	return strings.HasPrefix(name, "$GOROOT") || root != "" && strings.HasPrefix(name, root+string(filepath.Separator))
}

func notes(fset *token.FileSet, file *ast.File) map[spot]note {
	found := map[spot]note{}
	add := func(name *ast.Ident, n note) {
		pos := fset.Position(name.Pos())
		n.column = pos.Column
		found[spot{pos.Line, name.Name}] = n
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			return false // its types cannot be a tool's
		case *ast.GenDecl:
			var outer *ast.CommentGroup // a group's comment is of no one in it
			if !node.Lparen.IsValid() {
				outer = node.Doc
			}
			for _, spec := range node.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name, note{doc: synopsis(spec.Doc, spec.Comment, outer)})
				case *ast.ValueSpec:
					doc := ""
					if len(spec.Names) == 1 { // else it is of none in particular
						doc = synopsis(spec.Doc, spec.Comment, outer)
					}
					for _, name := range spec.Names {
						add(name, note{doc: doc})
					}
				}
			}
		case *ast.StructType:
			for _, field := range node.Fields.List {
				n := note{doc: text(field.Doc, field.Comment), tag: field.Tag}
				for _, name := range field.Names {
					add(name, n)
				}
				if name := embeddedName(field.Type); len(field.Names) == 0 && name != nil {
					add(name, n)
				}
			}
		}
		return true
	})
	return found
}

// synopsis is the first sentence of the comments above, behind or around.
func synopsis(above, behind, around *ast.CommentGroup) string {
	return new(godoc.Package).Synopsis(cmp.Or(text(above, behind), text(around, nil)))
}

// text is the comment above, else the one that trails the line.
func text(above, behind *ast.CommentGroup) string {
	if doc := Description(above.Text()); doc != "" {
		return doc
	}
	return Description(behind.Text())
}

// embeddedName is the name that an embedded type gives its field.
func embeddedName(expr ast.Expr) *ast.Ident {
	switch expr := expr.(type) {
	case *ast.Ident:
		return expr
	case *ast.StarExpr:
		return embeddedName(expr.X)
	case *ast.SelectorExpr:
		return expr.Sel
	case *ast.IndexExpr:
		return embeddedName(expr.X)
	case *ast.IndexListExpr:
		return embeddedName(expr.X)
	case *ast.ParenExpr:
		return embeddedName(expr.X)
	}
	return nil
}
