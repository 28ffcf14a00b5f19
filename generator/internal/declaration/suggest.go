package declaration

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// commonPackages are packages whose types are often used in declarations.
var commonPackages = []string{
	"context", "encoding/json", "html/template", "math/big", "net", "net/netip", "net/url", "text/template", "time",
}

// suggestName suggests a meaning of an undefined name: a package to import, or a similar name.
func (r *reader) suggestName(message string) string {
	name, ok := strings.CutPrefix(message, "undefined: ")
	if !ok {
		return ""
	}
	if qualifier, inner, ok := strings.Cut(name, "."); ok {
		for _, imported := range r.pkg.Types.Imports() {
			if imported.Name() == qualifier {
				return suggestNearest(qualifier+".", inner, exportedTypes(imported))
			}
		}
		return ""
	}
	if instead, ok := r.protocol[name]; ok {
		return "; the generated file declares it, and is not read for the types of tools: write mcptask." + instead
	}
	if r.isGenerated(name) {
		return "; the generated file declares it, and is not read for the types of tools: use a type of your own"
	}
	if imports := r.findImports(name); len(imports) > 0 {
		return "; import " + strings.Join(imports, " or ")
	}
	var qualified []string
	for _, imported := range r.pkg.Types.Imports() {
		if slices.Contains(exportedTypes(imported), name) {
			qualified = append(qualified, imported.Name()+"."+name)
		}
	}
	if len(qualified) > 0 {
		slices.Sort(qualified)
		return "; did you mean " + strings.Join(qualified, " or ") + "?"
	}
	var own []string
	for _, other := range r.pkg.Types.Scope().Names() {
		if _, ok := r.pkg.Types.Scope().Lookup(other).(*types.TypeName); ok {
			own = append(own, other)
		}
	}
	return suggestNearest("", name, own)
}

// isGenerated reports whether the generated file declares a name for a service or an input.
func (r *reader) isGenerated(name string) bool {
	for spec := range r.directives {
		spec, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		names := model.InputNames(spec.Name.Name, r.hasWorkflows(nil))
		if iface, ok := spec.Type.(*ast.InterfaceType); ok {
			names = model.ServiceNames(spec.Name.Name)
			if r.hasWorkflows(iface) {
				names = append(names, model.WorkflowsType(spec.Name.Name))
			}
		}
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

// hasWorkflows reports whether a method of an interface is declared as a workflow, or of any interface if
// iface is nil.
func (r *reader) hasWorkflows(iface *ast.InterfaceType) bool {
	for node, b := range r.directives {
		method, ok := node.(*ast.Field)
		if ok && b.has("workflow") && (iface == nil || slices.Contains(iface.Methods.List, method)) {
			return true
		}
	}
	return false
}

// findImports lists packages with that name that a file may have forgotten to import.
func (r *reader) findImports(name string) []string {
	if name == "mcptask" {
		return []string{"mcptask " + strconv.Quote(Runtime)}
	}
	var found []string
	add := func(importPath string) {
		if quoted := strconv.Quote(importPath); !slices.Contains(found, quoted) {
			found = append(found, quoted)
		}
	}
	for _, imported := range r.pkg.Types.Imports() { // imported by another file
		if imported.Name() == name {
			add(imported.Path())
		}
	}
	for _, importPath := range commonPackages {
		if path.Base(importPath) == name {
			add(importPath)
		}
	}
	slices.Sort(found)
	return found
}

func exportedTypes(pkg *types.Package) []string {
	var names []string
	for _, name := range pkg.Scope().Names() {
		if obj, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && obj.Exported() {
			names = append(names, name)
		}
	}
	return names
}

func suggestNearest(qualifier, name string, candidates []string) string {
	if near := diag.Nearest(name, candidates); near != "" {
		return "; did you mean " + qualifier + near + "?"
	}
	return ""
}
