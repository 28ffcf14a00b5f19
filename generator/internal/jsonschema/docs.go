package jsonschema

import (
	"go/ast"
	"go/build"
	godoc "go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/description"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/directive"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// docs finds the comments of types, constants and fields by position. It parses only the files of
// other packages that it needs.
type docs struct {
	fset  *token.FileSet
	dir   string                   // of the package being generated
	own   map[string]bool          // files of the package being generated
	files map[string]map[spot]note // by file name
}

// spot is a name on a line of a file. Export data has no columns.
type spot struct {
	line int
	name string
}

type note struct {
	doc        string                          // that of a type is for readers who do not see its name
	deprecated bool                            // the comment has a paragraph "Deprecated:", which doc does not have
	column     int                             // not in export data
	directives map[string]*directive.Directive // by kind
}

func newDocs(fset *token.FileSet, pkg *load.Package) *docs {
	d := &docs{fset: fset, dir: pkg.Dir, own: map[string]bool{}, files: map[string]map[spot]note{}}
	for _, file := range pkg.Files {
		name := fset.Position(file.Package).Filename
		d.own[name] = true
		d.files[name] = collectNotes(fset, file)
	}
	return d
}

// find returns the note of a name. For a type or constant, the text is the first sentence.
func (d *docs) find(obj types.Object) note {
	pos := d.fset.Position(obj.Pos())
	if !pos.IsValid() {
		return note{}
	}
	found, ok := d.files[pos.Filename]
	if !ok && !isStandardLibrary(pos.Filename) {
		fset := token.NewFileSet()
		// A missing or invalid file has no comments.
		file, err := parser.ParseFile(fset, d.locate(obj, pos.Filename), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			found = collectNotes(fset, file)
		}
		d.files[pos.Filename] = found
	}
	return found[spot{pos.Line, obj.Name()}]
}

// locate returns the path of an object's file. Under go vet with -trimpath, a name has its package in place of its
// directory.
func (d *docs) locate(obj types.Object, name string) string {
	if filepath.IsAbs(name) || obj.Pkg() == nil {
		return name
	}
	builds := build.Default
	builds.GOROOT = findGOROOT() // without which it does not ask the go command
	pkg, err := builds.Import(obj.Pkg().Path(), d.dir, build.FindOnly)
	if err != nil {
		return name
	}
	return filepath.Join(pkg.Dir, filepath.Base(name))
}

// isOwn reports whether an object is in the package being generated.
func (d *docs) isOwn(obj types.Object) bool {
	return d.own[d.fset.Position(obj.Pos()).Filename]
}

// isStandardLibrary reports whether a file belongs to the standard library. Its comments change
// with the Go release, and generated code must not.
func isStandardLibrary(name string) bool {
	root := findGOROOT()
	switch {
	case strings.HasPrefix(name, "$GOROOT/"):
		return true
	case root == "":
		return false
	case !filepath.IsAbs(name): // "time/time.go", with -trimpath
		_, err := os.Stat(filepath.Join(root, "src", filepath.FromSlash(name)))
		return err == nil
	}
	return strings.HasPrefix(name, root+string(filepath.Separator))
}

// findGOROOT returns the directory of Go. A program that was built with -trimpath does not know it.
var findGOROOT = sync.OnceValue(func() string {
	if build.Default.GOROOT != "" {
		return build.Default.GOROOT
	}
	out, _ := exec.Command("go", "env", "GOROOT").Output() // without the go command nothing was loaded
	return strings.TrimSpace(string(out))
})

func collectNotes(fset *token.FileSet, file *ast.File) map[spot]note {
	found := map[spot]note{}
	add := func(name *ast.Ident, n note) {
		pos := fset.Position(name.Pos())
		n.column = pos.Column
		found[spot{pos.Line, name.Name}] = n
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			return false // a tool cannot use types in functions
		case *ast.GenDecl:
			var outer *ast.CommentGroup // the comment of a group describes no single member
			if !node.Lparen.IsValid() {
				outer = node.Doc
			}
			for _, spec := range node.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					doc := description.Type(spec.Name.Name, synopsis(spec.Doc, spec.Comment, outer))
					add(spec.Name, note{doc: doc, directives: directives(spec.Doc, outer)})
				case *ast.ValueSpec:
					doc := ""
					if len(spec.Names) == 1 { // otherwise the comment describes no single constant
						doc = synopsis(spec.Doc, spec.Comment, outer)
					}
					for _, name := range spec.Names {
						add(name, note{doc: doc})
					}
				}
			}
		case *ast.StructType:
			for _, field := range node.Fields.List {
				about := description.Read(field.Doc, field.Comment)
				n := note{doc: about.Text, deprecated: about.HidesDeprecation()}
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

// directives scans the directives of comments, those of a kind as one. Those of the package being
// generated are checked when they are bound to their types.
func directives(groups ...*ast.CommentGroup) map[string]*directive.Directive {
	found := map[string]*directive.Directive{}
	for _, group := range groups {
		for i := 0; group != nil && i < len(group.List); i++ {
			if comment := group.List[i]; directive.IsDirective(comment.Text) {
				d, _ := directive.Scan(comment.Pos(), comment.Text)
				if before := found[d.Kind]; before != nil {
					d.Args = append(before.Args, d.Args...)
				}
				found[d.Kind] = &d
			}
		}
	}
	return found
}

// synopsis returns the first sentence of the comment above, behind or around a declaration.
func synopsis(above, behind, around *ast.CommentGroup) string {
	return new(godoc.Package).Synopsis(description.Read(above, behind, around).Text)
}

// embeddedName returns the field name of an embedded type.
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
	}
	return nil
}
