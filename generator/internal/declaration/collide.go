package declaration

import (
	"fmt"
	"go/token"
	"maps"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// claim is who needs an identifier of the generated file.
type claim struct {
	pos token.Pos
	who string
}

// claimNames reports identifiers that the generated file would declare twice, or that the package
// has already.
func (r *reader) claimNames(out *model.Package, fixed []string) {
	r.imported = r.importedNames()
	for _, name := range fixed {
		r.claim(name, token.NoPos, "every package")
	}
	predeclared := []string{"bool", "error", "false", "nil", "string", "true"}
	for _, name := range predeclared {
		if obj := r.pkg.Types.Scope().Lookup(name); obj != nil {
			r.fail(obj.Pos(), fmt.Sprintf("the package declares %s, which generated code needs as Go has it", name), "rename yours")
		}
	}
	for _, service := range out.Services {
		pos := r.at[service]
		for _, name := range model.ServiceNames(service.Name) {
			r.claim(name, pos, "service "+service.Name)
		}
		clients := map[string]claim{}
		for _, tool := range service.Tools {
			pos := r.at[tool]
			for _, name := range model.SchemaNames(service.Name, tool) {
				r.claim(name, pos, service.Name+"."+tool.Method)
			}
			for _, name := range model.ClientNames(tool) {
				if before, taken := clients[name]; taken {
					r.fail(pos, fmt.Sprintf("%s would give %s a second method %s", tool.Method, model.ClientType(service.Name), name),
						fmt.Sprintf("rename it, or %s in line %d", before.who, r.fset.Position(before.pos).Line))
					continue
				}
				clients[name] = claim{pos, tool.Method}
			}
		}
	}
	for _, input := range out.Inputs {
		pos := r.at[input]
		for _, name := range model.InputNames(input.Name) {
			r.claim(name, pos, "input "+input.Name)
		}
	}
}

// importedNames are the names that the imports of a file declare in it, with the place of the import.
func (r *reader) importedNames() map[string]token.Pos {
	names := map[string]token.Pos{}
	for _, file := range r.pkg.Files {
		for _, spec := range file.Imports {
			imported := r.pkg.TypesInfo.PkgNameOf(spec)
			switch {
			case imported == nil || imported.Name() == "_":
			case imported.Name() != ".":
				names[imported.Name()] = spec.Pos()
			default:
				for _, name := range imported.Imported().Scope().Names() {
					if token.IsExported(name) {
						names[name] = spec.Pos()
					}
				}
			}
		}
	}
	return names
}

// claim reserves an identifier of the package.
func (r *reader) claim(name string, pos token.Pos, who string) {
	if before, taken := r.claims[name]; taken {
		r.fail(pos, fmt.Sprintf("%s needs the identifier %s", who, name),
			fmt.Sprintf("%s needs it too; rename one", before.who))
		return
	}
	r.claims[name] = claim{pos, who}
	if obj := r.pkg.Types.Scope().Lookup(name); obj != nil {
		r.fail(obj.Pos(), fmt.Sprintf("%s is declared here, but generated code declares it for %s", name, who), "rename one of them")
	}
	if pos, ok := r.imported[name]; ok {
		maps.DeleteFunc(r.imported, func(_ string, other token.Pos) bool { return other == pos }) // one is enough of an import
		r.fail(pos, fmt.Sprintf("this import declares %s in its file, but generated code declares it for %s", name, who), "import the package under another name")
	}
}
