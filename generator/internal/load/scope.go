package load

import (
	"fmt"
	"go/types"
	"os"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// scopes are the complete scopes of packages that others are imported through.
type scopes struct {
	config packages.Config
	found  map[string]*types.Scope
	ask    bool // the go command, where export data stands: the package was not loaded by it
}

// Scope returns all that a package declares, of other packages all that is exported. The export data
// of a package knows of those that it imports only what it uses itself, so the export data of such a
// package is read here, on its own. Scope is not safe for concurrent use within one Load.
func (p *Package) Scope(pkg *types.Package) (*types.Scope, error) {
	if pkg.Complete() || pkg == p.Types {
		return pkg.Scope(), nil
	}
	s := p.scopes
	if scope, ok := s.found[pkg.Path()]; ok {
		return scope, nil
	}
	find := p.exportFile
	if s.ask {
		find = s.askFor
	}
	complete, err := s.read(pkg.Path(), find(pkg.Path()))
	if err != nil {
		return nil, err
	}
	s.found[pkg.Path()] = complete.Scope()
	return s.found[pkg.Path()], nil
}

// exportFile finds the export data that go list named for a package that this one needs.
func (p *Package) exportFile(path string) (file string) {
	packages.Visit([]*packages.Package{p.Package}, func(other *packages.Package) bool {
		if other.PkgPath == path && other != p.Package {
			file = other.ExportFile
		}
		return file == ""
	}, nil)
	return file
}

// askFor asks the go command for the export data of a package; empty where there is none.
func (s *scopes) askFor(path string) string {
	config := s.config
	config.Mode = packages.NeedName | packages.NeedExportFile
	loaded, err := packages.Load(&config, path)
	if err != nil || len(loaded) != 1 {
		return ""
	}
	return loaded[0].ExportFile
}

// read reads the export data of a package.
func (s *scopes) read(path, file string) (*types.Package, error) {
	if file == "" {
		return nil, fmt.Errorf("package %s does not compile", path)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	r, err := gcexportdata.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("the export data of %s: %w", path, err)
	}
	// Into packages of its own: those of the others are complete in nothing but what they use.
	return gcexportdata.Read(r, s.config.Fset, map[string]*types.Package{}, path)
}
