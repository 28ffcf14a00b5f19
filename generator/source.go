package generator

import (
	"cmp"
	"context"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// Source is a package that is parsed already, and whose imports are loaded, as an analyzer has it.
type Source struct {
	Path    string // the import path
	Dir     string // the folder, absolute
	Fset    *token.FileSet
	Files   []*ast.File // with comments, generated files among them, tests not; they are only read
	Ignored []string    // the paths of files that build constraints leave out
	Imports map[string]*types.Package
	Sizes   types.Sizes
	Version string // of the language, such as go1.26; empty for the newest
}

// GenerateSource is [Generate] for one package that is loaded already. It does not load it again:
// cfg.Patterns and cfg.Tags have no effect, and cfg.Dir, where it is set, is the folder of cfg.Schemas. Of
// files on the disk it reads these, those that schema= names and the comments of other packages' types. It runs the go command only for an enum of a package
// that the source does not import itself. A package that declares nothing is no error. It is safe for
// concurrent use, also on one Source.
func GenerateSource(ctx context.Context, cfg Config, src Source) (Output, error) {
	if err := cfg.check(); err != nil {
		return Output{}, err
	}
	in := declarations{dir: src.Dir}
	revisions, _, err := cfg.revisions(cmp.Or(cfg.Dir, src.Dir))
	if err != nil {
		return Output{}, err
	}
	if in.protocol, err = readProtocol(revisions); err != nil {
		return Output{}, err
	}
	pkg := load.Check(ctx, load.Config{Dir: src.Dir, Output: cfg.output(), Header: emit.Header}, load.Source(src))
	in.models, in.leftOver, err = read(src.Fset, []*load.Package{pkg}, in.protocol, in.dir, cfg.output())
	if err != nil {
		return Output{}, err
	}
	return in.render(cfg)
}

// HasHeader tells whether a file, parsed with its comments, is one that this package has made.
func HasHeader(file *ast.File) bool { return load.HasHeader(file, emit.Header) }
