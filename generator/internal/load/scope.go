package load

import (
	"fmt"
	"go/types"
	"os"

	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

// scopeCache holds the complete scopes of imported packages.
type scopeCache struct {
	config       packages.Config
	loaded       map[string]*types.Scope
	askGoCommand bool // ask the go command for export data, because it did not load the package
}

// Scope returns everything that pkg declares, or everything it exports if it is another package.
// Export data describes indirect imports only as far as they are used, so Scope reads the export
// data of such a package itself. Scope is not safe for concurrent use within one Load.
func (p *Package) Scope(pkg *types.Package) (*types.Scope, error) {
	if pkg.Complete() || pkg == p.Types {
		return pkg.Scope(), nil
	}
	s := p.scopes
	if scope, ok := s.loaded[pkg.Path()]; ok {
		return scope, nil
	}
	find := p.exportFile
	if s.askGoCommand {
		find = s.findExportFile
	}
	complete, err := s.readExportData(pkg.Path(), find(pkg.Path()))
	if err != nil {
		return nil, err
	}
	s.loaded[pkg.Path()] = complete.Scope()
	return s.loaded[pkg.Path()], nil
}

// exportFile finds the export data that go list named for an imported package.
func (p *Package) exportFile(path string) (file string) {
	packages.Visit([]*packages.Package{p.Package}, func(other *packages.Package) bool {
		if other.PkgPath == path && other != p.Package {
			file = other.ExportFile
		}
		return file == ""
	}, nil)
	return file
}

// findExportFile asks the go command for the export data of a package. It returns "" if there is
// none.
func (s *scopeCache) findExportFile(path string) string {
	config := s.config
	config.Mode = packages.NeedName | packages.NeedExportFile
	loaded, err := packages.Load(&config, path)
	if err != nil || len(loaded) != 1 {
		return ""
	}
	return loaded[0].ExportFile
}

func (s *scopeCache) readExportData(path, file string) (*types.Package, error) {
	if file == "" {
		return nil, fmt.Errorf("package %s does not compile", path)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()                     //nolint:errcheck // it was only read
	r, err := gcexportdata.NewReader(f) // the export files of Go 1.26 and 1.27 are archives, which Read alone refuses
	if err != nil {
		return nil, fmt.Errorf("read export data of %s: %w", path, err)
	}
	// Read into a new package map: packages in the other map are incomplete.
	return gcexportdata.Read(r, s.config.Fset, map[string]*types.Package{}, path)
}

// IsForeign reports whether another package is in a module that is not one of those being developed: neither that of p
// nor one of its workspace. It is false if the module is not known.
func (p *Package) IsForeign(pkg *types.Package) bool {
	foreign := false
	packages.Visit([]*packages.Package{p.Package}, func(other *packages.Package) bool {
		if other.PkgPath == pkg.Path() && other.Module != nil {
			foreign = !other.Module.Main
		}
		return !foreign
	}, nil)
	return foreign
}
