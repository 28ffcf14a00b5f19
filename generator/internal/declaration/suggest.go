package declaration

import (
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
)

// commonPackages are packages whose types are often used in declarations.
var commonPackages = []string{
	"context", "encoding/json", "html/template", "math/big", "net", "net/netip", "net/url", "text/template", "time",
}

// suggestName suggests what an undefined name may mean: a package to import, or a similar name.
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
