package load

import (
	"fmt"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// scopes are the complete scopes of packages that others are imported through.
type scopes struct {
	config packages.Config
	found  map[string]*types.Scope
}

// Scope returns all that a package declares, of other packages all that is exported. The export data
// of a package knows of those that it imports only what it uses itself, so such a package is loaded
// here, its export data alone. Scope is not safe for concurrent use within one Load.
func (p *Package) Scope(pkg *types.Package) (*types.Scope, error) {
	if pkg.Complete() || pkg == p.Types {
		return pkg.Scope(), nil
	}
	s := p.scopes
	if scope, ok := s.found[pkg.Path()]; ok {
		return scope, nil
	}
	config := s.config
	config.Mode = packages.NeedName | packages.NeedTypes
	loaded, err := packages.Load(&config, pkg.Path())
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || loaded[0].Types == nil || !loaded[0].Types.Complete() {
		return nil, fmt.Errorf("package %s cannot be loaded", pkg.Path())
	}
	s.found[pkg.Path()] = loaded[0].Types.Scope()
	return s.found[pkg.Path()], nil
}
