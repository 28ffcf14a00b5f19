package generator

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/load"
)

// Command has the settings with which a file is generated.
type Command struct {
	// Dir is the absolute directory that paths in the flags are relative to: that of the package, or
	// the working directory for a list of tools that was named there.
	Dir string
	commandline.Flags
	// Line is the position of the //go:generate line with these flags. It is the zero value if there
	// is none.
	Line token.Position

	at          token.Position    // of the line or of the header with the flags
	module      string            // the directory in which the file has to stay; "" for a path on the command line
	docs        *commandline.Line // a line that writes a reference; nil for a line that generates code
	mustDeclare bool              // go generate fails if the package declares nothing
}

// findCommands returns the commands for the files of a package: those of its //go:generate lines and those in the first
// lines of its generated files. If the package has such lines, its files do not count. If there is neither a line nor a
// file, the package is generated without flags.
func (g *generation) findCommands(fset *token.FileSet, pkg *load.Package) []Command {
	if isOfFiles(pkg) {
		return []Command{{Dir: pkg.Dir}}
	}
	commands := g.findLines(fset, pkg)
	generates := func(c Command) bool { return c.docs == nil && !c.ReadsTools() }
	byLine := slices.ContainsFunc(commands, generates)
	for _, f := range pkg.Generated {
		c := Command{Dir: pkg.Dir, Flags: f.Header.Flags, at: token.Position{Filename: f.Path, Line: 1, Column: 1}}
		copied := c.path() != f.Path && pkg.FindGenerated(c.path()) != nil
		switch {
		case copied || byLine && generates(c):
		case f.Header.Err != nil:
			g.problems.Add(c.at, f.Header.Err.Error(), "generate the file with the version of mcptaskgen that wrote it, or remove it and generate it again")
		case c.ReadsTools() && c.path() != f.Path:
			g.problems.Add(c.at, "this file was generated as "+diag.Relative(pkg.Dir, c.path()), "give it that name again, or generate it with --out")
		default:
			commands = append(commands, c)
		}
	}
	if !slices.ContainsFunc(commands, generates) {
		commands = append(commands, Command{Dir: pkg.Dir})
	}
	return commands
}

// isOfFiles reports whether a package was loaded as a list of files. The go command does not tell which package these
// are part of.
func isOfFiles(pkg *load.Package) bool { return pkg.PkgPath == "command-line-arguments" }

// moduleDir returns the directory of a package's module, or that of the package if it is in none.
func moduleDir(pkg *load.Package) string {
	if pkg.Module == nil {
		return pkg.Dir
	}
	return cmp.Or(pkg.Module.Dir, pkg.Dir)
}

func (c Command) path() string { return diag.Absolute(c.Dir, c.Output()) }

// findLines returns the commands of the //go:generate lines that write files of a package, in the order
// in which go generate runs them.
func (g *generation) findLines(fset *token.FileSet, pkg *load.Package) (commands []Command) {
	files := slices.Clone(pkg.Files)
	slices.SortFunc(files, func(a, b *ast.File) int {
		return strings.Compare(fset.Position(a.Package).Filename, fset.Position(b.Package).Filename)
	})
	for _, file := range files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				pos := fset.Position(comment.Pos())
				if pos.Column != 1 {
					continue
				}
				line, err := commandline.ParseLine(comment.Text, pos.Filename, pkg.Name)
				if err != nil {
					g.problems.Add(pos, "go generate fails here: "+err.Error(), "")
				}
				if line == nil || !line.Docs && !line.ReadsTools() && !line.IsFor(pkg.Dir, pkg.PkgPath) {
					continue
				}
				c := Command{Dir: pkg.Dir, Flags: line.Flags, Line: pos, at: pos, mustDeclare: len(line.Packages) == 0}
				if line.Docs {
					c.docs = line
				}
				commands = append(commands, c)
			}
		}
	}
	return commands
}

// dependsOn reports whether a build constraint has one of the tags.
func dependsOn(constraint, tags string) bool {
	words := strings.FieldsFunc(constraint, func(r rune) bool {
		return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return slices.ContainsFunc(strings.Split(tags, ","), func(tag string) bool { return slices.Contains(words, strings.TrimSpace(tag)) })
}
