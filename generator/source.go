package generator

import (
	"context"

	"golang.org/x/tools/go/analysis"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// GeneratePass is like [Generate] with [Config.Own] for the package of an analysis. It does not change
// the pass.
//
// From disk, GeneratePass reads only the first lines of files that the pass does not have, lists of tools, the files
// that flags and directives name, and the comments of other packages' types. It runs the go command in three cases
// only: for a file that needs build tags of its own, for a reference of several packages, and for an enum of a package
// that the package does not import itself.
//
// A package that declares nothing is not an error. GeneratePass is safe for concurrent use, even on the
// same pass.
func GeneratePass(ctx context.Context, pass *analysis.Pass) (Output, error) {
	pkg := load.Check(ctx, pass)
	g, err := newGeneration(Config{Dir: pkg.Dir, Own: true})
	if err != nil {
		return Output{}, err
	}
	g.addPackage(ctx, pass.Fset, pkg)
	g.generateRetagged(ctx)
	return g.finish()
}
