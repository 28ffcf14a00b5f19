package declaration

import (
	"fmt"
	"go/token"
	"maps"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// claim records which declaration needs an identifier.
type claim struct {
	pos token.Pos
	who string
}

// claimNames reports identifiers that the generated file would declare twice or that the package
// already declares. It then names the constants with the schemas, which give way.
func (r *reader) claimNames(out *model.Package) {
	r.imported = r.importedNames()
	if !out.HasOnlyEnums() {
		r.claimName("taskCapabilities", token.NoPos, "every package")
		r.claimProtocolNames(out)
	}
	predeclared := []string{"bool", "error", "false", "nil", "string", "true"}
	if len(out.Enums) > 0 {
		predeclared = append(predeclared, "byte")
	}
	for _, name := range predeclared {
		if obj := r.pkg.Types.Scope().Lookup(name); obj != nil {
			r.addProblem(obj.Pos(), fmt.Sprintf("the package redeclares %s, which generated code uses with its predeclared meaning", name), "rename yours")
		}
	}
	for _, service := range out.Services {
		pos := r.positions[service]
		for _, name := range model.ServiceNames(service.Name) {
			r.claimName(name, pos, "service "+service.Name)
		}
		if len(service.Workflows()) > 0 {
			r.claimWorkflows(service)
		}
		clients := map[string]claim{}
		for _, tool := range service.Tools {
			pos := r.positions[tool]
			for _, name := range model.ClientNames(tool) {
				if before, taken := clients[name]; taken {
					r.addProblem(pos, fmt.Sprintf("%s would give %s a second method %s", tool.Method, model.ClientType(service.Name), name),
						fmt.Sprintf("rename it, or %s on line %d", before.who, r.fset.Position(before.pos).Line))
					continue
				}
				clients[name] = claim{pos, tool.Method}
			}
		}
	}
	for _, input := range out.Inputs {
		pos := r.positions[input]
		for _, name := range model.InputNames(input.Name, out.AsksInWorkflows()) {
			r.claimName(name, pos, "input "+input.Name)
		}
	}
	for _, e := range out.Errors {
		r.claimName(model.ErrorSpecFunc(e.Name), r.positions[e], "error "+e.Name)
	}
	out.NameSchemas(func(name string) bool {
		_, claimed := r.claims[name]
		_, imported := r.imported[name]
		return claimed || imported || r.pkg.Types.Scope().Lookup(name) != nil
	})
}

// claimWorkflows reserves the type that implements the workflows of a service. It reports the methods
// that the type, or an implementation that embeds it, cannot have beside its field.
func (r *reader) claimWorkflows(service *model.Service) {
	id := model.WorkflowsType(service.Name)
	r.claimName(id, r.positions[service], "service "+service.Name)
	for _, tool := range service.Tools {
		switch {
		case tool.Method == id:
			r.addProblem(r.positions[tool], fmt.Sprintf("an implementation of %s that embeds %s has a field %s, so it cannot have a method %[2]s", service.Name, id, id),
				"rename the method; name= keeps the name of the tool")
		case tool.Method == model.RunnerField && tool.Workflow != "":
			r.addProblem(r.positions[tool], fmt.Sprintf("%s would give %s a method %[1]s beside its field %[1]s", tool.Method, id),
				"rename the method; name= keeps the name of the tool")
		}
	}
}

// claimProtocolNames reserves the names of the protocol, such as TaskStatus, that the package does not declare itself.
// The names that it does declare are in out.Own, and a note gives the name in the runtime to use instead.
func (r *reader) claimProtocolNames(out *model.Package) {
	out.Own = map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(r.protocol)) {
		pos, own := r.imported[name]
		if obj := r.pkg.Types.Scope().Lookup(name); obj != nil {
			pos, own = obj.Pos(), true
		}
		if !own {
			r.claimName(name, token.NoPos, "every package")
			continue
		}
		out.Own[name] = true
		r.addNote(pos, fmt.Sprintf("%s is declared here, so that the generated file does not declare it; it would be mcptask.%s", name, r.protocol[name]))
	}
}

// importedNames returns the names that imports declare in their files, with the position of each
// import.
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

// claimName reserves an identifier of the package.
func (r *reader) claimName(name string, pos token.Pos, who string) {
	if before, taken := r.claims[name]; taken {
		r.addProblem(pos, fmt.Sprintf("%s needs the identifier %s", who, name),
			fmt.Sprintf("%s also needs it; rename one of them", before.who))
		return
	}
	r.claims[name] = claim{pos, who}
	if obj := r.pkg.Types.Scope().Lookup(name); obj != nil {
		r.addProblem(obj.Pos(), fmt.Sprintf("%s is declared here, but generated code declares it for %s", name, who), "rename one of them")
	}
	if pos, ok := r.imported[name]; ok {
		maps.DeleteFunc(r.imported, func(_ string, other token.Pos) bool { return other == pos }) // report each import once
		r.addProblem(pos, fmt.Sprintf("this import declares %s in its file, but generated code declares it for %s", name, who), "import the package under another name")
	}
}
