// Package declaration reads the services, inputs, errors and enums that a package declares, and reports all
// mistakes in them at once.
package declaration

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsonschema"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/portable"
)

// Runtime is the import path of the package that generated code links against.
const Runtime = "github.com/mcptaskgen/mcptaskgen/runtime"

// reader reads one package.
type reader struct {
	fset     *token.FileSet
	pkg      *load.Package
	problems *diag.List
	deriver  *jsonschema.Deriver

	directives     map[ast.Node]*block // directives by the type or method they are above
	docs           map[*ast.TypeSpec]*ast.CommentGroup
	specs          []*ast.TypeSpec // every type of the package, in order
	interfaces     map[types.Object]*ast.TypeSpec
	inputs         map[types.Object]*model.Input
	positions      map[any]token.Pos     // the position of the name of a service, tool, input or error
	allows         map[ast.Node][]*allow // what //mcptask:allow allows, by the type or method they are above
	enums          []*ast.TypeSpec       // types under //mcptask:enum strings
	serviceMethods map[ast.Node]bool     // methods that belong to a service
	claims         map[string]claim      // identifiers of the generated file
	imported       map[string]token.Pos  // identifiers that imports declare in the other files
	tools          map[string]token.Pos  // tools by their MCP name
	former         map[string]token.Pos  // former names of tools
	protocol       map[string]string     // identifiers of the protocol in generated code, and their names in the runtime
	schemaFiles    map[schemaOf]*jsontree.File
	refused        portable.Refusals[token.Position]
	refusedGuesses map[token.Position]bool // types that are refused as enums, although nothing decides that they are enums
	faults         map[token.Pos]bool      // mistakes for which a type was reported as one that does not compile
	repeated       int                     // reports that were left out because of faults
}

// block holds the settings of the directives above one type or method.
type block struct {
	node     ast.Node // the type or method
	pos      token.Pos
	kind     string // of its directives
	settings settings
	restarts bool // of a service: it has a tool with onlost=restart
}

// get returns a setting if it is present and valid.
func (b *block) get(key string) (setting, bool) {
	if b == nil {
		return setting{}, false
	}
	s, ok := b.settings[key]
	return s, ok && !s.bad
}

// has reports whether a key is present, valid or not.
func (b *block) has(key string) bool {
	if b == nil {
		return false
	}
	_, ok := b.settings[key]
	return ok
}

// allowsFallback reports whether a service gets the fallback tools as soon as one of its tools may run as a task: it
// has fallback=tools, or no fallback=.
func (b *block) allowsFallback() bool {
	s, set := b.get("fallback")
	return set && s.text == "tools" || !b.has("fallback")
}

// Read reads the declarations of a package and adds mistakes to problems. It returns nil if the
// package declares nothing. protocol maps the identifiers of the protocol, which every generated file
// declares, to names of the runtime. serverOnly says that no client is generated.
func Read(fset *token.FileSet, pkg *load.Package, protocol map[string]string, serverOnly bool, problems *diag.List) *model.Package {
	r := &reader{
		fset: fset, pkg: pkg, problems: problems,
		directives:     map[ast.Node]*block{},
		docs:           map[*ast.TypeSpec]*ast.CommentGroup{},
		interfaces:     map[types.Object]*ast.TypeSpec{},
		inputs:         map[types.Object]*model.Input{},
		positions:      map[any]token.Pos{},
		allows:         map[ast.Node][]*allow{},
		serviceMethods: map[ast.Node]bool{},
		claims:         map[string]claim{},
		tools:          map[string]token.Pos{},
		former:         map[string]token.Pos{},
		protocol:       protocol,
		schemaFiles:    map[schemaOf]*jsontree.File{},
		faults:         map[token.Pos]bool{},
		refusedGuesses: map[token.Position]bool{},
	}
	r.deriver = jsonschema.New(fset, pkg, r.addNote)
	r.deriver.ServerOnly = serverOnly
	files := slices.Clone(pkg.Files)
	slices.SortFunc(files, func(a, b *ast.File) int {
		return cmp.Compare(fset.Position(a.Package).Filename, fset.Position(b.Package).Filename)
	})
	for _, file := range files {
		r.attachDirectives(file)
		r.collectTypes(file)
	}
	out := &model.Package{Path: pkg.PkgPath, Name: pkg.Name, Dir: pkg.Dir, Taken: map[string]bool{}, Position: fset.Position}
	if pkg.Types != nil {
		for _, name := range pkg.Types.Scope().Names() {
			out.Taken[name] = true
		}
	}
	r.readInputs(out)
	r.readErrors(out)
	r.readEnums(out)
	r.readServices(out)
	r.reportStrayTools()
	r.reportStrayAllows()
	if out.HasOnlyEnums() && len(out.Enums) == 0 {
		return nil
	}
	out.ImportedEnums = r.deriver.ImportedEnums()
	r.checkToolCount(out)
	r.noteGuesses()
	r.noteNeedlessAllows()
	out.Refused = r.listRefused()
	r.readConstraint(out, files)
	r.noteGated(out, files)
	r.claimNames(out)
	return out
}

// addProblem records a problem at a position in the source.
func (r *reader) addProblem(pos token.Pos, message, hint string) {
	r.problems.Add(r.fset.Position(pos), message, hint)
}

// addNote records a decision of the generator about a position in the source.
func (r *reader) addNote(pos token.Pos, message string) {
	r.problems.AddNote(r.fset.Position(pos), message)
}

func (r *reader) collectTypes(file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.TypeSpec)
			r.specs = append(r.specs, spec)
			if _, ok := spec.Type.(*ast.InterfaceType); ok {
				r.interfaces[r.objectOf(spec.Name)] = spec
			}
		}
	}
}

func (r *reader) objectOf(name *ast.Ident) types.Object {
	return r.pkg.TypesInfo.Defs[name]
}

// reportStrayTools reports directives above methods that are not tools.
func (r *reader) reportStrayTools() {
	for node, b := range r.directives {
		if _, method := node.(*ast.Field); method && !r.serviceMethods[node] {
			r.addProblem(b.pos, "mcptask:tool is above a method of an interface that is not a service",
				"put //mcptask:service above the interface")
		}
	}
}
